// arg_extreme: where along an axis the extreme element is. kF32, kF16, kI32, kI64; others are cudaErrorInvalidValue.
// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch. No
// overlap.
#ifndef TENON_KERNELS_CUDA_ARG_EXTREME_H_
#define TENON_KERNELS_CUDA_ARG_EXTREME_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/element_type.h"

namespace tenon::cuda {

// Position of the largest (or smallest) element along the middle dimension of [outer][axis][inner], the first or the
// last of equal ones; a NaN counts as the largest (smallest). REQUIRES: axis >= 1.
cudaError_t arg_extreme(ElementType type, bool smallest, bool last, int64_t outer, int64_t axis, int64_t inner,
                        const void* input, int64_t* output, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_ARG_EXTREME_H_
