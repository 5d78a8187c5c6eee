// From the plain outputs of YOLOX, NanoDet, UltraFace and YuNet to detections in the picture: detectors whose models do
// not say where their heads are (the heads of Darknet are in decode.h).
//
// Thread rule: plain values and free functions; call from any thread.
#ifndef TENON_PIPELINE_DECODERS_H
#define TENON_PIPELINE_DECODERS_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tenon/status.hpp>
#include <vector>

#include "pipeline/decode.h"
#include "pipeline/detection.h"
#include "pipeline/resize.h"

namespace tenon::pipeline {

/// The detectors. Cells are those of the strides 8, 16 and 32, one grid after the other, row by row; x and y count the
/// cells of a grid; sizes are pixels of the network's input.
enum class Decoder {
  /// Z. Ge et al., "YOLOX" (2021). One output [N, cells of all strides, 5 + classes]: centre (v0 + x, v1 + y) * stride,
  /// size exp(v2, v3) * stride, score v4 * the best class's value; the logistic is in the network.
  kYolox,
  /// NanoDet-m (github.com/RangiLyu/nanodet), X. Li et al., "Generalized Focal Loss" (2020). Per stride class scores
  /// [N, cells, classes] after the logistic, and distances [N, cells, 4 * 8]: of left, top, right, bottom the mean of
  /// 0..7 weighted by the softmax of 8 values, * stride, from the centre ((x, y) + 0.5) * stride - 0.5.
  kNanodet,
  /// UltraFace (github.com/Linzaer/Ultra-Light-Fast-Generic-Face-Detector-1MB). Scores [N, boxes, 2] of background and
  /// face, and boxes [N, boxes, 4]: left, top, right, bottom in shares of the network's input.
  kUltraface,
  /// W. Wu et al., "YuNet" (2023). Per stride two scores [N, cells, 1], of class and of object, and boxes
  /// [N, cells, 4]: centre (v0 + x, v1 + y) * stride, size exp(v2, v3) * stride, score sqrt(class * object).
  kYunet,
};

const char* decoder_name(Decoder decoder);  ///< "yolox", "nanodet", "ultraface", "yunet"
/// Nothing for a word that names none of them ("auto", "yolo").
std::optional<Decoder> decoder_named(std::string_view word);

/// An output of the network; `values` are those of one picture.
struct RawOutput {
  std::string name;
  std::vector<std::int64_t> dims;
  std::span<const float> values;
};

/// Finds the decoder's outputs by their shapes, takes of every box its best class if the score is greater than the
/// threshold, suppresses doubles (IoU, unless the options say otherwise) and gives the detections in pixels of the
/// picture, best score first. Fails with kInvalid, listing the outputs, when they do not fit the decoder and the
/// network's size, and when a score is NaN or a box is not finite.
Result<std::vector<Detection>> detect(Decoder decoder, std::span<const RawOutput> outputs, const Geometry& geometry,
                                      const DetectOptions& options);

}  // namespace tenon::pipeline

#endif  // TENON_PIPELINE_DECODERS_H
