// Compiled with -ffp-contract=off, see resize.cc.
#include "pipeline/decode.h"

#include <cmath>
#include <string>

namespace tenon::pipeline {
namespace {

std::string shape_text(int channels, int height, int width) {
  return "[" + std::to_string(channels) + ", " + std::to_string(height) + ", " + std::to_string(width) + "]";
}

bool finite(const RelativeBox& box) {
  return std::isfinite(box.x) && std::isfinite(box.y) && std::isfinite(box.width) && std::isfinite(box.height);
}

Status overflow(const HeadMetadata& head, const char* what, int x, int y, std::size_t anchor) {
  return Status(Code::kInvalid, "output '" + head.output + "' has " + what + " at cell x " + std::to_string(x) +
                                    ", y " + std::to_string(y) + ", anchor " + std::to_string(anchor) +
                                    "; the network overflowed: try precision fp32, and find the layer with "
                                    "'tenon compare'");
}

Status check_shape(const HeadMetadata& head, const HeadValues& values) {
  if (values.channels == head.channels() && values.height > 0 && values.width > 0 &&
      values.values.size() == std::size_t(values.channels) * values.height * values.width) {
    return {};
  }
  return Status(Code::kInvalid, "output '" + head.output + "': expected " + std::to_string(head.channels()) +
                                    " channels (" + std::to_string(head.anchors.size()) + " anchors x (" +
                                    std::to_string(head.coords) + " + 1 + " + std::to_string(head.classes) +
                                    " classes)), found " + shape_text(values.channels, values.height, values.width) +
                                    " with " + std::to_string(values.values.size()) +
                                    " values; the engine and its metadata do not fit, rebuild it");
}

}  // namespace

Status decode_head(const HeadMetadata& head, const HeadValues& values, const Geometry& geometry, float threshold,
                   std::vector<Candidate>& candidates) {
  TENON_RETURN_IF_ERROR(check_shape(head, values));
  const std::size_t plane = std::size_t(values.height) * values.width;
  const std::size_t per_anchor = plane * (head.coords + 1 + head.classes);
  const int unit_width = head.anchors_in_pixels ? geometry.net_width : values.width;
  const int unit_height = head.anchors_in_pixels ? geometry.net_height : values.height;
  for (int y = 0; y < values.height; ++y) {
    for (int x = 0; x < values.width; ++x) {
      for (std::size_t anchor = 0; anchor < head.anchors.size(); ++anchor) {
        const float* v = values.values.data() + anchor * per_anchor + std::size_t(y) * values.width + x;
        const float objectness = v[head.coords * plane];
        if (std::isnan(objectness)) return overflow(head, "a NaN", x, y, anchor);
        if (!(objectness > threshold)) continue;
        const RelativeBox in_net{
            (static_cast<float>(x) + v[0]) / static_cast<float>(values.width),
            (static_cast<float>(y) + v[plane]) / static_cast<float>(values.height),
            static_cast<float>(std::exp(double(v[2 * plane])) * head.anchors[anchor][0] / unit_width),
            static_cast<float>(std::exp(double(v[3 * plane])) * head.anchors[anchor][1] / unit_height)};
        const RelativeBox box = to_picture(geometry, in_net);
        const float* classes = v + (head.coords + 1) * plane;
        for (int c = 0; c < head.classes; ++c) {
          const float score = objectness * classes[c * plane];
          if (std::isnan(score)) return overflow(head, "a NaN", x, y, anchor);
          if (!(score > threshold)) continue;
          if (!finite(box)) return overflow(head, "a box that is not finite", x, y, anchor);
          candidates.push_back({box, c, score, objectness});
        }
      }
    }
  }
  return {};
}

Result<std::vector<Detection>> detect(const DetectionMetadata& metadata, std::span<const HeadValues> heads,
                                      const Geometry& geometry, const DetectOptions& options) {
  if (heads.size() != metadata.heads.size()) {
    return Status(Code::kInvalid, "expected the outputs of " + std::to_string(metadata.heads.size()) +
                                      " heads, found " + std::to_string(heads.size()) +
                                      "; give every head's output in the metadata's order");
  }
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    TENON_RETURN_IF_ERROR(decode_head(metadata.heads[i], heads[i], geometry, options.threshold, candidates));
  }
  const NmsKind kind = options.nms_kind.value_or(nms_kind_of(metadata));
  std::vector<Detection> detections;
  for (const Candidate& kept : suppress(std::move(candidates), options.nms_threshold, kind)) {
    detections.push_back({kept.class_id, kept.score, kept.objectness, to_pixels(geometry, kept.box)});
  }
  return detections;
}

}  // namespace tenon::pipeline
