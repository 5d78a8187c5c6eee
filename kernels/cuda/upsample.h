// upsample: nearest neighbour by whole factors, float types (element_type.h):
// y[n,c,i,j] = scale * x[n,c,i/factor_h,j/factor_w].
#ifndef TENON_KERNELS_CUDA_UPSAMPLE_H_
#define TENON_KERNELS_CUDA_UPSAMPLE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/layout.h"
#include "kernels/cuda/element_type.h"

namespace tenon::cuda {

// Input n x c x h x w, output n x c x h*factor_h x w*factor_w in the same layout, kNchw or kNhwc (another one returns
// cudaErrorInvalidValue); scale 1 keeps values as they are. REQUIRES: factors >= 1; no overlap.
// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch.
cudaError_t upsample_nearest(ElementType type, Layout layout, int64_t n, int64_t c, int64_t h, int64_t w,
                             int64_t factor_h, int64_t factor_w, float scale, const void* input, void* output,
                             cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_UPSAMPLE_H_
