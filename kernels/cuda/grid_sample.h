// grid_sample: images read at points that another tensor gives; float types.
#ifndef TENON_KERNELS_CUDA_GRID_SAMPLE_H_
#define TENON_KERNELS_CUDA_GRID_SAMPLE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/element_type.h"

namespace tenon::cuda {

enum class SampleMode : int { kNearest, kLinear, kCubic };  // nearest: halves go to the even pixel; cubic: a = -0.75
enum class SamplePadding : int { kZeros, kBorder, kReflection };

struct GridSampleShape {
  int64_t n = 1, c = 1;
  int axes = 2;                 // 2, or 3 but for kCubic
  int64_t size[3] = {1, 1, 1};  // of x: depth, height, width; depth is 1 for 2 axes
  int64_t points = 0;           // of y in one channel
  SampleMode mode = SampleMode::kLinear;
  SamplePadding padding = SamplePadding::kZeros;
  bool align_corners = false;
};

// y[n,c,p] = x[n,c] interpolated at grid[n,p], whose `axes` coordinates (the last axis first) run from -1 to 1 over the
// image. Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch.
// REQUIRES: sizes of at least 1; buffers aligned to their element and not overlapping.
cudaError_t grid_sample(ElementType type, const GridSampleShape& shape, const void* x, const void* grid, void* y,
                        cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_GRID_SAMPLE_H_
