// cumulate: running sums or products along an axis. kF32, kF16, kI32, kI64; floats are accumulated in double, integers
// wrap around.
// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch. The same
// sizes give the same bits. No overlap.
#ifndef TENON_KERNELS_CUDA_CUMULATE_H_
#define TENON_KERNELS_CUDA_CUMULATE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/element_type.h"

namespace tenon::cuda {

struct CumulateShape {
  int64_t outer = 1;
  int64_t size = 0;  // of the axis
  int64_t inner = 1;
  bool exclusive = false;  // element i holds what came before it
  bool reverse = false;    // from the end of the axis
  bool product = false;    // of products, not sums
};

cudaError_t cumulate(ElementType type, const CumulateShape& shape, const void* input, void* output,
                     cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_CUMULATE_H_
