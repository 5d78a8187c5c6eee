#include "kernels/cuda/top_k.h"

#include "kernels/cuda/order.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int64_t kMostBlocks = 1024;
constexpr int64_t kSharedKeys = 2048;
constexpr int kDigits = 256;

// Value and place of an element as one number, greater for a better one; all are different and above 0.
__device__ __forceinline__ uint64_t key_of(float x, bool largest, int64_t place) {
  const uint32_t value = isnan(x) ? (largest ? 0xffffffffu : 0u) : largest ? ordered(x) : ~ordered(x);
  return static_cast<uint64_t>(value) << 32 | (0xffffffffu - static_cast<uint32_t>(place));
}

// The elements of one lane, `step` apart.
template <class T>
struct Lane {
  const T* x;
  int64_t size, step;
  bool largest;
  __device__ __forceinline__ uint64_t key(int64_t i) const { return key_of(to_float(x[i * step]), largest, i); }
};

struct Selection {
  uint64_t prefix;  // digits that are known of the k-th best key
  int64_t need;     // how many with this prefix belong to the best
  bool done;        // all with this prefix do
};

// A number with exactly k keys that are not below it, by radix selection from the highest digit on. All threads of the
// block call it and get the same. REQUIRES: 1 <= k < size.
template <class T>
__device__ uint64_t threshold(const Lane<T>& lane, int64_t k, uint32_t* histogram, Selection* selection) {
  if (threadIdx.x == 0) *selection = {0, k, false};
  for (int shift = 56; shift >= 0; shift -= 8) {
    for (int d = threadIdx.x; d < kDigits; d += kThreads) histogram[d] = 0;
    __syncthreads();
    const uint64_t prefix = selection->prefix;
    for (int64_t i = threadIdx.x; i < lane.size; i += kThreads) {
      const uint64_t key = lane.key(i);
      if (shift == 56 || (key ^ prefix) >> (shift + 8) == 0) atomicAdd(histogram + (key >> shift & 0xff), 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int d = kDigits - 1;
      int64_t need = selection->need;
      for (; d > 0 && histogram[d] < need; --d) need -= histogram[d];
      *selection = {prefix | static_cast<uint64_t>(d) << shift, need, histogram[d] == need};
    }
    __syncthreads();
    if (selection->done) break;
  }
  const uint64_t result = selection->prefix;
  __syncthreads();
  return result;
}

// The greatest first. All threads of the block call it. REQUIRES: size is a power of two.
__device__ void bitonic_sort(uint64_t* keys, int64_t size) {
  for (int64_t block = 2; block <= size; block *= 2) {
    for (int64_t stride = block / 2; stride > 0; stride /= 2) {
      for (int64_t t = threadIdx.x; t < size / 2; t += kThreads) {
        const int64_t i = 2 * t - (t & (stride - 1));
        const uint64_t a = keys[i];
        const uint64_t b = keys[i + stride];
        if ((a < b) == ((i & block) == 0)) {
          keys[i] = b;
          keys[i + stride] = a;
        }
      }
      __syncthreads();
    }
  }
}

// Blocks stride over lanes: select, collect, sort, store. `workspace` has `padded` keys a block where they are too many
// for shared memory. Bound: memory, up to nine reads of a lane, most from the cache.
template <class T>
__global__ void __launch_bounds__(kThreads)
    top_k_kernel(TopKShape shape, int64_t padded, const T* input, T* values, int64_t* indices, uint64_t* workspace) {
  __shared__ uint64_t shared[kSharedKeys];
  __shared__ uint32_t histogram[kDigits];
  __shared__ Selection selection;
  __shared__ unsigned taken;
  uint64_t* const keys = padded <= kSharedKeys ? shared : workspace + blockIdx.x * padded;
  for (int64_t l = blockIdx.x; l < shape.outer * shape.inner; l += gridDim.x) {
    const int64_t outer = l / shape.inner;
    const int64_t inner = l % shape.inner;
    const Lane<T> lane = {input + outer * shape.size * shape.inner + inner, shape.size, shape.inner, shape.largest};
    if (threadIdx.x == 0) taken = 0;
    for (int64_t n = shape.k + threadIdx.x; n < padded; n += kThreads) keys[n] = 0;
    const uint64_t least = shape.k < shape.size ? threshold(lane, shape.k, histogram, &selection) : 0;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < lane.size; i += kThreads) {
      const uint64_t key = lane.key(i);
      if (key >= least) keys[atomicAdd(&taken, 1u)] = key;
    }
    __syncthreads();
    bitonic_sort(keys, padded);
    for (int64_t n = threadIdx.x; n < shape.k; n += kThreads) {
      const int64_t place = static_cast<int64_t>(0xffffffffu - static_cast<uint32_t>(keys[n]));
      const int64_t to = (outer * shape.k + n) * shape.inner + inner;
      values[to] = lane.x[place * lane.step];
      indices[to] = place;
    }
    __syncthreads();
  }
}

int64_t padded_size(int64_t k) {
  int64_t padded = 1;
  while (padded < k) padded *= 2;
  return padded;
}

int64_t blocks_of(const TopKShape& shape) { return std::min(shape.outer * shape.inner, kMostBlocks); }

}  // namespace

uint64_t top_k_workspace(const TopKShape& shape) noexcept {
  const int64_t padded = padded_size(shape.k);
  return padded <= kSharedKeys ? 0 : static_cast<uint64_t>(blocks_of(shape) * padded) * sizeof(uint64_t);
}

cudaError_t top_k(ElementType type, const TopKShape& shape, const void* input, void* values, int64_t* indices,
                  void* workspace, cudaStream_t stream) noexcept {
  if (shape.outer * shape.inner * shape.k <= 0) return cudaSuccess;
  if (shape.size >= kTopKMostSize || shape.k > shape.size) return cudaErrorInvalidValue;
  const bool known = with_float(type, [&](auto element) {
    using T = decltype(element);
    top_k_kernel<T><<<static_cast<unsigned>(blocks_of(shape)), kThreads, 0, stream>>>(
        shape, padded_size(shape.k), static_cast<const T*>(input), static_cast<T*>(values), indices,
        static_cast<uint64_t*>(workspace));
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

}  // namespace tenon::cuda
