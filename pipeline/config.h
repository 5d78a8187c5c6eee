// PipelineConfig: a pipeline's YAML file, read, checked, and with every path resolved.
//
// The schema is in configs/README.md. A file is checked as a whole before anything runs: all its problems are reported
// at once, each with line and column.
//
// Thread rule: plain values and free functions; call from any thread (not while another thread changes the
// environment).
#ifndef TENON_PIPELINE_CONFIG_H
#define TENON_PIPELINE_CONFIG_H

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tenon/status.hpp>
#include <vector>

#include "pipeline/config_problem.h"
#include "pipeline/nms.h"
#include "pipeline/resize.h"

namespace tenon::pipeline {

struct ModelConfig {
  std::string format;                          ///< name of the importer: darknet, onnx, ...
  std::filesystem::path file;                  ///< the network: the value of `cfg` or `file`
  std::filesystem::path weights;               ///< empty when the format has one file
  std::map<std::string, std::string> options;  ///< for the importer
};

enum class OnFallback { kWarn, kForbid, kAllow };
enum class OnMissingEngine { kBuild, kFail };
enum class PostprocessType { kDetections, kClasses, kTensors };

struct BuildConfig {
  std::filesystem::path timing_cache;  ///< empty: none
  bool editable_timing_cache = false;
  bool frozen = false;                     ///< a measurement that the cache lacks is an error
  std::optional<std::uint64_t> workspace;  ///< bytes; nothing: the device's memory
  std::filesystem::path engine;            ///< empty: the engine is not kept
  OnMissingEngine on_missing_engine = OnMissingEngine::kBuild;
  std::optional<double> time_budget;  ///< seconds
  int threads = 0;                    ///< of the CPU pool; 0: as many as the machine has
};

struct PostprocessConfig {
  PostprocessType type = PostprocessType::kTensors;
  float threshold = 0.25f;
  float nms = kDefaultNmsThreshold;
  std::optional<NmsKind> nms_kind;  ///< nothing: auto, what the model asks for
  std::filesystem::path labels;     ///< empty: classes have numbers only
  std::string decoder = "auto";     ///< auto: the model's heads; region, yolo: of this kind only; a Decoder's name
  int top = 5;                      ///< how many classes a classifier reports
};

/// A wish for the layers whose names fit a pattern.
struct LayerRule {
  std::string match;                    ///< glob, see glob_match
  std::string precision;                ///< empty: no wish
  std::optional<std::uint64_t> tactic;  ///< tactic hash
  std::string kernel;                   ///< empty: no wish
  std::string combo;                    ///< empty: no wish
};

struct PipelineConfig {
  std::filesystem::path source;  ///< the YAML file
  ModelConfig model;
  std::string device = "auto";  ///< auto, cpu, cuda, cuda:N
  OnFallback on_fallback = OnFallback::kWarn;
  std::string precision = "fp32";
  int batch = 0;  ///< 0: the model's own
  std::vector<std::filesystem::path> plugins;
  BuildConfig build;
  PreprocessOptions preprocess;
  PostprocessConfig postprocess;
  bool draw = true;
  std::vector<LayerRule> layers;
};

/// A configuration with all that is wrong with it; usable only when `problems` is empty.
struct ConfigOutcome {
  PipelineConfig config;
  std::vector<ConfigProblem> problems;  ///< in the order of their lines
};

/// Reads a file. Never fails as a whole: a file that cannot be read is one problem.
ConfigOutcome check_config(const std::filesystem::path& path);

/// Checks text as if it stood in a file at `path`, which need not exist, with an environment of the caller's choice.
ConfigOutcome check_config_text(std::string_view text, const std::filesystem::path& path,
                                const Environment& environment);

/// Reads a file that must be right. Fails with kInvalid and all problems in the message, one a line.
Result<PipelineConfig> load_config(const std::filesystem::path& path);

/// "pipeline.yaml:12:5: 'postprocess.threshold': expected ..." for one problem.
std::string problem_text(const std::filesystem::path& source, const ConfigProblem& problem);

/// True for auto, cpu, cuda and cuda:N.
bool valid_device(std::string_view device);

/// The resolved plan in lines of "what  value", as `tenon validate` prints it.
std::string describe(const PipelineConfig& config);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_CONFIG_H
