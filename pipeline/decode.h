// From the activated outputs of [region] (YOLOv2) and [yolo] (YOLOv3) heads to detections in the picture.
//
// Formulas: J. Redmon, A. Farhadi, "YOLO9000" (2016), section 2, and "YOLOv3" (2018), section 2.1; float32 as in
// Darknet.
//
// Thread rule: plain values and free functions; call from any thread.
#ifndef TENON_PIPELINE_DECODE_H
#define TENON_PIPELINE_DECODE_H

#include <optional>
#include <span>
#include <tenon/status.hpp>
#include <vector>

#include "pipeline/detection.h"
#include "pipeline/metadata.h"
#include "pipeline/nms.h"
#include "pipeline/resize.h"

namespace tenon::pipeline {

/// The output of one head for one picture: value (c, y, x) is values[(c * height + y) * width + x].
struct HeadValues {
  std::span<const float> values;
  int channels = 0;
  int height = 0;
  int width = 0;
};

struct DetectOptions {
  float threshold = 0.25f;  ///< objectness and score must both be greater than this
  float nms_threshold = kDefaultNmsThreshold;
  std::optional<NmsKind> nms_kind;  ///< nothing: what the model asks for
};

/// Appends to `candidates` every class of every box whose objectness, and whose objectness * class probability, is
/// greater than `threshold`; in the order of cells (row by row), anchors, classes. With the box centre (x, y) of cell
/// (i, j) in a W x H grid: x = (i + v0) / W, y = (j + v1) / H, width = exp(v2) * anchor / W (anchors in cells) or
/// exp(v2) * anchor / net width (anchors in pixels), height likewise; then mapped to the picture by `geometry`.
/// Fails with kInvalid when the shape does not fit the metadata, or when the head holds NaN or a box that is not finite
/// (an overflow in the network, which must not pass for "nothing found").
Status decode_head(const HeadMetadata& head, const HeadValues& values, const Geometry& geometry, float threshold,
                   std::vector<Candidate>& candidates);

/// Decodes all heads, suppresses doubles and gives the detections in pixels of the picture, best score first.
/// REQUIRES: one HeadValues for each head of the metadata, in the same order (kInvalid otherwise).
Result<std::vector<Detection>> detect(const DetectionMetadata& metadata, std::span<const HeadValues> heads,
                                      const Geometry& geometry, const DetectOptions& options);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_DECODE_H
