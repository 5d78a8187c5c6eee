// Softmax down the columns of a block, for softmax.cu and detection.cu.
#ifndef TENON_KERNELS_CUDA_SOFTMAX_CUH_
#define TENON_KERNELS_CUDA_SOFTMAX_CUH_

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/softmax.h"

namespace tenon::cuda {

template <bool kLog>
__device__ __forceinline__ float softmax_value(float x, float most, float total) {
  return kLog ? x - most - logf(total) : expf(x - most) / total;
}

// One column for each of kLanes threads in x (threadIdx.x % kLanes), the axis dealt to kSlices threads
// (threadIdx.x / kLanes) that meet in `shared`. All threads of the block take part; `active` ones have a column, with
// element i at i * stride. May be called again after it returns.
template <bool kLog, int kLanes, int kSlices, class T>
__device__ __forceinline__ void softmax_column(bool active, int64_t axis, int64_t stride, const T* x, T* y,
                                               float (*shared)[kLanes]) {
  const int lane = threadIdx.x % kLanes;
  const int slice = threadIdx.x / kLanes;
  const int64_t end = active ? axis : 0;
  float most = -INFINITY;
  for (int64_t i = slice; i < end; i += kSlices) most = fmaxf(most, to_float(x[i * stride]));
  if (kSlices > 1) {
    shared[slice][lane] = most;
    __syncthreads();
    for (int i = 0; i < kSlices; ++i) most = fmaxf(most, shared[i][lane]);
    __syncthreads();
  }
  float total = 0.0f;
  for (int64_t i = slice; i < end; i += kSlices) total += expf(to_float(x[i * stride]) - most);
  if (kSlices > 1) {
    shared[slice][lane] = total;
    __syncthreads();
    total = 0.0f;
    for (int i = 0; i < kSlices; ++i) total += shared[i][lane];
    __syncthreads();
  }
  for (int64_t i = slice; i < end; i += kSlices) {
    y[i * stride] = from_float<T>(softmax_value<kLog>(to_float(x[i * stride]), most, total));
  }
}

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_SOFTMAX_CUH_
