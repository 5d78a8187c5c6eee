// tenon.deform_conv/1: deformable convolution. On the reference alone.
#include <cmath>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/tolerance.h"
#include "plugins/common/windows.h"

namespace tenon::plugins {
namespace {

constexpr int kX = 0, kWeights = 1, kOffset = 2, kBias = 3, kMask = 4;

struct DeformShape {
  cpu::Windows windows;
  int64_t n, inputs, outputs, groups, offset_groups;
};

DeformShape deform_shape(const Attrs& attrs, const Dims& x, const Dims& weights) {
  if (x.rank < 3 || weights.rank != x.rank) {
    throw Invalid(
        text("expected x [N,C,d1,...] and weights of the same rank, found ", to_text(x), " and ", to_text(weights)));
  }
  DeformShape shape;
  shape.n = x[0], shape.inputs = x[1], shape.outputs = weights[0];
  shape.groups = attrs.i64("groups");
  shape.offset_groups = attrs.i64("offset_groups");
  if (shape.inputs % shape.groups != 0 || shape.outputs % shape.groups != 0) {
    throw Invalid(text("attribute 'groups': expected a divisor of ", shape.inputs, " input and ", shape.outputs,
                       " output channels, found ", shape.groups));
  }
  if (shape.inputs % shape.offset_groups != 0) {
    throw Invalid(text("attribute 'offset_groups': expected a divisor of ", shape.inputs, " channels, found ",
                       shape.offset_groups));
  }
  if (weights[1] != shape.inputs / shape.groups) {
    throw Invalid(text("input weights: expected ", shape.inputs / shape.groups, " channels, found ", to_text(weights)));
  }
  shape.windows = windows_of(attrs, weights.d + 2, weights.rank - 2);
  slide_over(attrs, x.d + 2, &shape.windows);
  return shape;
}

void check_input(const Infer& question, int n, const char* name, const Dims& dims) {
  const Tensor input = question.input(n);
  const int32_t dtype = question.input(kX).dtype();
  if (input.dims() != dims || input.dtype() != dtype) {
    throw Invalid(text("input ", name, ": expected ", to_text(dims), " of ", dtype_name(dtype), ", found ",
                       to_text(input.dims()), " of ", dtype_name(input.dtype())));
  }
}

void deform_infer(const Infer& question) {
  const Tensor x = question.input(kX);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  const Dims weights = question.input(kWeights).dims();
  const DeformShape shape = deform_shape(question.attrs(), x.dims(), weights);
  check_input(question, kWeights, "weights", weights);
  Dims dims = {shape.n, shape.outputs};
  for (int axis = 0; axis < shape.windows.rank; ++axis) dims.push_back(shape.windows.count[axis]);
  Dims field = dims;
  field[1] = checked_product(shape.offset_groups, shape.windows.taps(), "offsets");
  if (question.has_input(kMask)) check_input(question, kMask, "mask", field);
  field[1] = checked_product(field[1], shape.windows.rank, "offsets");
  check_input(question, kOffset, "offset", field);
  if (question.has_input(kBias)) check_input(question, kBias, "bias", {shape.outputs});
  question.output(0, x.dtype(), dims);
}

// Linear interpolation between the 2^rank pixels around a point; 0 outside.
template <class T>
double sample(const cpu::Windows& w, const T* image, const double* point) {
  double low[cpu::kMaxWindowAxes] = {}, part[cpu::kMaxWindowAxes] = {};
  for (int axis = 0; axis < w.rank; ++axis) {
    if (!(point[axis] > -1 && point[axis] < static_cast<double>(w.image[axis]))) return 0;
    low[axis] = std::floor(point[axis]);
    part[axis] = point[axis] - low[axis];
  }
  double sum = 0;
  for (int corner = 0; corner < 1 << w.rank; ++corner) {
    double weight = 1;
    int64_t at = 0;
    for (int axis = 0; axis < w.rank; ++axis) {
      const int high = corner >> axis & 1;
      const int64_t pixel = static_cast<int64_t>(low[axis]) + high;
      weight *= pixel < 0 || pixel >= w.image[axis] ? 0 : high != 0 ? part[axis] : 1 - part[axis];
      at = at * w.image[axis] + pixel;
    }
    if (weight != 0) sum += weight * static_cast<double>(image[at]);
  }
  return sum;
}

void deform_reference(const Reference& call) {
  const DeformShape shape = deform_shape(call.attrs(), call.input(kX).dims(), call.input(kWeights).dims());
  const cpu::Windows& w = shape.windows;
  const int64_t in = shape.inputs / shape.groups, out = shape.outputs / shape.groups, taps = w.taps();
  const int64_t positions = w.positions(), per_offset = shape.inputs / shape.offset_groups;
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(kX).data<T>();
    const T* weights = call.input(kWeights).data<T>();
    const T* offset = call.input(kOffset).data<T>();
    const T* bias = call.has_input(kBias) ? call.input(kBias).data<T>() : nullptr;
    const T* mask = call.has_input(kMask) ? call.input(kMask).data<T>() : nullptr;
    call.fill<T>(0, [&](const int64_t* index, int64_t linear) {
      const int64_t n = index[0], k = index[1], position = linear % positions;
      double sum = bias != nullptr ? static_cast<double>(bias[k]) : 0.0;
      for (int64_t c = 0; c < in; ++c) {
        const int64_t channel = k / out * in + c;
        for (int64_t tap = 0; tap < taps; ++tap) {
          const int64_t field = (n * shape.offset_groups + channel / per_offset) * taps + tap;
          double point[cpu::kMaxWindowAxes];
          int64_t rest = tap;
          for (int axis = w.rank - 1; axis >= 0; --axis) {
            point[axis] = static_cast<double>(index[axis + 2] * w.stride[axis] - w.pad[axis] +
                                              rest % w.kernel[axis] * w.dilation[axis]) +
                          static_cast<double>(offset[(field * w.rank + axis) * positions + position]);
            rest /= w.kernel[axis];
          }
          const double scale = mask != nullptr ? static_cast<double>(mask[field * positions + position]) : 1;
          sum += scale * static_cast<double>(weights[(k * in + c) * taps + tap]) *
                 sample(w, x + (n * shape.inputs + channel) * w.pixels(), point);
        }
      }
      return static_cast<T>(sum);
    });
  });
}

Definitions deform_conv_definitions() {
  Op definition = op("tenon.deform_conv/1");
  definition
      .doc(
          "Deformable convolution (https://arxiv.org/abs/1703.06211, 1811.11168): as tenon.conv/1, but tap t at o "
          "reads "
          "mask[n, g*taps + t, o...] * x at o*stride - pad + t*dilation + offset[n, (g*taps + t)*axes + axis, o...], "
          "linearly interpolated, 0 outside; g is the offset group of the channel")
      .attr_i64("groups", "input and output channels are split into as many groups")
      .default_value("1")
      .range("[1,)")
      .attr_i64("offset_groups", "input channels are split into as many groups, each with its own offsets")
      .default_value("1")
      .range("[1,)")
      .input("x", "[N,C,d1,...], floating")
      .input("weights", "[K,C/groups,t1,...]")
      .input("offset", "[N,offset_groups*taps*axes,o1,...]")
      .input("bias", "[K]")
      .optional()
      .input("mask", "[N,offset_groups*taps,o1,...]")
      .optional()
      .output("y", "[N,K,o1,...]")
      .infer(deform_infer)
      .reference(deform_reference)
      .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); });
  add_window_attributes(definition);
  return {definition};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.deform_conv", "1", "Apache-2.0", tenon::plugins::deform_conv_definitions())
