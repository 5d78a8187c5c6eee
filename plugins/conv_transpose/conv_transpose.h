// The shape of tenon.conv_transpose/1, shared by its definition and its kernels.
#ifndef TENON_PLUGINS_CONV_TRANSPOSE_CONV_TRANSPOSE_H_
#define TENON_PLUGINS_CONV_TRANSPOSE_CONV_TRANSPOSE_H_

#include "plugins/common/conv_nd.h"

namespace tenon::plugins {

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

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_CONV_TRANSPOSE_CONV_TRANSPOSE_H_
