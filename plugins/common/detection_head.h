// The grid of a Darknet detection head, shared by region (YOLOv2) and yolo (YOLOv3): [N, anchors*(coords+1+classes), H,
// W]. For each anchor: x and y (logistic), the other coords (untouched), objectness (logistic), then the classes.
#ifndef TENON_PLUGINS_COMMON_DETECTION_HEAD_H_
#define TENON_PLUGINS_COMMON_DETECTION_HEAD_H_

#include <algorithm>
#include <cmath>

#include <tenon/sdk/questions.hpp>

#include "kernels/cpu/pointwise.h"

namespace tenon::plugins {

struct DetectionHead {
  int64_t anchors, coords, classes;

  DetectionHead(const Attrs& attrs, int64_t coordinates)
      : anchors(attrs.i64("anchors")), coords(coordinates), classes(attrs.i64("classes")) {}
  int64_t entries() const { return coords + 1 + classes; }

  // Output as input; Invalid if the channels do not fit.
  void infer(const Infer& question) const {
    const Tensor x = question.input(0, 4);
    if (x.dtype() != TN_F32) throw Invalid(text("input x: expected f32, found ", dtype_name(x.dtype())));
    if (x.dim(1) != anchors * entries()) {
      throw Invalid(text("input x: expected ", anchors * entries(), " channels for ", anchors, " anchors x (", coords,
                         " coords + 1 + ", classes, " classes), found ", to_text(x.dims())));
    }
    question.output(0, x.dtype(), x.dims());
  }
};

inline double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_DETECTION_HEAD_H_
