// describe(): a PipelineConfig as `tenon validate` prints it.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "pipeline/config.h"
#include "pipeline/units.h"

namespace tenon::pipeline {
namespace {

constexpr std::size_t kLabelWidth = 12;

class Plan {
 public:
  void line(std::string label, const std::string& value) {
    label.resize(std::max(label.size() + 1, kLabelWidth), ' ');
    text_ << label << value << '\n';
  }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
};

std::string plain(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

std::string list_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "[" : ", ") + plain(value);
  return text + "]";
}

std::string hash_text(std::uint64_t hash) {
  std::ostringstream text;
  text << "0x" << std::hex << hash;
  return text.str();
}

std::string preprocess_text(const PreprocessOptions& options) {
  std::string text =
      std::string("resize ") + resize_name(options.resize) + ", color " + color_name(options.color) + ", scale ";
  const double inverse = options.scale > 0 ? 1.0 / options.scale : 0;
  const bool is_fraction = inverse > 1 && inverse == std::round(inverse);
  text += is_fraction ? "1/" + plain(inverse) : plain(options.scale);
  if (options.placement != Placement::kCenter) text += std::string(", placement ") + placement_name(options.placement);
  if (options.pad != PreprocessOptions{}.pad) text += ", pad " + plain(options.pad);
  if (!options.align_corners) text += ", corners not aligned";
  if (!options.mean.empty()) text += ", mean " + list_text(options.mean);
  if (!options.std.empty()) text += ", std " + list_text(options.std);
  return text;
}

std::string postprocess_text(const PostprocessConfig& postprocess) {
  const std::string labels = postprocess.labels.empty() ? "no labels" : "labels " + postprocess.labels.string();
  switch (postprocess.type) {
    case PostprocessType::kDetections:
      return "detections, decoder " + postprocess.decoder + ", threshold " + plain(postprocess.threshold) + ", nms " +
             plain(postprocess.nms) + " (" + (postprocess.nms_kind ? nms_kind_name(*postprocess.nms_kind) : "auto") +
             "), " + labels;
    case PostprocessType::kClasses:
      return "classes, top " + std::to_string(postprocess.top) + ", " + labels;
    case PostprocessType::kTensors:
      break;
  }
  return "tensors";
}

void describe_build(const BuildConfig& build, Plan& plan) {
  plan.line("engine", build.engine.empty() ? std::string("not kept")
                                           : build.engine.string() + (build.on_missing_engine == OnMissingEngine::kBuild
                                                                          ? " (built when missing or out of date)"
                                                                          : " (must exist)"));
  std::string cache = "none";
  if (!build.timing_cache.empty()) {
    cache = build.timing_cache.string();
    if (build.editable_timing_cache) cache += ", one record a layer";
    cache += build.frozen ? ", frozen" : ", updated";
  }
  plan.line("cache", cache);
  plan.line("workspace", build.workspace ? size_text(*build.workspace) : "the device's memory");
  if (build.time_budget) plan.line("budget", plain(*build.time_budget) + " s for measuring");
  plan.line("threads", build.threads > 0 ? std::to_string(build.threads) : "all of the machine");
}

std::string rule_text(const LayerRule& rule) {
  std::string text = "\"" + rule.match + "\":";
  if (!rule.precision.empty()) text += " precision " + rule.precision;
  if (rule.tactic) text += " tactic " + hash_text(*rule.tactic);
  if (!rule.kernel.empty()) text += " kernel " + rule.kernel;
  if (!rule.combo.empty()) text += " combo " + rule.combo;
  return text;
}

}  // namespace

std::string describe(const PipelineConfig& config) {
  Plan plan;
  plan.line("pipeline", config.source.string());
  plan.line("model", config.model.format + ", " + config.model.file.string());
  if (!config.model.weights.empty()) plan.line("weights", config.model.weights.string());
  for (const auto& [key, value] : config.model.options) plan.line("option", key + " = " + value);
  const char* fallback = config.on_fallback == OnFallback::kWarn     ? "warn"
                         : config.on_fallback == OnFallback::kForbid ? "forbid"
                                                                     : "allow";
  plan.line("device", config.device + ", on fallback: " + fallback);
  plan.line("precision", config.precision);
  plan.line("batch", config.batch > 0 ? std::to_string(config.batch) : "the model's");
  for (const auto& plugin : config.plugins) plan.line("plugin", plugin.string());
  describe_build(config.build, plan);
  plan.line("preprocess", preprocess_text(config.preprocess));
  plan.line("postprocess", postprocess_text(config.postprocess));
  plan.line("draw", config.draw ? "yes" : "no");
  for (const LayerRule& rule : config.layers) plan.line("layers", rule_text(rule));
  return plan.text();
}

}  // namespace tenon::pipeline
