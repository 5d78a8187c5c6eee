// The grid of a Darknet detection head, shared by region (YOLOv2) and yolo (YOLOv3): [N, anchors*(coords+1+classes), H,
// W]. For each anchor: x and y (logistic), the other coords (untouched), objectness (logistic), then the classes.
#ifndef TENON_PLUGINS_COMMON_DETECTION_HEAD_H_
#define TENON_PLUGINS_COMMON_DETECTION_HEAD_H_

#include <algorithm>
#include <cmath>

#include <tenon/sdk/op.hpp>

#include "kernels/cpu/pointwise.h"
#include "plugins/common/checked.h"
#include "plugins/common/tolerance.h"

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
    const int64_t of_a_box = checked_sum(checked_sum(coords, 1, "entries of a box"), classes, "entries of a box");
    const int64_t channels = checked_product(anchors, of_a_box, "channels");
    if (x.dim(1) != channels) {
      throw Invalid(text("input x: expected ", channels, " channels for ", anchors, " anchors x (", coords,
                         " coords + 1 + ", classes, " classes), found ", to_text(x.dims())));
    }
    question.output(0, x.dtype(), x.dims());
  }
};

// The op of a head with what all heads share; the input is the family's to describe.
inline Op detection_op(const char* id) {
  return op(id)
      .attr_i64("anchors", "boxes a cell")
      .required()
      .range("[1,)")
      .attr_i64("classes")
      .required()
      .range("[1,)")
      .output("y", "as x")
      .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); });
}

inline double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_DETECTION_HEAD_H_
