// YamlSection: typed access to one mapping of a YAML file, which collects every problem with its line and column.
//
// Asking for a key makes it known; finish() then reports every key that nobody asked for. So the reading code is the
// schema, and the two cannot differ.
//
// Thread rule: not thread-safe; use one YamlReader in one thread.
#ifndef TENON_PIPELINE_YAML_SECTION_H
#define TENON_PIPELINE_YAML_SECTION_H

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tenon/status.hpp>
#include <vector>

#include "pipeline/config_problem.h"

namespace tenon::pipeline {

/// What all sections of one file share.
struct YamlReader {
  std::filesystem::path base;  ///< the folder that relative paths start from
  Environment environment;
  std::vector<ConfigProblem> problems;

  void problem(const YAML::Mark& mark, std::string key, std::string message, std::string nearest = {});
};

class YamlSection {
 public:
  /// `node` must be a mapping; anything else but "no value" is reported, and the section is then empty.
  /// LIFETIME: the reader must outlive the section.
  YamlSection(YamlReader& reader, const YAML::Node& node, std::string path);

  /// Each getter returns nothing when the key is absent, or when its value is wrong, which is then reported.
  /// `${NAME}` in any value is replaced by the environment variable; an undefined one is reported.
  std::optional<std::string> text(const std::string& key);
  std::optional<bool> boolean(const std::string& key);
  std::optional<std::int64_t> integer(const std::string& key, std::int64_t low, std::int64_t high);
  std::optional<double> number(const std::string& key, double low, double high);
  /// One of the words, by its index.
  std::optional<std::size_t> choice(const std::string& key, std::span<const std::string> words);
  /// A value read by a function such as parse_size; the message of its failure is reported.
  template <class T>
  std::optional<T> parsed(const std::string& key, Result<T> (*parse)(std::string_view)) {
    const std::optional<std::string> value = text(key);
    if (!value) return {};
    Result<T> result = parse(*value);
    if (result.ok()) return *result;
    report(key, result.status().message());
    return {};
  }
  /// A path, made relative to the reader's base; `must_exist`: reported unless it is a file.
  std::optional<std::filesystem::path> path(const std::string& key, bool must_exist);
  std::vector<std::filesystem::path> path_list(const std::string& key);
  /// A list of numbers, or one number.
  std::vector<double> numbers(const std::string& key);
  /// A mapping of names to single values, whose keys are free.
  std::map<std::string, std::string> free_words(const std::string& key);
  /// A mapping of its own; empty when absent.
  YamlSection section(const std::string& key);
  /// A list of mappings.
  std::vector<YamlSection> sections(const std::string& key);

  bool has(const std::string& key) const { return values_.contains(key); }
  /// Reports `key` as missing, at the place of the section, unless the key is there.
  void require(const std::string& key, const std::string& what);
  /// Reports a problem at the place of a key's value, or of the section when the key is absent.
  void report(const std::string& key, const std::string& message, const std::string& nearest = {});
  /// Reports unknown keys. Call after the last getter.
  void finish();

 private:
  struct Value {
    YAML::Node node;
    YAML::Mark key_mark;
  };

  const YAML::Node* find(const std::string& key);
  std::string full(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  /// The text of a scalar node after substitution; reports anything else.
  std::optional<std::string> scalar(const YAML::Node& node, const std::string& full_key);
  std::optional<std::filesystem::path> resolve(const YAML::Node& node, const std::string& full_key, bool must_exist);

  YamlReader* reader_;
  std::string path_;
  YAML::Mark mark_;
  std::map<std::string, Value> values_;
  std::vector<std::string> known_;
};

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_YAML_SECTION_H
