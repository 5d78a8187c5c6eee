#include <type_traits>

#include "kernels/cuda/broadcast.cuh"
#include "kernels/cuda/pointwise.h"

namespace tenon::cuda {
namespace {

// Truncated; the lowest number by -1 wraps around to itself.
template <class T>
__device__ __forceinline__ T quotient(T a, T b) {
  using U = std::make_unsigned_t<T>;
  if (b == 0) return 0;
  return b == -1 ? static_cast<T>(U{0} - static_cast<U>(a)) : a / b;
}

template <class T>
struct IntegerArithmetic {
  BinaryKind kind;
  __device__ __forceinline__ T operator()(T a, T b) const {
    using U = std::make_unsigned_t<T>;  // wraps, where signed arithmetic would overflow
    const U x = static_cast<U>(a);
    const U y = static_cast<U>(b);
    switch (kind) {
      case BinaryKind::kAdd:
        return static_cast<T>(x + y);
      case BinaryKind::kSub:
        return static_cast<T>(x - y);
      case BinaryKind::kMul:
        return static_cast<T>(x * y);
      case BinaryKind::kDiv:
        return quotient(a, b);
      case BinaryKind::kMin:
        return b < a ? b : a;
      case BinaryKind::kMax:
        return b > a ? b : a;
      case BinaryKind::kPRelu:
        return a < 0 ? static_cast<T>(x * y) : a;
      default: {
        if (b == 0) return 0;
        const T rest = static_cast<T>(x - static_cast<U>(quotient(a, b)) * y);
        const bool other_sign = rest != 0 && (rest < 0) != (b < 0);
        return kind == BinaryKind::kModDivisor && other_sign ? static_cast<T>(rest + b) : rest;
      }
    }
  }
};

}  // namespace

cudaError_t integer_binary(ElementType type, BinaryKind kind, const BroadcastShape& shape, const void* a, const void* b,
                           void* y, cudaStream_t stream) noexcept {
  const auto run = [&](auto element) {
    using T = decltype(element);
    return broadcast(IntegerArithmetic<T>{kind}, shape, stream, static_cast<T*>(y), static_cast<const T*>(a),
                     static_cast<const T*>(b));
  };
  if (kind == BinaryKind::kPow) return cudaErrorInvalidValue;
  if (type == ElementType::kI32) return run(int32_t{});
  if (type == ElementType::kI64) return run(int64_t{});
  return cudaErrorInvalidValue;
}

}  // namespace tenon::cuda
