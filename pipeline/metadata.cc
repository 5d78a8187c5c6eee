#include "pipeline/metadata.h"

#include <cmath>

namespace tenon::pipeline {
namespace {

using nlohmann::json;

// Above these a model is damaged rather than large; they keep channels() far from overflow.
constexpr int kMaxClasses = 1 << 20;
constexpr int kMaxAnchors = 256;
constexpr int kMaxSide = 1 << 20;

Status wrong(const std::string& where, const std::string& expected, const json* found) {
  std::string text = "nothing";
  if (found != nullptr) {
    text = found->dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 60) + "...";
  }
  return Status(Code::kInvalid, "detection metadata: " + where + ": expected " + expected + ", found " + text +
                                    "; rebuild the engine from its model");
}

const json* find(const json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

Result<int> integer(const json& object, const char* key, const std::string& where, int low, int high,
                    std::optional<int> fallback = {}) {
  const json* value = find(object, key);
  if (value == nullptr && fallback) return *fallback;
  const std::string expected = "an integer from " + std::to_string(low) + " to " + std::to_string(high);
  if (value == nullptr || !value->is_number_integer()) return wrong(where + "." + key, expected, value);
  const double number = value->get<double>();
  if (number < low || number > high) return wrong(where + "." + key, expected, value);
  return static_cast<int>(number);
}

Result<std::string> text(const json& object, const char* key, const std::string& where,
                         std::optional<std::string> fallback = {}) {
  const json* value = find(object, key);
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr || !value->is_string()) return wrong(where + "." + key, "a string", value);
  return value->get<std::string>();
}

Result<bool> boolean(const json& object, const char* key, const std::string& where) {
  const json* value = find(object, key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) return wrong(where + "." + key, "true or false", value);
  return value->get<bool>();
}

bool positive(const json& value) {
  if (!value.is_number()) return false;
  const float number = value.get<float>();
  return std::isfinite(number) && number > 0;
}

Status read_anchors(const json& object, const std::string& where, HeadMetadata& head) {
  const json* anchors = find(object, "anchors");
  if (anchors == nullptr || !anchors->is_array() || anchors->empty() || anchors->size() > kMaxAnchors) {
    return wrong(where + ".anchors", "1 to " + std::to_string(kMaxAnchors) + " pairs [width, height]", anchors);
  }
  for (std::size_t i = 0; i < anchors->size(); ++i) {
    const json& pair = (*anchors)[i];
    if (!pair.is_array() || pair.size() != 2 || !positive(pair[0]) || !positive(pair[1])) {
      return wrong(where + ".anchors[" + std::to_string(i) + "]", "[width, height], both positive", &pair);
    }
    head.anchors.push_back({pair[0].get<float>(), pair[1].get<float>()});
  }
  return {};
}

Result<HeadMetadata> read_head(const json& object, const std::string& where) {
  if (!object.is_object()) return wrong(where, "an object", &object);
  HeadMetadata head;
  TENON_ASSIGN(head.output, text(object, "output", where));
  TENON_ASSIGN(const std::string kind, text(object, "kind", where));
  if (kind != "region" && kind != "yolo") return wrong(where + ".kind", "region or yolo", find(object, "kind"));
  head.kind = kind == "region" ? HeadKind::kRegion : HeadKind::kYolo;
  TENON_ASSIGN(head.classes, integer(object, "classes", where, 1, kMaxClasses));
  TENON_ASSIGN(head.coords, integer(object, "coords", where, 4, 1024, 4));
  TENON_RETURN_IF_ERROR(read_anchors(object, where, head));
  TENON_ASSIGN(const std::string unit,
               text(object, "anchor_unit", where, head.kind == HeadKind::kYolo ? "pixel" : "cell"));
  if (unit != "pixel" && unit != "cell") {
    return wrong(where + ".anchor_unit", "pixel or cell", find(object, "anchor_unit"));
  }
  head.anchors_in_pixels = unit == "pixel";
  if (const json* scale = find(object, "scale_x_y")) {
    if (!positive(*scale)) return wrong(where + ".scale_x_y", "a positive number", scale);
    head.scale_x_y = scale->get<float>();
  }
  TENON_ASSIGN(head.nms_kind, text(object, "nms_kind", where, "default"));
  TENON_ASSIGN(head.softmax, boolean(object, "softmax", where));
  return head;
}

}  // namespace

Result<DetectionMetadata> detection_metadata_from_json(const json& json_value) {
  if (!json_value.is_object()) return wrong("the value", "an object", &json_value);
  DetectionMetadata metadata;
  const json* heads = find(json_value, "heads");
  if (heads == nullptr || !heads->is_array() || heads->empty()) return wrong("heads", "a list of heads", heads);
  for (std::size_t i = 0; i < heads->size(); ++i) {
    TENON_ASSIGN(HeadMetadata head, read_head((*heads)[i], "heads[" + std::to_string(i) + "]"));
    metadata.heads.push_back(std::move(head));
  }
  const json* net = find(json_value, "net");
  if (net == nullptr || !net->is_object()) return wrong("net", "an object with width and height", net);
  TENON_ASSIGN(metadata.net_width, integer(*net, "width", "net", 1, kMaxSide));
  TENON_ASSIGN(metadata.net_height, integer(*net, "height", "net", 1, kMaxSide));
  TENON_ASSIGN(metadata.net_channels, integer(*net, "channels", "net", 1, 1024, 3));
  if (const json* labels = find(json_value, "labels")) {
    if (!labels->is_array()) return wrong("labels", "a list of strings", labels);
    for (const json& label : *labels) {
      if (!label.is_string()) return wrong("labels", "a list of strings", &label);
      metadata.labels.push_back(label.get<std::string>());
    }
  }
  return metadata;
}

Result<DetectionMetadata> detection_metadata_from_text(std::string_view text_value) {
  const json parsed = json::parse(text_value, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) {
    return Status(Code::kInvalid, "detection metadata is not JSON; rebuild the engine from its model");
  }
  return detection_metadata_from_json(parsed);
}

json to_json(const DetectionMetadata& metadata) {
  json heads = json::array();
  for (const HeadMetadata& head : metadata.heads) {
    heads.push_back({{"output", head.output},
                     {"kind", head.kind == HeadKind::kRegion ? "region" : "yolo"},
                     {"classes", head.classes},
                     {"coords", head.coords},
                     {"anchors", head.anchors},
                     {"anchor_unit", head.anchors_in_pixels ? "pixel" : "cell"},
                     {"scale_x_y", head.scale_x_y},
                     {"nms_kind", head.nms_kind},
                     {"softmax", head.softmax}});
  }
  json result = {
      {"heads", std::move(heads)},
      {"net", {{"width", metadata.net_width}, {"height", metadata.net_height}, {"channels", metadata.net_channels}}}};
  if (!metadata.labels.empty()) result["labels"] = metadata.labels;
  return result;
}

}  // namespace tenon::pipeline
