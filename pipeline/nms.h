// Non-maximum suppression per class: of boxes that show the same thing, keep the best.
//
// Thread rule: plain values and free functions; call from any thread.
#ifndef TENON_PIPELINE_NMS_H
#define TENON_PIPELINE_NMS_H

#include <vector>

#include "pipeline/detection.h"
#include "pipeline/metadata.h"

namespace tenon::pipeline {

inline constexpr float kDefaultNmsThreshold = 0.45f;

/// How the overlap of two boxes is measured.
enum class NmsKind {
  kIou,   ///< intersection over union: the original Darknet
  kDiou,  ///< IoU - (d / c)^0.6, d the squared distance of the centres, c the squared diagonal of the enclosing box:
          ///< the Darknet fork with nms_kind=greedynms (it keeps some neighbours that kIou drops)
};

const char* nms_kind_name(NmsKind kind);  ///< "iou", "diou"

/// The kind that a model asks for: kDiou when its last head says "greedynms" (the fork reads the last layer), else
/// kIou.
NmsKind nms_kind_of(const DetectionMetadata& metadata);

/// One class of one box before suppression; the box in shares of the picture.
struct Candidate {
  RelativeBox box;
  int class_id = 0;
  float score = 0;
  float objectness = 0;
};

/// Intersection over union of two boxes, 0 when they do not meet or have no area.
float iou(const RelativeBox& a, const RelativeBox& b);

/// IoU - (d / c)^0.6 of two boxes, see NmsKind::kDiou.
float diou(const RelativeBox& a, const RelativeBox& b);

/// Walks each class from the best score down and drops every later box of that class whose overlap with a kept one is
/// greater than `threshold`. The result is sorted by score, best first, over all classes; candidates with equal scores
/// keep the order in which they were given, so that equal input gives equal output.
std::vector<Candidate> suppress(std::vector<Candidate> candidates, float threshold, NmsKind kind);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_NMS_H
