// tenon.conv_transpose/1: transposed convolution over any number of spatial axes, and Tenon's kernel for it.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/conv_nd.h"

namespace tenon::plugins {
namespace {

void conv_transpose_infer(const Infer& question) {
  const Tensor x = question.input(kConvNdX);
  const cpu::ConvShape shape = conv_transpose_shape(question.attrs(), x.dims(), question.input(kConvNdWeights).dims());
  check_conv_dtypes(question, shape.outputs);
  question.output(0, x.dtype(), conv_output_dims(shape, shape.windows.image));
}

void conv_transpose_reference(const Reference& call) {
  const cpu::ConvShape shape =
      conv_transpose_shape(call.attrs(), call.input(kConvNdX).dims(), call.input(kConvNdWeights).dims());
  const cpu::Windows& w = shape.windows;
  const int64_t in = shape.inputs / shape.groups, out = shape.outputs / shape.groups, taps = w.taps();
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(kConvNdX).data<T>();
    const T* weights = call.input(kConvNdWeights).data<T>();
    const T* bias = call.has_input(kConvNdBias) ? call.input(kConvNdBias).data<T>() : nullptr;
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      const int64_t n = index[0], k = index[1], first = k / out * in;
      double sum = bias != nullptr ? static_cast<double>(bias[k]) : 0.0;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t position = tap_position(w, index + 2, tap);
        if (position < 0) continue;
        for (int64_t c = first; c < first + in; ++c) {
          sum += static_cast<double>(x[(n * shape.inputs + c) * w.positions() + position]) *
                 static_cast<double>(weights[(c * out + k % out) * taps + tap]);
        }
      }
      return static_cast<T>(sum);
    });
  });
}

Definitions conv_transpose_definitions() {
  Op definition = op("tenon.conv_transpose/1");
  definition
      .doc(
          "Transposed convolution: every x[n,c,i...] adds x * weights[c,k,t...] to y[n,k,i*stride - pad + t*dilation] "
          "for the k of its group; y begins with bias[k]. An axis of y has (i - 1)*stride + dilation*(t - 1) + 1 "
          "- pads + output_padding pixels (https://onnx.ai/onnx/operators/onnx__ConvTranspose.html)")
      .attr_i64("groups", "input and output channels are split into as many groups")
      .default_value("1")
      .range("[1,)")
      .attr_i64s("output_padding", "pixels more at the end of each axis; none: 0")
      .input("x", "[N,C,i1,...], floating")
      .input("weights", "[C,K/groups,t1,...]")
      .input("bias", "[K]")
      .optional()
      .output("y", "[N,K,o1,...]")
      .infer(conv_transpose_infer)
      .reference(conv_transpose_reference)
      .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); });
  add_window_attributes(definition);
  return {definition, conv_nd_kernel("tenon.conv_transpose/1", "tenon.conv_transpose.col2im.f32", conv_transpose_shape,
                                     cpu::conv_transpose_workspace_bytes, cpu::conv_transpose)};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.conv_transpose", "1", "Apache-2.0", tenon::plugins::conv_transpose_definitions())
