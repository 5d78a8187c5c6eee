// pool: 2-D maximum and average pooling, float32, in any layout (input and output in the same one).
// Nothing is allocated or thrown; results are the same bits for every thread count.
#ifndef TENON_KERNELS_CPU_POOL_H_
#define TENON_KERNELS_CPU_POOL_H_

#include <cstddef>
#include <cstdint>

#include "kernels/common/layout.h"
#include "kernels/common/pool_geometry.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

// 0 for all layouts but kNchw, where each thread holds one padded row. The workspace needs 64-byte alignment.
size_t pool_workspace_bytes(const PoolGeometry& geometry, Layout layout, int threads, Isa isa) noexcept;

// REQUIRES: isa <= detect_isa(). Filling channels of a blocked output are written as 0.
void pool(PoolKind kind, const PoolGeometry& geometry, Layout layout, const float* input, float* output,
          void* workspace, const Parallel& parallel, Isa isa) noexcept;

// Mean over all h*w cells, which must be at least one. Output [n][c] for kNchw and kNhwc, and [n][ceil(c/b)][b] for the
// blocked layouts (filling channels 0).
void pool_global_average(Layout layout, int64_t n, int64_t c, int64_t h, int64_t w, const float* input, float* output,
                         const Parallel& parallel, Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_POOL_H_
