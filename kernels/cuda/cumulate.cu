#include "kernels/cuda/cumulate.h"

#include <type_traits>

#include "kernels/cuda/common.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
using Accumulator = std::conditional_t<std::is_integral<T>::value, uint64_t, double>;

template <class T>
struct Running {
  using A = Accumulator<T>;
  bool product;

  __device__ __forceinline__ A start() const { return product ? 1 : 0; }
  __device__ __forceinline__ A combine(A a, A b) const { return product ? a * b : a + b; }
  static __device__ __forceinline__ A widen(T x) {
    if constexpr (std::is_integral<T>::value) {
      return static_cast<A>(x);
    } else {
      return to_float(x);
    }
  }
  static __device__ __forceinline__ T narrow(A x) {
    if constexpr (std::is_same<T, __half>::value) {
      return __double2half(x);
    } else {
      return static_cast<T>(x);
    }
  }
};

// A thread for each list. Bound: memory where inner is large.
template <class T>
__global__ void __launch_bounds__(kThreads) serial_kernel(CumulateShape s, const T* input, T* output) {
  const Running<T> running{s.product};
  for (int64_t list = global_thread(); list < s.outer * s.inner; list += global_threads()) {
    const int64_t row = list / s.inner;
    int64_t at = row * s.size * s.inner + (list - row * s.inner);
    if (s.reverse) at += (s.size - 1) * s.inner;
    auto sum = running.start();
    for (int64_t i = 0; i < s.size; ++i, at += s.reverse ? -s.inner : s.inner) {
      const auto before = sum;
      sum = running.combine(sum, running.widen(input[at]));
      output[at] = running.narrow(s.exclusive ? before : sum);
    }
  }
}

// A block for each row, kThreads elements at a time: a scan in each warp, then over the totals of the warps. Bound:
// memory.
template <class T>
__global__ void __launch_bounds__(kThreads) row_kernel(CumulateShape s, const T* input, T* output) {
  using A = Accumulator<T>;
  __shared__ A totals[kThreads / 32];
  const Running<T> running{s.product};
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int64_t row = blockIdx.x; row < s.outer; row += gridDim.x) {
    const T* x = input + row * s.size;
    T* y = output + row * s.size;
    A carry = running.start();
    for (int64_t first = 0; first < s.size; first += kThreads) {
      const int64_t i = first + threadIdx.x, at = s.reverse ? s.size - 1 - i : i;
      A sum = i < s.size ? running.widen(x[at]) : running.start();
      for (int offset = 1; offset < 32; offset *= 2) {
        const A other = __shfl_up_sync(0xffffffffu, sum, offset);
        if (lane >= offset) sum = running.combine(other, sum);
      }
      A before = __shfl_up_sync(0xffffffffu, sum, 1);
      if (lane == 0) before = running.start();
      if (lane == 31) totals[warp] = sum;
      __syncthreads();
      A own = carry;  // everything before this warp
      for (int w = 0; w < kThreads / 32; ++w) {
        if (w < warp) own = running.combine(own, totals[w]);
        carry = running.combine(carry, totals[w]);
      }
      if (i < s.size) y[at] = running.narrow(running.combine(own, s.exclusive ? before : sum));
      __syncthreads();
    }
  }
}

template <class T>
cudaError_t launch(const CumulateShape& s, const void* input, void* output, cudaStream_t stream) {
  const T* x = static_cast<const T*>(input);
  T* y = static_cast<T*>(output);
  if (s.inner == 1 && s.size > 32) {
    row_kernel<T><<<grid_for(s.outer, 1), kThreads, 0, stream>>>(s, x, y);
  } else {
    serial_kernel<T><<<grid_for(s.outer * s.inner, kThreads), kThreads, 0, stream>>>(s, x, y);
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t cumulate(ElementType type, const CumulateShape& shape, const void* input, void* output,
                     cudaStream_t stream) noexcept {
  if (shape.outer <= 0 || shape.size <= 0 || shape.inner <= 0) return cudaSuccess;
  switch (type) {
    case ElementType::kF32:
      return launch<float>(shape, input, output, stream);
    case ElementType::kF16:
      return launch<__half>(shape, input, output, stream);
    case ElementType::kI32:
      return launch<int32_t>(shape, input, output, stream);
    case ElementType::kI64:
      return launch<int64_t>(shape, input, output, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace tenon::cuda
