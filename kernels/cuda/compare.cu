#include "kernels/cuda/broadcast.cuh"
#include "kernels/cuda/elementwise.h"

namespace tenon::cuda {
namespace {

// One byte, any but 0 is true.
struct Bool {
  uint8_t byte;
};

template <class T>
__device__ __forceinline__ T comparable(T x) {
  return x;
}
__device__ __forceinline__ float comparable(__half x) { return __half2float(x); }
__device__ __forceinline__ bool comparable(Bool x) { return x.byte != 0; }

template <class T>
struct Compare {
  CompareKind kind;
  __device__ __forceinline__ uint8_t operator()(T left, T right) const {
    const auto a = comparable(left);
    const auto b = comparable(right);
    switch (kind) {
      case CompareKind::kEqual:
        return a == b;
      case CompareKind::kLess:
        return a < b;
      case CompareKind::kLessEqual:
        return a <= b;
      default:  // kUnordered
        return a != a || b != b;
    }
  }
};

struct Logic {
  CompareKind kind;
  __device__ __forceinline__ uint8_t operator()(Bool left, Bool right) const {
    const bool a = comparable(left);
    const bool b = comparable(right);
    return kind == CompareKind::kAnd ? a && b : kind == CompareKind::kOr ? a || b : a != b;
  }
};

struct Not {
  __device__ __forceinline__ uint8_t operator()(uint8_t x) const { return x == 0; }
};

}  // namespace

cudaError_t compare(CompareKind kind, ElementType type, const BroadcastShape& shape, const void* a, const void* b,
                    void* y, cudaStream_t stream) noexcept {
  const auto run = [&](const auto& function, auto element) {
    using T = decltype(element);
    return broadcast(function, shape, stream, static_cast<uint8_t*>(y), static_cast<const T*>(a),
                     static_cast<const T*>(b));
  };
  const auto compared = [&](auto element) { return run(Compare<decltype(element)>{kind}, element); };
  if (kind >= CompareKind::kAnd) return type == ElementType::kBool ? run(Logic{kind}, Bool{}) : cudaErrorInvalidValue;
  switch (type) {
    case ElementType::kF32:
      return compared(float{});
    case ElementType::kF64:
      return compared(double{});
    case ElementType::kF16:
      return compared(__half{});
    case ElementType::kI32:
      return compared(int32_t{});
    case ElementType::kI64:
      return compared(int64_t{});
    case ElementType::kI8:
      return compared(int8_t{});
    case ElementType::kU8:
      return compared(uint8_t{});
    case ElementType::kBool:
      return compared(Bool{});
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t logical_not(int64_t count, const void* x, void* y, cudaStream_t stream) noexcept {
  Broadcast<1> shape;
  shape.rank = 1;
  shape.dims[0] = count;
  shape.strides[0][0] = 1;
  return broadcast(Not{}, shape, stream, static_cast<uint8_t*>(y), static_cast<const uint8_t*>(x));
}

}  // namespace tenon::cuda
