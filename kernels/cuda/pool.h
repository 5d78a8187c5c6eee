// pool: 2-D maximum and average pooling in kNchw or kNhwc (input and output in the same one), float types
// (element_type.h).
// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch, and
// cudaErrorInvalidValue where pool_supports is false. The same sizes give the same bits. No overlap.
#ifndef TENON_KERNELS_CUDA_POOL_H_
#define TENON_KERNELS_CUDA_POOL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/layout.h"
#include "kernels/common/pool_geometry.h"
#include "kernels/cuda/element_type.h"

namespace tenon::cuda {

// False for the blocked layouts, and where a window reaches a coordinate beyond 2^30 in either direction.
bool pool_supports(const PoolGeometry& geometry, Layout layout) noexcept;

cudaError_t pool(ElementType type, PoolKind kind, const PoolGeometry& geometry, Layout layout, const void* input,
                 void* output, cudaStream_t stream) noexcept;

// Mean over all h*w cells, which must be at least one. Output [n][c] for both layouts.
cudaError_t pool_global_average(ElementType type, Layout layout, int64_t n, int64_t c, int64_t h, int64_t w,
                                const void* input, void* output, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_POOL_H_
