#include "importers/darknet/metadata.h"

#include <charconv>
#include <cstdio>

namespace tenon::darknet {
namespace {

std::string quoted(const std::string& value) {
  std::string result = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      result += escaped;
    } else {
      result += c;
    }
  }
  return result + '"';
}

// The shortest text that reads back as the same number, whatever the locale.
std::string number(double value) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

std::string net_json(const Shape& net) {
  return "\"net\":{\"width\":" + std::to_string(net.width) + ",\"height\":" + std::to_string(net.height) +
         ",\"channels\":" + std::to_string(net.channels) + "}";
}

std::string head_json(const HeadOutput& item) {
  const Head& head = item.head;
  std::string anchors;
  for (size_t n = 0; n + 1 < head.anchors.size(); n += 2) {
    anchors += (n ? ",[" : "[") + number(head.anchors[n]) + "," + number(head.anchors[n + 1]) + "]";
  }
  return "{\"output\":" + quoted(item.output) + ",\"kind\":" + (head.yolo ? "\"yolo\"" : "\"region\"") +
         ",\"classes\":" + std::to_string(head.classes) + ",\"coords\":" + std::to_string(head.coords) +
         ",\"anchors\":[" + anchors + "],\"anchor_unit\":" + (head.yolo ? "\"pixel\"" : "\"cell\"") +
         ",\"scale_x_y\":" + number(head.scale_x_y) + ",\"nms_kind\":" + quoted(head.nms_kind) +
         ",\"softmax\":" + (head.softmax ? "true" : "false") + "}";
}

}  // namespace

std::string detection_json(const std::vector<HeadOutput>& heads, const Shape& net) {
  std::string list;
  for (const HeadOutput& head : heads) list += (list.empty() ? "" : ",") + head_json(head);
  return "{\"heads\":[" + list + "]," + net_json(net) + "}";
}

std::string classification_json(const std::string& output, const Shape& net) {
  return "{\"output\":" + quoted(output) + "," + net_json(net) + "}";
}

std::string aliases_json(const std::map<std::string, std::string>& aliases) {
  std::string list;
  for (const auto& [name, target] : aliases) list += (list.empty() ? "" : ",") + quoted(name) + ":" + quoted(target);
  return "{" + list + "}";
}

}  // namespace tenon::darknet
