// Sizes of a 2-D convolution, for every device.
#ifndef TENON_KERNELS_COMMON_CONV2D_GEOMETRY_H_
#define TENON_KERNELS_COMMON_CONV2D_GEOMETRY_H_

#include <cstdint>

namespace tenon::kernels {

// REQUIRES: sizes and pads >= 0; r, s, strides, dilations and groups >= 1; c and k divisible by groups. The output size
// is the caller's choice (rounding rules differ): windows may lie partly or wholly outside the image.
struct Conv2dGeometry {
  int64_t n = 1, c = 0, h = 0, w = 0;  // input
  int64_t k = 0, r = 1, s = 1;         // output channels, kernel height and width
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;
  int64_t oh = 0, ow = 0;  // output
};

// floor((in + pad_begin + pad_end - (dilation * (kernel - 1) + 1)) / stride) + 1, and 0 where the kernel does not fit.
constexpr int64_t conv2d_output_size(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad_begin,
                                     int64_t pad_end) {
  const int64_t room = in + pad_begin + pad_end - (dilation * (kernel - 1) + 1);
  return room < 0 ? 0 : room / stride + 1;
}

// Multiply-adds, of which some may be with zeros outside the image.
constexpr int64_t conv2d_work(const Conv2dGeometry& g) {
  return g.n * g.k * g.oh * g.ow * (g.c / g.groups) * g.r * g.s;
}

}  // namespace tenon::kernels

namespace tenon::cpu {
using kernels::conv2d_output_size;
using kernels::conv2d_work;
using kernels::Conv2dGeometry;
}  // namespace tenon::cpu

namespace tenon::cuda {
using kernels::conv2d_output_size;
using kernels::Conv2dGeometry;
}  // namespace tenon::cuda

#endif  // TENON_KERNELS_COMMON_CONV2D_GEOMETRY_H_
