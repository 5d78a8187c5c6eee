#include "kernels/cuda/common.cuh"
#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/pointwise.h"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

// Threads stride over `vectors` packs of 16 bytes (0 if a pointer is not aligned to that), then over the rest one by
// one. Bound: memory.
template <class T, UnaryKind kKind>
__global__ void __launch_bounds__(kThreads)
    unary_kernel(float alpha, float beta, int64_t vectors, int64_t count, const T* x, T* y) {
  constexpr int kPack = 16 / sizeof(T);
  using Vector = Pack<T, kPack>;
  for (int64_t i = global_thread(); i < vectors; i += global_threads()) {
    Vector v = reinterpret_cast<const Vector*>(x)[i];
#pragma unroll
    for (int j = 0; j < kPack; ++j) v.v[j] = from_float<T>(apply_unary<kKind>(alpha, beta, to_float(v.v[j])));
    reinterpret_cast<Vector*>(y)[i] = v;
  }
  for (int64_t i = vectors * kPack + global_thread(); i < count; i += global_threads()) {
    y[i] = from_float<T>(apply_unary<kKind>(alpha, beta, to_float(x[i])));
  }
}

template <class T, UnaryKind kKind>
cudaError_t launch(float alpha, float beta, int64_t count, const T* x, T* y, cudaStream_t stream) {
  constexpr int kPack = 16 / sizeof(T);
  const int64_t vectors = is_aligned(x, 16) && is_aligned(y, 16) ? count / kPack : 0;
  unary_kernel<T, kKind>
      <<<grid_for(vectors == 0 ? count : vectors, kThreads), kThreads, 0, stream>>>(alpha, beta, vectors, count, x, y);
  return cudaGetLastError();
}

template <class T>
cudaError_t dispatch(UnaryKind kind, float alpha, float beta, int64_t count, const T* x, T* y, cudaStream_t stream) {
  switch (kind) {
#define TENON_LAUNCH(k) \
  case UnaryKind::k:    \
    return launch<T, UnaryKind::k>(alpha, beta, count, x, y, stream)
    TENON_LAUNCH(kNone);
    TENON_LAUNCH(kLinear);
    TENON_LAUNCH(kRelu);
    TENON_LAUNCH(kRelu6);
    TENON_LAUNCH(kClip);
    TENON_LAUNCH(kLeakyRelu);
    TENON_LAUNCH(kLogistic);
    TENON_LAUNCH(kTanh);
    TENON_LAUNCH(kElu);
    TENON_LAUNCH(kMish);
    TENON_LAUNCH(kSwish);
    TENON_LAUNCH(kHardSwish);
    TENON_LAUNCH(kHardSigmoid);
    TENON_LAUNCH(kExp);
    TENON_LAUNCH(kLog);
    TENON_LAUNCH(kLog1p);
    TENON_LAUNCH(kSqrt);
    TENON_LAUNCH(kAbs);
    TENON_LAUNCH(kNeg);
    TENON_LAUNCH(kReciprocal);
    TENON_LAUNCH(kSign);
    TENON_LAUNCH(kFloor);
    TENON_LAUNCH(kCeil);
    TENON_LAUNCH(kRoundEven);
    TENON_LAUNCH(kSin);
    TENON_LAUNCH(kCos);
    TENON_LAUNCH(kErf);
    TENON_LAUNCH(kGelu);
    TENON_LAUNCH(kGeluTanh);
    TENON_LAUNCH(kSoftplus);
    TENON_LAUNCH(kSoftsign);
    TENON_LAUNCH(kSelu);
    TENON_LAUNCH(kCelu);
    TENON_LAUNCH(kThresholdedRelu);
    TENON_LAUNCH(kShrink);
    TENON_LAUNCH(kTan);
    TENON_LAUNCH(kAsin);
    TENON_LAUNCH(kAcos);
    TENON_LAUNCH(kAtan);
    TENON_LAUNCH(kSinh);
    TENON_LAUNCH(kCosh);
    TENON_LAUNCH(kAsinh);
    TENON_LAUNCH(kAcosh);
    TENON_LAUNCH(kAtanh);
#undef TENON_LAUNCH
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t pointwise_unary(ElementType type, UnaryKind kind, float alpha, float beta, int64_t count, const void* x,
                            void* y, cudaStream_t stream) noexcept {
  if (count <= 0) return cudaSuccess;
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    error = dispatch(kind, alpha, beta, count, static_cast<const T*>(x), static_cast<T*>(y), stream);
  });
  return error;
}

}  // namespace tenon::cuda
