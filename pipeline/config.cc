#include "pipeline/config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <limits>

#include "pipeline/files.h"
#include "pipeline/units.h"
#include "pipeline/yaml_section.h"

namespace tenon::pipeline {
namespace {

constexpr std::uint64_t kMaxFileBytes = 1u << 20;
constexpr int kSchemaVersion = 1;

const std::vector<std::string>& precisions() {
  static const std::vector<std::string> words{"fp32", "tf32", "bf16"};
  return words;
}
const std::vector<std::string>& decoders() {
  static const std::vector<std::string> words{"auto", "region", "yolo", "yolox", "nanodet", "ultraface", "yunet"};
  return words;
}
// The words below stand in the order of their enumerations.
const std::vector<std::string>& resizes() {
  static const std::vector<std::string> words{"stretch", "letterbox", "short_side_crop", "none"};
  return words;
}
const std::vector<std::string>& placements() {
  static const std::vector<std::string> words{"center", "top_left"};
  return words;
}
const std::vector<std::string>& colors() {
  static const std::vector<std::string> words{"rgb", "bgr", "gray"};
  return words;
}
const std::vector<std::string>& fallbacks() {
  static const std::vector<std::string> words{"warn", "forbid", "allow"};
  return words;
}
const std::vector<std::string>& missing_engine_words() {
  static const std::vector<std::string> words{"build", "fail"};
  return words;
}
const std::vector<std::string>& postprocess_types() {
  static const std::vector<std::string> words{"detections", "classes", "tensors"};
  return words;
}
const std::vector<std::string>& nms_kinds() {
  static const std::vector<std::string> words{"auto", "iou", "diou"};
  return words;
}

template <class Target, class Source>
void assign(Target& target, std::optional<Source> value) {
  if (value) target = static_cast<Target>(std::move(*value));
}

/// Like assign, for a choice whose word is kept.
void assign_word(std::string& target, const std::vector<std::string>& words, std::optional<std::size_t> index) {
  if (index) target = words[*index];
}

void read_model(YamlSection& root, ModelConfig& model) {
  root.require("model", "model: {format: darknet, cfg: ..., weights: ...} or {format: onnx, file: ...}");
  YamlSection section = root.section("model");
  assign(model.format, section.text("format"));
  const auto cfg = section.path("cfg", /*must_exist=*/true);
  const auto file = section.path("file", /*must_exist=*/true);
  assign(model.weights, section.path("weights", /*must_exist=*/true));
  model.options = section.free_words("options");
  if (root.has("model")) {
    section.require("format", "the model's format, such as darknet or onnx");
    if (section.has("cfg") && section.has("file")) {
      section.report("file", "'cfg' and 'file' both name the network; keep one");
    } else if (model.format == "darknet") {
      if (!section.has("file")) section.require("cfg", "the network's .cfg file");
      section.require("weights", "the network's .weights file");
    } else if (!section.has("cfg")) {
      section.require("file", "the network's file");
    }
  }
  model.file = cfg ? *cfg : file.value_or("");
  section.finish();
}

void read_build(YamlSection& root, BuildConfig& build) {
  YamlSection section = root.section("build");
  assign(build.frozen, section.boolean("frozen"));
  assign(build.on_missing_engine, section.choice("on_missing_engine", missing_engine_words()));
  const bool must_have_engine = build.on_missing_engine == OnMissingEngine::kFail;
  assign(build.timing_cache, section.path("timing_cache", build.frozen));
  assign(build.editable_timing_cache, section.boolean("editable_timing_cache"));
  build.workspace = section.parsed("workspace", parse_size);
  assign(build.engine, section.path("engine", must_have_engine));
  build.time_budget = section.parsed("time_budget", parse_duration);
  assign(build.threads, section.integer("threads", 0, 1024));
  if (build.frozen) section.require("timing_cache", "a timing cache, since 'build.frozen' forbids measuring");
  if (must_have_engine) section.require("engine", "an engine file, since 'build.on_missing_engine' is fail");
  section.finish();
}

void read_preprocess(YamlSection& root, PreprocessOptions& options) {
  YamlSection section = root.section("preprocess");
  assign(options.resize, section.choice("resize", resizes()));
  assign(options.placement, section.choice("placement", placements()));
  assign(options.pad, section.number("pad", 0, 255));
  for (const char* key : {"placement", "pad"}) {
    if (section.has(key) && options.resize != Resize::kLetterbox) {
      section.report(key, "only resize letterbox leaves room around the picture");
    }
  }
  assign(options.align_corners, section.boolean("align_corners"));
  assign(options.color, section.choice("color", colors()));
  assign(options.scale, section.parsed("scale", parse_fraction));
  const std::size_t channels = options.color == Color::kGray ? 1 : 3;
  const std::array<std::pair<const char*, std::vector<double>*>, 2> lists{
      {{"mean", &options.mean}, {"std", &options.std}}};
  for (const auto& [key, list] : lists) {
    *list = section.numbers(key);
    if (list->size() == 1) list->resize(channels, list->front());
    if (!list->empty() && list->size() != channels) {
      section.report(key, "expected " + std::to_string(channels) + " numbers, one a channel of color " +
                              color_name(options.color) + ", found " + std::to_string(list->size()));
    }
  }
  if (std::find(options.std.begin(), options.std.end(), 0.0) != options.std.end()) {
    section.report("std", "0 is not allowed, values are divided by it");
  }
  section.finish();
}

void read_postprocess(YamlSection& root, PostprocessConfig& postprocess) {
  YamlSection section = root.section("postprocess");
  assign(postprocess.type, section.choice("type", postprocess_types()));
  assign(postprocess.threshold, section.number("threshold", 0, 1));
  assign(postprocess.nms, section.number("nms", 0, 1));
  const auto kind = section.choice("nms_kind", nms_kinds());
  if (kind && *kind != 0) postprocess.nms_kind = *kind == 1 ? NmsKind::kIou : NmsKind::kDiou;
  assign(postprocess.labels, section.path("labels", /*must_exist=*/true));
  assign_word(postprocess.decoder, decoders(), section.choice("decoder", decoders()));
  assign(postprocess.top, section.integer("top", 1, 1'000'000));
  if (root.has("postprocess")) section.require("type", "type: detections, classes or tensors");
  section.finish();
}

void read_layers(YamlSection& root, std::vector<LayerRule>& layers) {
  for (YamlSection& section : root.sections("layers")) {
    LayerRule rule;
    assign(rule.match, section.text("match"));
    assign_word(rule.precision, precisions(), section.choice("precision", precisions()));
    rule.tactic = section.parsed("tactic", parse_hash);
    assign(rule.kernel, section.text("kernel"));
    assign(rule.combo, section.text("combo"));
    section.require("match", "a pattern of layer names, such as \"conv1*\"");
    if (!section.has("precision") && !section.has("tactic") && !section.has("kernel") && !section.has("combo")) {
      section.report("match", "the rule asks for nothing; add precision, tactic, kernel or combo");
    }
    section.finish();
    layers.push_back(std::move(rule));
  }
}

void read_root(YamlSection& root, PipelineConfig& config) {
  root.require("tenon", "tenon: " + std::to_string(kSchemaVersion));
  const auto version = root.integer("tenon", std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
  if (version && *version != kSchemaVersion) {
    root.report("tenon",
                "this program reads version " + std::to_string(kSchemaVersion) + ", found " + std::to_string(*version));
  }
  read_model(root, config.model);
  assign(config.device, root.text("device"));
  if (!valid_device(config.device)) {
    root.report("device", "expected auto, cpu, cuda or cuda:N, found '" + config.device + "'");
  }
  assign(config.on_fallback, root.choice("on_fallback", fallbacks()));
  assign_word(config.precision, precisions(), root.choice("precision", precisions()));
  assign(config.batch, root.integer("batch", 1, 65536));
  config.plugins = root.path_list("plugins");
  read_build(root, config.build);
  read_preprocess(root, config.preprocess);
  read_postprocess(root, config.postprocess);
  YamlSection output = root.section("output");
  assign(config.draw, output.boolean("draw"));
  output.finish();
  read_layers(root, config.layers);
  root.finish();
}

void parse_document(YamlReader& reader, const std::string& text, PipelineConfig& config) {
  // yaml-cpp reports by exceptions; none leaves this function.
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) {
      reader.problem(documents[1].Mark(), "", "a second document begins here ('---'); a pipeline file holds one");
    }
    if (documents.empty() || documents[0].IsNull()) {
      reader.problem(YAML::Mark(), "", "the file is empty; a pipeline needs at least 'tenon: 1' and 'model:'");
      return;
    }
    YamlSection root(reader, documents[0], "");
    if (documents[0].IsMap()) read_root(root, config);
  } catch (const YAML::Exception& error) {
    reader.problem(error.mark, "", "not valid YAML: " + error.msg);
  }
}

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return {};
  return std::string(value);
}

}  // namespace

