// What tenon.conv/1 and tenon.conv_transpose/1 have in common: inputs, shapes and kernel.
#ifndef TENON_PLUGINS_COMMON_CONV_ND_H_
#define TENON_PLUGINS_COMMON_CONV_ND_H_

#include <memory>
#include <tenon/sdk/op.hpp>
#include <tenon/sdk/site.hpp>

#include "kernels/cpu/conv.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"
#include "plugins/common/windows.h"

namespace tenon::plugins {

// Input numbers.
inline constexpr int kConvNdX = 0, kConvNdWeights = 1, kConvNdBias = 2;

using ConvShapeOf = cpu::ConvShape (*)(const Attrs& attrs, const Dims& x, const Dims& weights);

// Images [N,C,d1,...,dr] and a kernel with the same r.
inline void check_conv_ranks(const Dims& x, const Dims& weights) {
  if (x.rank < 3 || weights.rank != x.rank) {
    throw Invalid(text("expected x [N,C,d1,...] and weights of the same rank of at least 3, found ", to_text(x),
                       " and ", to_text(weights)));
  }
}

// `first` and `second` are the channels that dims 0 and 1 of the weights stand for: dim 0 is all of `first`, dim 1
// `second` / groups.
inline void check_conv_groups(int64_t groups, int64_t first, int64_t second, const Dims& weights) {
  if (first % groups != 0 || second % groups != 0) {
    throw Invalid(
        text("attribute 'groups': expected a divisor of the ", first, " and ", second, " channels, found ", groups));
  }
  if (weights[0] != first || weights[1] != second / groups) {
    throw Invalid(text("input weights: expected [", first, ",", second / groups, ",...] for ", groups,
                       " groups, found ", to_text(weights)));
  }
}

inline void check_conv_dtypes(const Infer& question, int64_t outputs) {
  const Tensor x = question.input(kConvNdX), weights = question.input(kConvNdWeights);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  if (weights.dtype() != x.dtype()) {
    throw Invalid(
        text("input weights: expected ", dtype_name(x.dtype()), " as x, found ", dtype_name(weights.dtype())));
  }
  if (!question.has_input(kConvNdBias)) return;
  const Tensor bias = question.input(kConvNdBias);
  if (bias.dims() != Dims{outputs} || bias.dtype() != x.dtype()) {
    throw Invalid(text("input bias: expected [", outputs, "] of ", dtype_name(x.dtype()), ", found ",
                       to_text(bias.dims()), " of ", dtype_name(bias.dtype())));
  }
}

inline Dims conv_output_dims(const cpu::ConvShape& shape, const int64_t* spatial) {
  Dims dims = {shape.n, shape.outputs};
  for (int axis = 0; axis < shape.windows.rank; ++axis) dims.push_back(spatial[axis]);
  return dims;
}

// Of tenon.conv/1 and tenon.conv_transpose/1. Invalid names what does not fit.
inline cpu::ConvShape conv_shape(const Attrs& attrs, const Dims& x, const Dims& weights) {
  check_conv_ranks(x, weights);
  cpu::ConvShape shape;
  shape.n = x[0], shape.inputs = x[1], shape.outputs = weights[0];
  shape.groups = attrs.i64("groups");
  check_conv_groups(shape.groups, shape.outputs, shape.inputs, weights);
  shape.windows = windows_of(attrs, weights.d + 2, weights.rank - 2);
  slide_over(attrs, x.d + 2, &shape.windows);
  return shape;
}

inline cpu::ConvShape conv_transpose_shape(const Attrs& attrs, const Dims& x, const Dims& weights) {
  check_conv_ranks(x, weights);
  cpu::ConvShape shape;
  shape.n = x[0], shape.inputs = x[1];
  shape.groups = attrs.i64("groups");
  shape.outputs = checked_product(weights[1], shape.groups, "output channels");
  check_conv_groups(shape.groups, shape.inputs, shape.outputs, weights);
  const int rank = weights.rank - 2;
  cpu::Windows& w = shape.windows;
  w = windows_of(attrs, weights.d + 2, rank);
  const std::vector<int64_t> more = pixels_or(attrs, "output_padding", rank, 0, 0);
  for (int axis = 0; axis < rank; ++axis) {
    w.count[axis] = x[axis + 2];
    const int64_t whole =
        checked_product(w.count[axis] - 1, w.stride[axis], "output size") + (w.kernel[axis] - 1) * w.dilation[axis] + 1;
    w.image[axis] = checked_sum(whole, more[static_cast<size_t>(axis)] - both_pads(attrs, rank, axis), "output size");
    if (w.image[axis] < 1 || w.image[axis] > INT32_MAX) {
      throw Invalid(text("attribute 'pads': spatial axis ", axis, " of the output has ", w.image[axis],
                         " pixels, expected 1 to ", INT32_MAX));
    }
  }
  return shape;
}

// A kernel on a function of kernels/cpu/conv.h.
class ConvNdKernel final : public IPlugin {
 public:
  using Run = decltype(&cpu::conv);
  using Workspace = decltype(&cpu::conv_workspace_bytes);
  ConvNdKernel(ConvShapeOf shape_of, Workspace workspace, Run run)
      : shape_of_(shape_of), workspace_(workspace), run_(run) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    if (!site.is_static()) throw Declined("it works on fixed dims");
    shape_ = shape_of_(site.attrs(), site.dims(kConvNdX), site.dims(kConvNdWeights));
    has_bias_ = site.has_input(kConvNdBias);
    sizes_.workspace = workspace_(shape_, site.threads(), cpu::detect_isa());
  }
  Sizes sizes() const override { return sizes_; }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const auto floats = [&](int n) { return static_cast<const float*>(inputs[n].data); };
    run_(shape_, floats(kConvNdX), floats(kConvNdWeights), has_bias_ ? floats(kConvNdBias) : nullptr,
         static_cast<float*>(outputs[0].data), exec.workspace<void>(), to_parallel(exec), cpu::detect_isa());
  }

 private:
  ConvShapeOf shape_of_;
  Workspace workspace_;
  Run run_;
  cpu::ConvShape shape_;
  bool has_bias_ = false;
  Sizes sizes_;
};

inline Kernel conv_nd_kernel(const std::string& op, const std::string& name, ConvShapeOf shape_of,
                             ConvNdKernel::Workspace workspace, ConvNdKernel::Run run) {
  Kernel definition(op, name, [=] { return std::make_unique<ConvNdKernel>(shape_of, workspace, run); });
  definition.combo({f32_row(), f32_row(), f32_row()}, {f32_row()})
      .supports([](const Site& site) {
        if (!site.is_static()) throw Declined("it works on fixed dims");
      })
      .tactics([=](const Site& site, const Combo&, Tactics& tactics) {
        const cpu::ConvShape shape = shape_of(site.attrs(), site.dims(kConvNdX), site.dims(kConvNdWeights));
        tactics.add("", workspace(shape, site.threads(), cpu::detect_isa()));
      })
      .deterministic();
  return definition;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_CONV_ND_H_
