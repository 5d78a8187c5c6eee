// How reductions combine the elements of a list.
#ifndef TENON_KERNELS_CUDA_COMBINE_CUH_
#define TENON_KERNELS_CUDA_COMBINE_CUH_

#include <type_traits>

#include "kernels/cuda/common.cuh"

namespace tenon::cuda {

enum class Combination { kAdd, kMultiply, kMax, kMin };

template <class A>
struct Combine {
  Combination combination;
  __device__ __forceinline__ A operator()(A a, A b) const {
    if (combination == Combination::kAdd) return a + b;
    if (combination == Combination::kMultiply) return a * b;
    if (a != a) return a;  // NaN
    return b != b || (combination == Combination::kMax ? a < b : b < a) ? b : a;
  }
};

// Integers are added up without the undefined overflow of signed ones.
template <class T>
using Accumulator = std::conditional_t<std::is_integral<T>::value, int64_t, float>;

template <class T>
__device__ __forceinline__ Accumulator<T> widen(T x) {
  if constexpr (std::is_integral<T>::value) {
    return x;
  } else {
    return to_float(x);
  }
}

template <>
__device__ __forceinline__ int64_t Combine<int64_t>::operator()(int64_t a, int64_t b) const {
  if (combination == Combination::kAdd) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  if (combination == Combination::kMultiply) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  return (combination == Combination::kMax ? a < b : b < a) ? b : a;
}

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_COMBINE_CUH_
