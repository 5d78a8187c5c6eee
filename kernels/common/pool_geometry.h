// Kinds and sizes of pooling over an image, for every device.
#ifndef TENON_KERNELS_COMMON_POOL_GEOMETRY_H_
#define TENON_KERNELS_COMMON_POOL_GEOMETRY_H_

#include <cstdint>

namespace tenon::kernels {

enum class PoolKind : int {
  kMax,                // cells outside the image are ignored; a window wholly outside gives -inf; NaN propagates
  kAverage,            // mean of the cells inside the image; a window wholly outside gives 0
  kAverageIncludePad,  // sum of the cells inside the image, divided by the cells inside the image and its padding;
                       // 0 where that count is 0
};

// The window of output (oh, ow) starts at (oh*stride_h - pad_top, ow*stride_w - pad_left). The output size is the
// caller's choice, so every rounding rule and Darknet's geometry (pad_top = total / 2) are expressible.
// pad_bottom and pad_right matter to kAverageIncludePad alone.
// REQUIRES: sizes and pads >= 0; kernel, strides and dilations >= 1.
struct PoolGeometry {
  int64_t n = 1, c = 0, h = 0, w = 0;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t oh = 0, ow = 0;
};

}  // namespace tenon::kernels

namespace tenon::cpu {
using kernels::PoolGeometry;
using kernels::PoolKind;
}  // namespace tenon::cpu

namespace tenon::cuda {
using kernels::PoolGeometry;
using kernels::PoolKind;
}  // namespace tenon::cuda

#endif  // TENON_KERNELS_COMMON_POOL_GEOMETRY_H_
