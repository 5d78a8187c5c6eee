#include "kernels/cuda/softmax.cuh"

namespace tenon::cuda {
namespace {

constexpr int kRowWarps = 4;
constexpr int kRowThreads = 512;

// A warp for each row of up to 32 * kEach elements, held in registers: one read, one write. Bound: memory.
template <class T, bool kLog, int kEach>
__global__ void __launch_bounds__(kRowWarps * 32) warp_kernel(int64_t rows, int axis, const T* input, T* output) {
  const int lane = threadIdx.x % 32;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kRowWarps;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kRowWarps + threadIdx.x / 32; row < rows; row += step) {
    const T* x = input + row * axis;
    T* y = output + row * axis;
    float values[kEach];
    float most = -INFINITY;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int at = i * 32 + lane;
      values[i] = at < axis ? to_float(x[at]) : -INFINITY;
      most = fmaxf(most, values[i]);
    }
    most = warp_max(most);
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const float e = i * 32 + lane < axis ? expf(values[i] - most) : 0.0f;
      if (!kLog) values[i] = e;
      total += e;
    }
    total = warp_sum(total);
    const float shift = kLog ? logf(total) : 0.0f;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int at = i * 32 + lane;
      if (at < axis) y[at] = from_float<T>(kLog ? values[i] - most - shift : values[i] / total);
    }
  }
}

template <bool kMax>
__device__ __forceinline__ float block_reduce(float x, float* shared) {
  x = kMax ? warp_max(x) : warp_sum(x);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  x = shared[0];
  for (int i = 1; i < kRowThreads / 32; ++i) x = kMax ? fmaxf(x, shared[i]) : x + shared[i];
  __syncthreads();
  return x;
}

// A block for each long row, read three times (the second and third from cache). Bound: memory.
template <class T, bool kLog>
__global__ void __launch_bounds__(kRowThreads) block_kernel(int64_t rows, int64_t axis, const T* input, T* output) {
  __shared__ float shared[kRowThreads / 32];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* x = input + row * axis;
    T* y = output + row * axis;
    float most = -INFINITY;
    for (int64_t i = threadIdx.x; i < axis; i += kRowThreads) most = fmaxf(most, to_float(x[i]));
    most = block_reduce<true>(most, shared);
    float total = 0.0f;
    for (int64_t i = threadIdx.x; i < axis; i += kRowThreads) total += expf(to_float(x[i]) - most);
    total = block_reduce<false>(total, shared);
    for (int64_t i = threadIdx.x; i < axis; i += kRowThreads) {
      y[i] = from_float<T>(softmax_value<kLog>(to_float(x[i]), most, total));
    }
  }
}

// Columns of all rows together, kLanes a block: neighbours along `inner`. Bound: memory.
template <class T, bool kLog, int kLanes, int kSlices>
__global__ void __launch_bounds__(kLanes* kSlices)
    column_kernel(int64_t columns, int64_t axis, int64_t inner, const T* input, T* output) {
  __shared__ float shared[kSlices][kLanes];
  const int64_t step = static_cast<int64_t>(gridDim.x) * kLanes;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kLanes; first < columns; first += step) {
    const int64_t column = first + threadIdx.x % kLanes;
    const int64_t row = column / inner;
    const int64_t offset = row * axis * inner + (column - row * inner);
    softmax_column<kLog, kLanes, kSlices>(column < columns, axis, inner, input + offset, output + offset, shared);
  }
}

template <class T, bool kLog>
cudaError_t launch(int64_t outer, int64_t axis, int64_t inner, const T* x, T* y, cudaStream_t stream) {
  if (inner > 1) {
    const int64_t columns = outer * inner;
    if (axis >= 32) {
      column_kernel<T, kLog, 32, 16><<<grid_for(columns, 32), 32 * 16, 0, stream>>>(columns, axis, inner, x, y);
    } else {
      column_kernel<T, kLog, 128, 1><<<grid_for(columns, 128), 128, 0, stream>>>(columns, axis, inner, x, y);
    }
    return cudaGetLastError();
  }
  if (axis > 1024) {
    block_kernel<T, kLog><<<grid_for(outer, 1), kRowThreads, 0, stream>>>(outer, axis, x, y);
    return cudaGetLastError();
  }
  const auto kernel = axis <= 32    ? warp_kernel<T, kLog, 1>
                      : axis <= 64  ? warp_kernel<T, kLog, 2>
                      : axis <= 128 ? warp_kernel<T, kLog, 4>
                      : axis <= 256 ? warp_kernel<T, kLog, 8>
                      : axis <= 512 ? warp_kernel<T, kLog, 16>
                                    : warp_kernel<T, kLog, 32>;
  kernel<<<grid_for(outer, kRowWarps), kRowWarps * 32, 0, stream>>>(outer, static_cast<int>(axis), x, y);
  return cudaGetLastError();
}

}  // namespace

cudaError_t softmax(ElementType type, SoftmaxKind kind, int64_t outer, int64_t axis, int64_t inner, const void* input,
                    void* output, cudaStream_t stream) noexcept {
  if (outer <= 0 || axis <= 0 || inner <= 0) return cudaSuccess;
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    const auto function = kind == SoftmaxKind::kLogSoftmax ? launch<T, true> : launch<T, false>;
    error = function(outer, axis, inner, static_cast<const T*>(input), static_cast<T*>(output), stream);
  });
  return error;
}

}  // namespace tenon::cuda
