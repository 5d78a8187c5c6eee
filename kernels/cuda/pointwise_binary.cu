#include "kernels/cuda/broadcast.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/pointwise.h"

namespace tenon::cuda {
namespace {

__device__ __forceinline__ float combine(BinaryKind kind, float a, float b) {
  switch (kind) {
    case BinaryKind::kAdd:
      return a + b;
    case BinaryKind::kSub:
      return a - b;
    case BinaryKind::kMul:
      return a * b;
    case BinaryKind::kDiv:
      return a / b;
    case BinaryKind::kMin:
      return isnan(a) || isnan(b) ? a + b : fminf(a, b);
    case BinaryKind::kMax:
      return isnan(a) || isnan(b) ? a + b : fmaxf(a, b);
    default:  // kPRelu
      return a < 0.0f ? a * b : a;
  }
}

template <class T>
struct Arithmetic {
  BinaryKind kind;
  DeviceEpilogue epilogue;
  __device__ __forceinline__ T operator()(T a, T b) const {
    return from_float<T>(apply(epilogue, combine(kind, to_float(a), to_float(b))));
  }
};

// Powers and remainders, whose code is too long to stand beside sums.
template <class T>
struct LongArithmetic {
  BinaryKind kind;
  DeviceEpilogue epilogue;
  __device__ __forceinline__ T operator()(T left, T right) const {
    const float a = to_float(left);
    const float b = to_float(right);
    float y;
    if (kind == BinaryKind::kPow) {
      y = b == 2.0f ? a * a : powf(a, b);
    } else {
      y = fmodf(a, b);
      if (kind == BinaryKind::kModDivisor && y != 0.0f && (y < 0.0f) != (b < 0.0f)) y += b;
    }
    return from_float<T>(apply(epilogue, y));
  }
};

}  // namespace

bool broadcast_shape(int a_rank, const int64_t* a_dims, int b_rank, const int64_t* b_dims,
                     BroadcastShape* shape) noexcept {
  const int ranks[] = {a_rank, b_rank};
  const int64_t* const dims[] = {a_dims, b_dims};
  return broadcast_shape(ranks, dims, shape);
}

cudaError_t pointwise_binary(ElementType type, BinaryKind kind, const BroadcastShape& shape, const void* a,
                             const void* b, const Epilogue& epilogue, void* y, cudaStream_t stream) noexcept {
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    const auto run = [&](const auto& function) {
      error =
          broadcast(function, shape, stream, static_cast<T*>(y), static_cast<const T*>(a), static_cast<const T*>(b));
    };
    if (kind <= BinaryKind::kPRelu) {
      run(Arithmetic<T>{kind, epilogue});
    } else {
      run(LongArithmetic<T>{kind, epilogue});
    }
  });
  return error;
}

}  // namespace tenon::cuda
