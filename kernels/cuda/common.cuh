// What the kernels share: launch sizes, division by numbers known at launch, vectors, storage types, reductions.
#ifndef TENON_KERNELS_CUDA_COMMON_CUH_
#define TENON_KERNELS_CUDA_COMMON_CUH_

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cuda/element_type.h"

namespace tenon::cuda {

constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Grid of a kernel that strides over `count` items, `per_block` at a time: enough blocks to fill any GPU some 16 times.
inline unsigned grid_for(int64_t count, int64_t per_block) {
  constexpr int64_t kMost = 32 * 1024;
  return static_cast<unsigned>(std::min(ceil_div(count, per_block), kMost));
}

inline bool is_aligned(const void* pointer, size_t bytes) { return reinterpret_cast<uintptr_t>(pointer) % bytes == 0; }

__device__ __forceinline__ int64_t global_thread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t global_threads() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

// Division by a number known at launch. The 32-bit one multiplies by a rounded-up reciprocal (Granlund and Montgomery,
// "Division by invariant integers using multiplication", 1994). REQUIRES: 1 <= divisor < 2^31, dividends < 2^31.
template <class Index>
struct Divider;

template <>
struct Divider<uint32_t> {
  uint32_t divisor = 1;
  uint32_t multiplier = 0;
  uint32_t shift = 0;

  Divider() = default;
  explicit Divider(int64_t d) : divisor(static_cast<uint32_t>(d)) {
    uint32_t log = 0;
    while ((uint64_t{1} << log) < divisor) ++log;
    if (log == 0) return;
    multiplier = static_cast<uint32_t>(((uint64_t{1} << (31 + log)) + divisor - 1) / divisor);
    shift = log - 1;
  }
  __device__ __forceinline__ uint32_t quotient(uint32_t n) const {
    return divisor == 1 ? n : __umulhi(n, multiplier) >> shift;
  }
  // Returns the quotient and leaves the remainder.
  __device__ __forceinline__ uint32_t split(uint32_t* n) const {
    const uint32_t q = quotient(*n);
    *n -= q * divisor;
    return q;
  }
};

template <>
struct Divider<uint64_t> {
  uint64_t divisor = 1;

  Divider() = default;
  explicit Divider(int64_t d) : divisor(static_cast<uint64_t>(d)) {}
  __device__ __forceinline__ uint64_t quotient(uint64_t n) const { return n / divisor; }
  __device__ __forceinline__ uint64_t split(uint64_t* n) const {
    const uint64_t q = *n / divisor;
    *n -= q * divisor;
    return q;
  }
};

// Calls function(uint32_t{}) if `count` items can be indexed with 31 bits, else function(uint64_t{}).
template <class Function>
void with_index(int64_t count, const Function& function) {
  if (count <= kInt32Max) {
    function(uint32_t{});
  } else {
    function(uint64_t{});
  }
}

// Calls function(T{}) for a float type; otherwise returns false.
template <class Function>
bool with_float(ElementType type, const Function& function) {
  if (type == ElementType::kF32) {
    function(float{});
  } else if (type == ElementType::kF16) {
    function(__half{});
  } else {
    return false;
  }
  return true;
}

// Calls function(T{}) with an unsigned type of `size` bytes: 1, 2, 4 or 8; otherwise returns false.
template <class Function>
bool with_bits(int size, const Function& function) {
  switch (size) {
    case 1:
      function(uint8_t{});
      return true;
    case 2:
      function(uint16_t{});
      return true;
    case 4:
      function(uint32_t{});
      return true;
    case 8:
      function(uint64_t{});
      return true;
    default:
      return false;
  }
}

// kCount neighbours, moved by one instruction.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T v[kCount];
};

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }

template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ __half from_float<__half>(float x) {
  return __float2half_rn(x);
}

__device__ __forceinline__ float warp_sum(float x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}
// fmaxf: a NaN is passed over.
__device__ __forceinline__ float warp_max(float x) {
  for (int offset = 16; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, offset));
  return x;
}

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_COMMON_CUH_
