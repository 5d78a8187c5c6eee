// tenon.conv2d/1: 2-D convolution.
#include "plugins/conv2d/conv2d.h"

#include <tenon/sdk/plugin.hpp>

#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

void conv2d_infer(const Infer& question) {
  const Tensor x = question.input(kConvX);
  const Tensor weights = question.input(kConvWeights);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  if (weights.dtype() != x.dtype()) {
    throw Invalid(
        text("input weights: expected dtype ", dtype_name(x.dtype()), " as of x, found ", dtype_name(weights.dtype())));
  }
  const cpu::Conv2dGeometry g = conv2d_geometry(question.attrs(), x.dims(), weights.dims());
  if (question.has_input(kConvBias)) {
    const Tensor bias = question.input(kConvBias);
    if (bias.dims() != Dims{g.k} || bias.dtype() != x.dtype()) {
      throw Invalid(text("input bias: expected [", g.k, "] of ", dtype_name(x.dtype()), ", found ",
                         to_text(bias.dims()), " of ", dtype_name(bias.dtype())));
    }
  }
  if (g.oh < 1 || g.ow < 1) {
    throw Invalid(text("the kernel ", g.r, "x", g.s, " does not fit into the padded input ", to_text(x.dims())));
  }
  question.output(0, x.dtype(), {g.n, g.k, g.oh, g.ow});
}

void conv2d_reference(const Reference& call) {
  const cpu::Conv2dGeometry g =
      conv2d_geometry(call.attrs(), call.input(kConvX).dims(), call.input(kConvWeights).dims());
  const int64_t group_in = g.c / g.groups;
  const int64_t group_out = g.k / g.groups;
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(kConvX).data<T>();
    const T* weights = call.input(kConvWeights).data<T>();
    const T* bias = call.has_input(kConvBias) ? call.input(kConvBias).data<T>() : nullptr;
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      const int64_t n = index[0], k = index[1];
      double sum = bias != nullptr ? static_cast<double>(bias[k]) : 0.0;
      for (int64_t c = 0; c < group_in; ++c) {
        const T* plane = x + (n * g.c + k / group_out * group_in + c) * g.h * g.w;
        const T* taps = weights + (k * group_in + c) * g.r * g.s;
        for (int64_t r = 0; r < g.r; ++r) {
          const int64_t h = index[2] * g.stride_h - g.pad_top + r * g.dilation_h;
          if (h < 0 || h >= g.h) continue;
          for (int64_t s = 0; s < g.s; ++s) {
            const int64_t w = index[3] * g.stride_w - g.pad_left + s * g.dilation_w;
            if (w < 0 || w >= g.w) continue;
            sum += static_cast<double>(plane[h * g.w + w]) * static_cast<double>(taps[r * g.s + s]);
          }
        }
      }
      return static_cast<T>(sum);
    });
  });
}

// Each output channel reads all input channels, so the channels of several convolutions are those of one.
Siblings conv2d_siblings(const Infer& inferred) {
  if (inferred.attrs().i64("groups") != 1) throw Declined("a group reads only some of the input channels");
  return {1, {TN_SAME_VALUE, 0, 0}};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.conv2d", "1", "Apache-2.0",
             tenon::op("tenon.conv2d/1")
                 .doc("2-D convolution (cross-correlation). y[n,k,i,j] = bias[k] + sum over c,r,s of "
                      "x[n, g*C/groups + c, i*stride_h - top + r*dilation_h, j*stride_w - left + s*dilation_w] * "
                      "weights[k,c,r,s], g = k / (K/groups), x = 0 outside the image")
                 .attr_i64s("strides", "[vertical, horizontal], pixels")
                 .default_value("1,1")
                 .attr_i64s("pads", "[top, left, bottom, right], pixels of zeros")
                 .default_value("0,0,0,0")
                 .attr_i64s("dilations", "[vertical, horizontal]; 1: dense")
                 .default_value("1,1")
                 .attr_i64("groups", "input and output channels are split into as many groups")
                 .default_value("1")
                 .range("[1,)")
                 .input("x", "[N,C,H,W], floating")
                 .input("weights", "[K,C/groups,R,S]")
                 .input("bias", "[K]")
                 .optional()
                 .output("y", "[N,K,OH,OW]; OH = floor((H + top + bottom - dilation*(R-1) - 1) / stride) + 1")
                 .infer(tenon::plugins::conv2d_infer)
                 .reference(tenon::plugins::conv2d_reference)
                 .siblings(tenon::plugins::conv2d_siblings)
                 .tolerance([](const tenon::Attrs&, int32_t dtype) { return tenon::plugins::sum_tolerance(dtype); }),
             tenon::plugins::conv2d_kernels(), tenon::plugins::conv2d_rules())
