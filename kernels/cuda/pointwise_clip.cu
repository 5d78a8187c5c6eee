#include "kernels/cuda/broadcast.cuh"
#include "kernels/cuda/pointwise.h"

namespace tenon::cuda {
namespace {

template <class T>
__device__ __forceinline__ T comparable(T x) {
  return x;
}
__device__ __forceinline__ float comparable(__half x) { return __half2float(x); }

// The bounds are operands with stride 0; where there is none, x stands in for it.
template <class T>
struct Clip {
  bool has_lowest;
  bool has_highest;
  __device__ __forceinline__ T operator()(T x, T lowest, T highest) const {
    const auto lo = comparable(lowest);
    const auto hi = comparable(highest);
    if (has_lowest && (comparable(x) < lo || lo != lo)) x = lowest;
    if (has_highest && (comparable(x) > hi || hi != hi)) x = highest;
    return x;
  }
};

}  // namespace

cudaError_t pointwise_clip(ElementType type, int64_t count, const void* x, const void* lowest, const void* highest,
                           void* y, cudaStream_t stream) noexcept {
  Broadcast<3> shape;
  shape.rank = 1;
  shape.dims[0] = count;
  shape.strides[0][0] = 1;
  shape.strides[1][0] = lowest != nullptr ? 0 : 1;
  shape.strides[2][0] = highest != nullptr ? 0 : 1;
  const auto run = [&](auto element) {
    using T = decltype(element);
    const auto bound = [&](const void* given) { return static_cast<const T*>(given != nullptr ? given : x); };
    return broadcast(Clip<T>{lowest != nullptr, highest != nullptr}, shape, stream, static_cast<T*>(y),
                     static_cast<const T*>(x), bound(lowest), bound(highest));
  };
  switch (type) {
    case ElementType::kF32:
      return run(float{});
    case ElementType::kF16:
      return run(__half{});
    case ElementType::kI32:
      return run(int32_t{});
    case ElementType::kI64:
      return run(int64_t{});
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace tenon::cuda
