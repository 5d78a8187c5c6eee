#include "kernels/cuda/cast.h"

#include <type_traits>

#include "kernels/cuda/common.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

// Storage types whose arithmetic is done here.
struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};

template <class T>
constexpr bool kIsNarrow = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;

__device__ __forceinline__ float widen(Half h) { return __half2float(__ushort_as_half(h.bits)); }
__device__ __forceinline__ float widen(Bfloat b) { return __uint_as_float(static_cast<uint32_t>(b.bits) << 16); }

__device__ __forceinline__ Half narrow(float x, Half) { return {__half_as_ushort(__float2half_rn(x))}; }
__device__ __forceinline__ Bfloat narrow(float x, Bfloat) {
  const uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  // To nearest even: the carry moves into the kept half.
  return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}

// Rounds toward zero and sets the last bit if anything was lost ("round to odd"). A float has enough spare bits that
// rounding the result to 16 bits gives what a single rounding would.
__device__ __forceinline__ float to_odd(double x) {
  const float nearest = __double2float_rz(x);
  if (static_cast<double>(nearest) == x || isnan(x) || isinf(nearest)) return nearest;
  return __uint_as_float(__float_as_uint(nearest) | 1u);
}
__device__ __forceinline__ float to_odd(int64_t x) {
  const float nearest = __ll2float_rz(x);
  // 2^63 itself cannot come out: rounding is toward zero, and the lowest int64 is exact.
  if (static_cast<int64_t>(nearest) == x) return nearest;
  return __uint_as_float(__float_as_uint(nearest) | 1u);
}

template <class T>
constexpr T kLargest = std::numeric_limits<T>::max();
template <class T>
constexpr T kSmallest = std::numeric_limits<T>::min();

template <class To, class From>
__device__ __forceinline__ To saturate(From x) {
  if (isnan(x)) return 0;
  // The limits as powers of two are exact in every floating type.
  constexpr From kAbove = static_cast<From>(kLargest<To> / 2 + 1) * 2;
  if (x >= kAbove) return kLargest<To>;
  if (x <= static_cast<From>(kSmallest<To>)) return kSmallest<To>;
  return static_cast<To>(x);
}

template <class To, class From>
__device__ __forceinline__ To convert(From x) {
  if constexpr (std::is_same_v<From, To> && !std::is_same_v<From, Bool>) {
    return x;
  } else if constexpr (kIsNarrow<From>) {
    return convert<To>(widen(x));
  } else if constexpr (std::is_same_v<From, Bool>) {
    return convert<To>(static_cast<uint8_t>(x.byte != 0));
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(x != 0)};
  } else if constexpr (kIsNarrow<To>) {
    if constexpr (std::is_same_v<From, float>) {
      return narrow(x, To{});
    } else if constexpr (std::is_same_v<From, double>) {
      return narrow(to_odd(x), To{});
    } else {
      return narrow(to_odd(static_cast<int64_t>(x)), To{});
    }
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return saturate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

// Threads stride over packs of four, then over the rest one by one. Bound: memory.
template <class From, class To>
__global__ void __launch_bounds__(kThreads) cast_kernel(int64_t packs, int64_t count, const From* input, To* output) {
  for (int64_t i = global_thread(); i < packs; i += global_threads()) {
    const Pack<From, 4> x = reinterpret_cast<const Pack<From, 4>*>(input)[i];
    Pack<To, 4> y;
#pragma unroll
    for (int j = 0; j < 4; ++j) y.v[j] = convert<To>(x.v[j]);
    reinterpret_cast<Pack<To, 4>*>(output)[i] = y;
  }
  for (int64_t i = packs * 4 + global_thread(); i < count; i += global_threads()) output[i] = convert<To>(input[i]);
}

template <class Function>
bool with_type(ElementType type, const Function& function) {
  switch (type) {
    case ElementType::kF32:
      return function(float{}), true;
    case ElementType::kF64:
      return function(double{}), true;
    case ElementType::kF16:
      return function(Half{}), true;
    case ElementType::kBf16:
      return function(Bfloat{}), true;
    case ElementType::kI32:
      return function(int32_t{}), true;
    case ElementType::kI64:
      return function(int64_t{}), true;
    case ElementType::kI8:
      return function(int8_t{}), true;
    case ElementType::kU8:
      return function(uint8_t{}), true;
    case ElementType::kBool:
      return function(Bool{}), true;
  }
  return false;
}

}  // namespace

cudaError_t cast(ElementType from, ElementType to, int64_t count, const void* input, void* output,
                 cudaStream_t stream) noexcept {
  if (count <= 0) return cudaSuccess;
  cudaError_t error = cudaErrorInvalidValue;
  with_type(from, [&](auto source) {
    with_type(to, [&](auto target) {
      using From = decltype(source);
      using To = decltype(target);
      const bool aligned = is_aligned(input, 4 * sizeof(From)) && is_aligned(output, 4 * sizeof(To));
      const int64_t packs = aligned ? count / 4 : 0;
      cast_kernel<From, To><<<grid_for(packs == 0 ? count : packs, kThreads), kThreads, 0, stream>>>(
          packs, count, static_cast<const From*>(input), static_cast<To*>(output));
      error = cudaGetLastError();
    });
  });
  return error;
}

}  // namespace tenon::cuda
