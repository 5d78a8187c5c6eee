// softmax over the middle dimension of [outer][axis][inner], float types (element_type.h):
//   y = exp(x - max) / sum(exp(x - max)), maximum and sum along the axis.
// -inf inputs give 0; a row of -inf alone, or one that holds +inf or NaN, gives NaN, as the formula does.
// kLogSoftmax gives x - max - log(sum) instead. Input and output may be the same buffer, or must not overlap.
#ifndef TENON_KERNELS_CUDA_SOFTMAX_H_
#define TENON_KERNELS_CUDA_SOFTMAX_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/element_type.h"

namespace tenon::cuda {

enum class SoftmaxKind : int { kSoftmax, kLogSoftmax };

// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch. The same
// sizes give the same bits.
cudaError_t softmax(ElementType type, SoftmaxKind kind, int64_t outer, int64_t axis, int64_t inner, const void* input,
                    void* output, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_SOFTMAX_H_