ConfigOutcome check_config_text(std::string_view text, const std::filesystem::path& path,
                                const Environment& environment) {
  ConfigOutcome outcome;
  outcome.config.source = path;
  YamlReader reader{path.parent_path(), environment, {}};
  parse_document(reader, std::string(text), outcome.config);
  outcome.problems = std::move(reader.problems);
  std::stable_sort(outcome.problems.begin(), outcome.problems.end(),
                   [](const ConfigProblem& a, const ConfigProblem& b) {
                     return std::pair(a.line, a.column) < std::pair(b.line, b.column);
                   });
  return outcome;
}

ConfigOutcome check_config(const std::filesystem::path& path) {
  const Result<std::vector<std::uint8_t>> bytes = read_file(path, kMaxFileBytes);
  if (!bytes.ok()) {
    ConfigOutcome outcome;
    outcome.config.source = path;
    outcome.problems.push_back({0, 0, "", bytes.status().message(), ""});
    return outcome;
  }
  return check_config_text({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, path, process_environment);
}

Result<PipelineConfig> load_config(const std::filesystem::path& path) {
  ConfigOutcome outcome = check_config(path);
  if (outcome.problems.empty()) return std::move(outcome.config);
  std::string message;
  for (const ConfigProblem& problem : outcome.problems) {
    message += (message.empty() ? "" : "\n") + problem_text(path, problem);
  }
  return Status(Code::kInvalid, message);
}

std::string problem_text(const std::filesystem::path& source, const ConfigProblem& problem) {
  std::string place = source.string();
  if (problem.line > 0) place += ":" + std::to_string(problem.line) + ":" + std::to_string(problem.column);
  return place + ": " + problem.message;
}

bool valid_device(std::string_view device) {
  if (device == "auto" || device == "cpu" || device == "cuda") return true;
  if (!device.starts_with("cuda:")) return false;
  device.remove_prefix(5);
  return !device.empty() && device.size() <= 4 &&
         std::all_of(device.begin(), device.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace tenon::pipeline
