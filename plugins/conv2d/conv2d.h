// Geometry of tenon.conv2d/1, shared by its op definition and its adapters.
#ifndef TENON_PLUGINS_CONV2D_CONV2D_H_
#define TENON_PLUGINS_CONV2D_CONV2D_H_

#include <tenon/sdk/definition.hpp>
#include <tenon/sdk/site.hpp>

#include "kernels/cpu/conv2d.h"
#include "plugins/common/checked.h"

namespace tenon::plugins {

// Input numbers of the op.
inline constexpr int kConvX = 0, kConvWeights = 1, kConvBias = 2;

// x [N,C,H,W] and weights [K,C/groups,R,S] with the attributes. Invalid names the attribute or input that does not fit.
inline cpu::Conv2dGeometry conv2d_geometry(const Attrs& attrs, const Dims& x, const Dims& weights) {
  if (x.rank != 4) throw Invalid(text("input x: expected rank 4 [N,C,H,W], found shape ", to_text(x)));
  if (weights.rank != 4) {
    throw Invalid(text("input weights: expected rank 4 [K,C/groups,R,S], found shape ", to_text(weights)));
  }
  const List<int64_t> strides = pixels(attrs, "strides", 2, 1);
  const List<int64_t> dilations = pixels(attrs, "dilations", 2, 1);
  const List<int64_t> pads = pixels(attrs, "pads", 4, 0);
  cpu::Conv2dGeometry g;
  g.n = x[0], g.c = x[1], g.h = x[2], g.w = x[3];
  g.k = weights[0], g.r = weights[2], g.s = weights[3];
  g.groups = attrs.i64("groups");
  g.stride_h = strides[0], g.stride_w = strides[1];
  g.dilation_h = dilations[0], g.dilation_w = dilations[1];
  g.pad_top = pads[0], g.pad_left = pads[1], g.pad_bottom = pads[2], g.pad_right = pads[3];
  if (g.r < 1 || g.s < 1)
    throw Invalid(text("input weights: expected a kernel of at least 1x1, found ", to_text(weights)));
  if (g.c % g.groups != 0 || g.k % g.groups != 0) {
    throw Invalid(text("attribute 'groups': expected a divisor of ", g.c, " input and ", g.k,
                       " output channels, found ", g.groups));
  }
  if (weights[1] != g.c / g.groups) {
    throw Invalid(text("input weights: expected ", g.c / g.groups, " channels (", g.c, " of x in ", g.groups,
                       " groups), found shape ", to_text(weights)));
  }
  g.oh = cpu::conv2d_output_size(g.h, g.r, g.stride_h, g.dilation_h, g.pad_top, g.pad_bottom);
  g.ow = cpu::conv2d_output_size(g.w, g.s, g.stride_w, g.dilation_w, g.pad_left, g.pad_right);
  return g;
}

inline cpu::Conv2dGeometry conv2d_geometry(const Site& site) {
  return conv2d_geometry(site.attrs(), site.dims(kConvX), site.dims(kConvWeights));
}

// Declined unless dims are fixed, and weights and bias constant.
inline void require_static_constant(const Site& site) {
  if (!site.is_static()) throw Declined("it packs for fixed dims");
  if (!site.is_constant(kConvWeights)) throw Declined("the weights are not constant");
  if (site.has_input(kConvBias) && !site.is_constant(kConvBias)) throw Declined("the bias is not constant");
}

// Tenon's own kernels, one for each algorithm of kernels/cpu/conv2d.h.
Definitions conv2d_kernels();

// Rules that fold what follows a convolution into its constants.
Definitions conv2d_rules();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_CONV2D_CONV2D_H_
