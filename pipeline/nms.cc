#include "pipeline/nms.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tenon::pipeline {
namespace {

constexpr double kDiouPower = 0.6;  // beta_nms of the Darknet fork

/// Length of the common part of two intervals given by centre and length; negative when they are apart.
float overlap(float center_a, float length_a, float center_b, float length_b) {
  const float left = std::max(center_a - length_a / 2, center_b - length_b / 2);
  const float right = std::min(center_a + length_a / 2, center_b + length_b / 2);
  return right - left;
}

/// Length of the smallest interval that holds both.
float enclosing(float center_a, float length_a, float center_b, float length_b) {
  const float left = std::min(center_a - length_a / 2, center_b - length_b / 2);
  const float right = std::max(center_a + length_a / 2, center_b + length_b / 2);
  return right - left;
}

}  // namespace

const char* nms_kind_name(NmsKind kind) { return kind == NmsKind::kDiou ? "diou" : "iou"; }

NmsKind nms_kind_of(const DetectionMetadata& metadata) {
  const bool greedy = !metadata.heads.empty() && metadata.heads.back().nms_kind == "greedynms";
  return greedy ? NmsKind::kDiou : NmsKind::kIou;
}

float iou(const RelativeBox& a, const RelativeBox& b) {
  const float width = overlap(a.x, a.width, b.x, b.width);
  const float height = overlap(a.y, a.height, b.y, b.height);
  if (!(width > 0) || !(height > 0)) return 0;
  const float intersection = width * height;
  const float together = a.width * a.height + b.width * b.height - intersection;
  return together > 0 ? intersection / together : 0;
}

float diou(const RelativeBox& a, const RelativeBox& b) {
  const float width = enclosing(a.x, a.width, b.x, b.width);
  const float height = enclosing(a.y, a.height, b.y, b.height);
  const float diagonal = width * width + height * height;
  const float plain = iou(a, b);
  if (!(diagonal > 0)) return plain;
  const float distance = (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y);
  return plain - static_cast<float>(std::pow(distance / diagonal, kDiouPower));
}

std::vector<Candidate> suppress(std::vector<Candidate> candidates, float threshold, NmsKind kind) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  const auto similarity = kind == NmsKind::kDiou ? diou : iou;
  std::map<int, std::vector<RelativeBox>> kept_boxes;  // by class
  std::vector<Candidate> kept;
  for (const Candidate& candidate : candidates) {
    std::vector<RelativeBox>& rivals = kept_boxes[candidate.class_id];
    const bool dropped = std::any_of(rivals.begin(), rivals.end(), [&](const RelativeBox& better) {
      return similarity(better, candidate.box) > threshold;
    });
    if (dropped) continue;
    rivals.push_back(candidate.box);
    kept.push_back(candidate);
  }
  return kept;
}

}  // namespace tenon::pipeline
