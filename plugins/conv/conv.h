// The shape of tenon.conv/1, shared by its definition and its kernels.
#ifndef TENON_PLUGINS_CONV_CONV_H_
#define TENON_PLUGINS_CONV_CONV_H_

#include "plugins/common/conv_nd.h"

namespace tenon::plugins {

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

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_CONV_CONV_H_
