// resize: images resampled along rows and columns with given weights.
#ifndef TENON_KERNELS_CUDA_RESIZE_H_
#define TENON_KERNELS_CUDA_RESIZE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/element_type.h"

namespace tenon::cuda {

// Output cell o is the sum over t < taps of weight[o * taps + t] * input cell index[o * taps + t]; a tap of weight 0 is
// not read. Tables are in device memory.
struct ResizeTable {
  int64_t in = 0;
  int64_t out = 0;
  int taps = 1;
  const int32_t* index = nullptr;  // [out][taps], each in [0, in)
  const float* weight = nullptr;   // [out][taps]; unused by resize_nearest
};

// x [planes][rows.in][columns.in][inner] to y [planes][rows.out][columns.out][inner], float types. Launches on the
// stream, allocates nothing, does not wait, may be captured; returns the error of the launch. REQUIRES: buffers aligned
// to their element and not overlapping.
cudaError_t resize(ElementType type, int64_t planes, const ResizeTable& rows, const ResizeTable& columns, int64_t inner,
                   const void* x, void* y, cudaStream_t stream) noexcept;

// The same of one tap with weight 1, for elements of 1, 2, 4 or 8 bytes; cudaErrorInvalidValue for others.
cudaError_t resize_nearest(int64_t planes, const ResizeTable& rows, const ResizeTable& columns, int64_t inner,
                           int element_size, const void* x, void* y, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_RESIZE_H_
