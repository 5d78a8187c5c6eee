#include "pipeline/settings.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "pipeline/labels.h"

namespace tenon::pipeline {
namespace {

using nlohmann::json;

constexpr Resize kResizes[] = {Resize::kStretch, Resize::kLetterbox, Resize::kShortSideCrop, Resize::kNone};
constexpr Color kColors[] = {Color::kRgb, Color::kBgr, Color::kGray};
constexpr NmsKind kNmsKinds[] = {NmsKind::kIou, NmsKind::kDiou};
constexpr std::pair<PostprocessType, const char*> kTypes[] = {{PostprocessType::kDetections, "detections"},
                                                              {PostprocessType::kClasses, "classes"},
                                                              {PostprocessType::kTensors, "tensors"}};

}  // namespace

Result<PipelineSettings> settings_of(const PipelineConfig& config) {
  PipelineSettings settings;
  settings.preprocess = config.preprocess;
  settings.postprocess = config.postprocess;
  settings.draw = config.draw;
  if (!config.postprocess.labels.empty()) {
    TENON_ASSIGN(settings.labels, read_labels(config.postprocess.labels));
  }
  return settings;
}

PipelineSettings default_settings(bool detects, bool classifies) {
  PipelineSettings settings;
  settings.postprocess.type = detects      ? PostprocessType::kDetections
                              : classifies ? PostprocessType::kClasses
                                           : PostprocessType::kTensors;
  return settings;
}

std::string settings_text(const PipelineSettings& settings) {
  const PostprocessConfig& post = settings.postprocess;
  const char* type = "tensors";
  for (const auto& [value, name] : kTypes) {
    if (value == post.type) type = name;
  }
  json object = {{"preprocess",
                  {{"resize", resize_name(settings.preprocess.resize)},
                   {"placement", placement_name(settings.preprocess.placement)},
                   {"pad", settings.preprocess.pad},
                   {"align_corners", settings.preprocess.align_corners},
                   {"color", color_name(settings.preprocess.color)},
                   {"scale", settings.preprocess.scale},
                   {"mean", settings.preprocess.mean},
                   {"std", settings.preprocess.std}}},
                 {"postprocess",
                  {{"type", type},
                   {"threshold", post.threshold},
                   {"nms", post.nms},
                   {"decoder", post.decoder},
                   {"top", post.top}}},
                 {"labels", settings.labels},
                 {"draw", settings.draw}};
  if (post.nms_kind) object["postprocess"]["nms_kind"] = nms_kind_name(*post.nms_kind);
  return object.dump();
}

Result<PipelineSettings> parse_settings(const std::string& text) {
  PipelineSettings settings;
  try {
    const json object = json::parse(text);
    const json& pre = object.at("preprocess");
    const json& post = object.at("postprocess");
    for (const Resize resize : kResizes) {
      if (pre.at("resize") == resize_name(resize)) settings.preprocess.resize = resize;
    }
    for (const Color color : kColors) {
      if (pre.at("color") == color_name(color)) settings.preprocess.color = color;
    }
    // Engines made before these keys were known lack them.
    if (pre.value("placement", "") == placement_name(Placement::kTopLeft)) {
      settings.preprocess.placement = Placement::kTopLeft;
    }
    settings.preprocess.pad = pre.value("pad", settings.preprocess.pad);
    settings.preprocess.align_corners = pre.value("align_corners", true);
    settings.preprocess.scale = pre.at("scale");
    settings.preprocess.mean = pre.at("mean").get<std::vector<double>>();
    settings.preprocess.std = pre.at("std").get<std::vector<double>>();
    for (const auto& [value, name] : kTypes) {
      if (post.at("type") == name) settings.postprocess.type = value;
    }
    settings.postprocess.threshold = post.at("threshold");
    settings.postprocess.nms = post.at("nms");
    settings.postprocess.decoder = post.at("decoder");
    settings.postprocess.top = post.at("top");
    for (const NmsKind kind : kNmsKinds) {
      if (post.value("nms_kind", "") == nms_kind_name(kind)) settings.postprocess.nms_kind = kind;
    }
    settings.labels = object.at("labels").get<std::vector<std::string>>();
    settings.draw = object.at("draw");
  } catch (const json::exception& error) {
    return Status(Code::kInvalid, std::string("the engine's metadata \"pipeline\" is malformed: ") + error.what());
  }
  return settings;
}

std::string hash_text(std::uint64_t hash) {
  std::ostringstream out;
  out << "0x" << std::hex << hash;
  return out.str();
}

}  // namespace tenon::pipeline
