// pool: 2-D maximum and average pooling in kNchw or kNhwc (input and output in the same one), float types
// (element_type.h).
// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch, and
// cudaErrorInvalidValue where pool_supports is false. The same sizes give the same bits. No overlap.
#ifndef TENON_KERNELS_CUDA_POOL_H_
#define TENON_KERNELS_CUDA_POOL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/element_type.h"
#include "kernels/cuda/layout.h"

namespace tenon::cuda {

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

// False for the blocked layouts, and where a window reaches a coordinate beyond 2^30 in either direction.
bool pool_supports(const PoolGeometry& geometry, Layout layout) noexcept;

cudaError_t pool(ElementType type, PoolKind kind, const PoolGeometry& geometry, Layout layout, const void* input,
                 void* output, cudaStream_t stream) noexcept;

// Mean over all h*w cells, which must be at least one. Output [n][c] for both layouts.
cudaError_t pool_global_average(ElementType type, Layout layout, int64_t n, int64_t c, int64_t h, int64_t w,
                                const void* input, void* output, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_POOL_H_
