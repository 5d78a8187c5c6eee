// reformat: between the layouts of layout.h, elements of 2 or 4 bytes.
#ifndef TENON_KERNELS_CUDA_REFORMAT_H_
#define TENON_KERNELS_CUDA_REFORMAT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/layout.h"

namespace tenon::cuda {

// Any layout to any layout (a plain copy if they are equal). Filling channels of a blocked output are written as 0;
// those of a blocked input are not read. Buffers are aligned to the element and do not overlap.
// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch, and
// cudaErrorInvalidValue for another element size.
cudaError_t reformat(Layout from, Layout to, int64_t n, int64_t c, int64_t h, int64_t w, int element_size,
                     const void* input, void* output, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_REFORMAT_H_
