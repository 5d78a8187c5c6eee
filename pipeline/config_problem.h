// ConfigProblem: one thing that is wrong with a configuration file; Environment: where ${NAME} is looked up.
//
// Thread rule: plain values.
#ifndef TENON_PIPELINE_CONFIG_PROBLEM_H
#define TENON_PIPELINE_CONFIG_PROBLEM_H

#include <functional>
#include <optional>
#include <string>

namespace tenon::pipeline {

struct ConfigProblem {
  int line = 0;         ///< from 1; 0 when the problem has no place in the file
  int column = 0;       ///< from 1
  std::string key;      ///< full path such as "postprocess.threshold" or "layers[0].match"; may be empty
  std::string message;  ///< says expected and found, and what to do
  std::string nearest;  ///< for an unknown key or word: the valid one most like it; else empty
};

/// Looks up an environment variable; nothing when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_CONFIG_PROBLEM_H
