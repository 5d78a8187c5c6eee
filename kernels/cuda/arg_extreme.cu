#include "kernels/cuda/order.cuh"
#include "kernels/cuda/top_k.h"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kWideInner = 32;  // from here on neighbouring lanes fill a warp's reads

// Value and place as one number, the greatest for the extreme element.
__device__ __forceinline__ uint64_t key_of(float x, bool smallest, bool last, int64_t place) {
  const uint32_t value = isnan(x) ? 0xffffffffu : smallest ? ~ordered(x) : ordered(x);
  const uint32_t at = static_cast<uint32_t>(place);
  return static_cast<uint64_t>(value) << 32 | (last ? at : ~at);
}
__device__ __forceinline__ int64_t place_of(uint64_t key, bool last) {
  const uint32_t at = static_cast<uint32_t>(key);
  return static_cast<int64_t>(last ? at : ~at);
}

// A thread for each lane. Bound: memory.
template <class T>
__global__ void __launch_bounds__(kThreads)
    lanes_kernel(bool smallest, bool last, int64_t lanes, int64_t size, int64_t inner, const T* x, int64_t* output) {
  for (int64_t l = global_thread(); l < lanes; l += global_threads()) {
    const T* lane = x + l / inner * size * inner + l % inner;
    uint64_t best = 0;
    for (int64_t i = 0; i < size; ++i) best = max(best, key_of(to_float(lane[i * inner]), smallest, last, i));
    output[l] = place_of(best, last);
  }
}

// A block for each lane. Bound: memory.
template <class T>
__global__ void __launch_bounds__(kThreads)
    blocks_kernel(bool smallest, bool last, int64_t lanes, int64_t size, int64_t inner, const T* x, int64_t* output) {
  __shared__ uint64_t warps[kThreads / 32];
  for (int64_t l = blockIdx.x; l < lanes; l += gridDim.x) {
    const T* lane = x + l / inner * size * inner + l % inner;
    uint64_t best = 0;
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
      best = max(best, key_of(to_float(lane[i * inner]), smallest, last, i));
    }
    for (int offset = 16; offset > 0; offset /= 2) best = max(best, __shfl_xor_sync(0xffffffffu, best, offset));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = best;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (unsigned w = 1; w < blockDim.x / 32; ++w) best = max(best, warps[w]);
      output[l] = place_of(best, last);
    }
    __syncthreads();
  }
}

}  // namespace

cudaError_t arg_extreme(ElementType type, bool smallest, bool last, int64_t outer, int64_t size, int64_t inner,
                        const void* x, int64_t* output, cudaStream_t stream) noexcept {
  const int64_t lanes = outer * inner;
  if (lanes <= 0) return cudaSuccess;
  if (size < 1 || size >= kTopKMostSize) return cudaErrorInvalidValue;
  const bool known = with_float(type, [&](auto element) {
    using T = decltype(element);
    const T* from = static_cast<const T*>(x);
    if (inner >= kWideInner) {
      lanes_kernel<T>
          <<<grid_for(lanes, kThreads), kThreads, 0, stream>>>(smallest, last, lanes, size, inner, from, output);
    } else {
      blocks_kernel<T><<<grid_for(lanes, 1), size <= 128 ? 32 : kThreads, 0, stream>>>(smallest, last, lanes, size,
                                                                                       inner, from, output);
    }
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

}  // namespace tenon::cuda
