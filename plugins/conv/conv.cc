// tenon.conv/1: convolution over any number of spatial axes, and Tenon's kernel for it.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/conv_nd.h"

namespace tenon::plugins {
namespace {

void conv_infer(const Infer& question) {
  const Tensor x = question.input(kConvNdX);
  const cpu::ConvShape shape = conv_shape(question.attrs(), x.dims(), question.input(kConvNdWeights).dims());
  check_conv_dtypes(question, shape.outputs);
  question.output(0, x.dtype(), conv_output_dims(shape, shape.windows.count));
}

void conv_reference(const Reference& call) {
  const cpu::ConvShape shape = conv_shape(call.attrs(), call.input(kConvNdX).dims(), call.input(kConvNdWeights).dims());
  const cpu::Windows& w = shape.windows;
  const int64_t in = shape.inputs / shape.groups, out = shape.outputs / shape.groups, taps = w.taps();
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(kConvNdX).data<T>();
    const T* weights = call.input(kConvNdWeights).data<T>();
    const T* bias = call.has_input(kConvNdBias) ? call.input(kConvNdBias).data<T>() : nullptr;
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      const int64_t n = index[0], k = index[1];
      double sum = bias != nullptr ? static_cast<double>(bias[k]) : 0.0;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t pixel = tap_pixel(w, index + 2, tap);
        if (pixel < 0) continue;
        for (int64_t c = 0; c < in; ++c) {
          sum += static_cast<double>(x[(n * shape.inputs + k / out * in + c) * w.pixels() + pixel]) *
                 static_cast<double>(weights[(k * in + c) * taps + tap]);
        }
      }
      return static_cast<T>(sum);
    });
  });
}

Definitions conv_definitions() {
  Op definition = op("tenon.conv/1");
  definition
      .doc(
          "Convolution (cross-correlation) over spatial axes. y[n,k,o...] = bias[k] + sum over c and taps t of "
          "x[n, g*C/groups + c, o*stride - pad + t*dilation] * weights[k,c,t...], g = k / (K/groups), x = 0 outside")
      .attr_i64("groups", "input and output channels are split into as many groups")
      .default_value("1")
      .range("[1,)")
      .input("x", "[N,C,d1,...], floating")
      .input("weights", "[K,C/groups,t1,...]")
      .input("bias", "[K]")
      .optional()
      .output("y", "[N,K,o1,...]")
      .infer(conv_infer)
      .reference(conv_reference)
      .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); });
  add_window_attributes(definition);
  // The kernels of conv2d pack weights once. This one is for weights that are computed.
  Kernel images =
      conv_nd_kernel("tenon.conv2d/1", "tenon.conv2d.unpacked.f32", conv_shape, cpu::conv_workspace_bytes, cpu::conv);
  images.supports([](const Site& site) {
    if (!site.is_static()) throw Declined("it works on fixed dims");
    if (site.is_constant(kConvNdWeights)) throw Declined("the weights are constant; others pack them");
  });
  return {definition, images,
          conv_nd_kernel("tenon.conv/1", "tenon.conv.im2col.f32", conv_shape, cpu::conv_workspace_bytes, cpu::conv)};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.conv", "1", "Apache-2.0", tenon::plugins::conv_definitions())
