// Numbers as unsigned integers in their order, so that one comparison decides on value and position.
#ifndef TENON_KERNELS_CUDA_ORDER_CUH_
#define TENON_KERNELS_CUDA_ORDER_CUH_

#include "kernels/cuda/common.cuh"

namespace tenon::cuda {

// a < b as numbers is ordered(a) < ordered(b); -0 equals 0. From 0x007fffff (-inf) to 0xff800000 (inf). REQUIRES: no
// NaN.
__device__ __forceinline__ uint32_t ordered(float x) {
  const uint32_t bits = x == 0.0f ? 0 : __float_as_uint(x);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_ORDER_CUH_
