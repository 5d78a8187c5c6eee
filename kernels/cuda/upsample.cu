#include "kernels/cuda/upsample.h"

#include "kernels/cuda/common.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

// Threads stride over the outputs, seen as [planes][h][factor_h][w][factor_w][lanes]: in NCHW planes are n*c and lanes
// 1, in NHWC n and c. Bound: memory.
template <class T, class Index>
__global__ void __launch_bounds__(kThreads)
    upsample_kernel(int64_t count, Divider<Index> lanes, Divider<Index> across, Divider<Index> w, Divider<Index> down,
                    float scale, const T* input, T* output) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    Index lane = static_cast<Index>(i);
    Index rest = lanes.split(&lane);
    rest = across.quotient(rest);
    Index column = rest;
    rest = w.split(&column);
    const int64_t row = down.quotient(rest);  // of all planes
    const T v = input[(row * w.divisor + column) * lanes.divisor + lane];
    output[i] = scale == 1.0f ? v : from_float<T>(scale * to_float(v));
  }
}

}  // namespace

cudaError_t upsample_nearest(ElementType type, Layout layout, int64_t n, int64_t c, int64_t h, int64_t w,
                             int64_t factor_h, int64_t factor_w, float scale, const void* input, void* output,
                             cudaStream_t stream) noexcept {
  if (layout_block(layout) != 1) return cudaErrorInvalidValue;
  const int64_t count = n * c * h * factor_h * w * factor_w;
  if (n <= 0 || c <= 0 || h <= 0 || w <= 0) return cudaSuccess;
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    with_index(count, [&](auto index) {
      using Index = decltype(index);
      upsample_kernel<T, Index><<<grid_for(count, kThreads), kThreads, 0, stream>>>(
          count, Divider<Index>(layout == Layout::kNhwc ? c : 1), Divider<Index>(factor_w), Divider<Index>(w),
          Divider<Index>(factor_h), scale, static_cast<const T*>(input), static_cast<T*>(output));
    });
    error = cudaGetLastError();
  });
  return error;
}

}  // namespace tenon::cuda
