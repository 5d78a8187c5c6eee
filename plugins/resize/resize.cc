// tenon.resize/1: images (and anything else) in another size.
#include "plugins/resize/resize.h"

#include <array>
#include <cmath>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/move.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

bool crops(const Attrs& attrs) { return attrs.str("coordinate_transformation_mode") == "tf_crop_and_resize"; }

template <class Question>
ResizeGeometry geometry_of(const Question& question, bool crop) {
  const auto input = [&](int n) { return question.has_input(n) ? question.input(n) : Tensor(question.input(0)); };
  const Tensor roi = input(kResizeRoi), scales = input(kResizeScales), sizes = input(kResizeSizes);
  const auto present = [&](int n, const Tensor& tensor) { return question.has_input(n) ? &tensor : nullptr; };
  return resize_geometry(question.attrs(), question.input(kResizeX).dims(), present(kResizeRoi, roi),
                         present(kResizeScales, scales), present(kResizeSizes, sizes), crop);
}

void resize_infer(const Infer& question) {
  const Tensor x = question.input(kResizeX);
  const ResizeOptions options = resize_options(question.attrs());
  // Not of interest for the shape, but roi has to be there and to fit.
  if (crops(question.attrs()) && question.has_input(kResizeRoi) && question.input(kResizeRoi).rank() != 1) {
    throw Invalid(text("input roi: expected rank 1, found ", to_text(question.input(kResizeRoi).dims())));
  }
  if (crops(question.attrs()) && !question.has_input(kResizeRoi)) {
    throw Invalid("tf_crop_and_resize: expected the input roi, found none");
  }
  if (options.mode != "nearest" && x.dtype() == TN_BOOL) throw Invalid("input x: bool can only be resized to nearest");
  const ResizeGeometry g = geometry_of(question, false);
  Dims dims = x.dims();
  for (int axis = 0; axis < g.rank; ++axis) {
    dims[axis] = g.axes[axis].out;
    if (g.axes[axis].in == 0 && g.axes[axis].out != 0) throw Invalid("an axis of 0 cells cannot be resized");
  }
  question.output(0, x.dtype(), dims);
}

// Integers are rounded to the nearest, halves to even, as the standard's saturating cast does.
template <class T>
T to_element(double value) {
  if constexpr (std::is_integral_v<T>) {
    value = std::nearbyint(value);
    if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

void resize_reference(const Reference& call) {
  const ResizeOptions options = resize_options(call.attrs());
  const ResizeGeometry g = geometry_of(call, crops(call.attrs()));
  std::array<ResizeTaps, TN_MAX_RANK> taps;
  int64_t strides[TN_MAX_RANK] = {};
  row_strides(call.input(kResizeX).dims(), strides);
  for (int axis = 0; axis < g.rank; ++axis) taps[static_cast<size_t>(axis)] = resize_taps(options, g.axes[axis]);
  const auto at = [&](int axis, int64_t o, int t) {
    const ResizeTaps& list = taps[static_cast<size_t>(axis)];
    return static_cast<size_t>(o) * static_cast<size_t>(list.count) + static_cast<size_t>(t);
  };
  if (options.mode == "nearest" && !crops(call.attrs())) {
    copy_reference(call, kResizeX, [&](const int64_t* index, int64_t) {
      int64_t from = 0;
      for (int axis = 0; axis < g.rank; ++axis) {
        from += taps[static_cast<size_t>(axis)].index[at(axis, index[axis], 0)] * strides[axis];
      }
      return from;
    });
    return;
  }
  visit_number(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(kResizeX).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      for (int axis = 0; axis < g.rank; ++axis) {
        if (taps[static_cast<size_t>(axis)].outside[static_cast<size_t>(index[axis])]) {
          return to_element<T>(options.extrapolation);
        }
      }
      // All combinations of one tap per axis.
      int tap[TN_MAX_RANK] = {};
      double sum = 0;
      for (;;) {
        double weight = 1;
        int64_t from = 0;
        for (int axis = 0; axis < g.rank; ++axis) {
          const size_t n = at(axis, index[axis], tap[axis]);
          weight *= taps[static_cast<size_t>(axis)].weight[n];
          from += taps[static_cast<size_t>(axis)].index[n] * strides[axis];
        }
        if (weight != 0) sum += weight * static_cast<double>(x[from]);
        int axis = g.rank - 1;
        while (axis >= 0 && ++tap[axis] == taps[static_cast<size_t>(axis)].count) tap[axis--] = 0;
        if (axis < 0) return to_element<T>(sum);
      }
    });
  });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN(
    "tenon.resize", "1", "Apache-2.0",
    tenon::op("tenon.resize/1")
        .doc("Another size along some axes: y at o is x at the coordinate that o is transformed to, interpolated along "
             "each axis. Formulas: https://onnx.ai/onnx/operators/onnx__Resize.html; roi has no influence on the size")
        .attr_str("mode", "interpolation")
        .default_value("nearest")
        .range("nearest|linear|cubic")
        .attr_str("coordinate_transformation_mode", "from coordinates of y to those of x")
        .default_value("half_pixel")
        .range("half_pixel|half_pixel_symmetric|pytorch_half_pixel|align_corners|asymmetric|tf_half_pixel_for_nn|"
               "tf_crop_and_resize")
        .attr_str("nearest_mode", "which cell is nearest")
        .default_value("round_prefer_floor")
        .range("round_prefer_floor|round_prefer_ceil|floor|ceil")
        .attr_str("keep_aspect_ratio_policy", "how sizes are meant: as given, or as bounds with one scale for all axes")
        .default_value("stretch")
        .range("stretch|not_larger|not_smaller")
        .attr_i64s("axes", "those that roi, scales and sizes speak of; none: all")
        .attr_f64("cubic_coeff_a", "a of the cubic filter")
        .default_value("-0.75")
        .attr_i64("exclude_outside", "1: cells outside x have weight 0, and the other weights make up for them")
        .default_value("0")
        .range("0|1")
        .attr_i64("antialias", "1: the filters of linear and cubic widen where x shrinks")
        .default_value("0")
        .range("0|1")
        .attr_f64("extrapolation_value", "tf_crop_and_resize: value of cells whose coordinate is outside x")
        .default_value("0")
        .input("x", "any rank; nearest: any dtype of whole bytes, else numbers")
        .input("roi", "[starts..., ends...], 1 is the size of x; only for tf_crop_and_resize")
        .optional()
        .input("scales", "one per axis; the output has floor(size * scale) cells")
        .optional()
        .host_value()
        .input("sizes", "one per axis; either scales or sizes")
        .optional()
        .host_value()
        .host_value()
        .output("y")
        .infer(tenon::plugins::resize_infer)
        .reference(tenon::plugins::resize_reference)
        .tolerance([](const tenon::Attrs&, int32_t dtype) { return tenon::plugins::pointwise_tolerance(dtype); }),
    tenon::plugins::resize_kernels())
