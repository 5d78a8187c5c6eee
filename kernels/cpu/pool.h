// pool: 2-D maximum and average pooling, float32, in any layout (input and output in the same one).
// Nothing is allocated or thrown; results are the same bits for every thread count.
#ifndef TENON_KERNELS_CPU_POOL_H_
#define TENON_KERNELS_CPU_POOL_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/layout.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

enum class PoolKind {
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

// 0 for all layouts but kNchw, where each thread holds one padded row. The workspace needs 64-byte alignment.
size_t pool_workspace_bytes(const PoolGeometry& geometry, Layout layout, int threads, Isa isa) noexcept;

// REQUIRES: isa <= detect_isa(). Filling channels of a blocked output are written as 0.
void pool(PoolKind kind, const PoolGeometry& geometry, Layout layout, const float* input, float* output,
          void* workspace, const Parallel& parallel, Isa isa) noexcept;

// Mean over all h*w cells, which must be at least one. Output [n][c] for kNchw and kNhwc, and [n][ceil(c/b)][b] for the
// blocked layouts (filling channels 0).
void pool_global_average(Layout layout, int64_t n, int64_t c, int64_t h, int64_t w, const float* input, float* output,
                         const Parallel& parallel, Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_POOL_H_
