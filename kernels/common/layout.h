// Memory layouts of 4-D image tensors, for every device.
#ifndef TENON_KERNELS_COMMON_LAYOUT_H_
#define TENON_KERNELS_COMMON_LAYOUT_H_

#include <cstdint>

namespace tenon::kernels {

enum class Layout {
  kNchw,     // [N][C][H][W]
  kNhwc,     // [N][H][W][C]
  kNchw8c,   // [N][ceil(C/8)][H][W][8]; the channels that fill up the last block are zero
  kNchw16c,  // [N][ceil(C/16)][H][W][16]; the channels that fill up the last block are zero
};

// Channels in a block: 8 or 16 for the blocked layouts, 1 for the others.
constexpr int64_t layout_block(Layout layout) {
  return layout == Layout::kNchw8c ? 8 : layout == Layout::kNchw16c ? 16 : 1;
}

// Elements that a tensor occupies, filling channels included.
constexpr int64_t layout_elements(Layout layout, int64_t n, int64_t c, int64_t h, int64_t w) {
  const int64_t block = layout_block(layout);
  return n * ((c + block - 1) / block * block) * h * w;
}

}  // namespace tenon::kernels

namespace tenon::cpu {
using kernels::Layout;
using kernels::layout_block;
using kernels::layout_elements;
}  // namespace tenon::cpu

namespace tenon::cuda {
using kernels::Layout;
using kernels::layout_block;
using kernels::layout_elements;
}  // namespace tenon::cuda

#endif  // TENON_KERNELS_COMMON_LAYOUT_H_
