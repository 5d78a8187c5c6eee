// upsample: nearest neighbour by whole factors, float32: y[n,c,i,j] = scale * x[n,c,i/factor_h,j/factor_w].
#ifndef TENON_KERNELS_CPU_UPSAMPLE_H_
#define TENON_KERNELS_CPU_UPSAMPLE_H_

#include <cstdint>

#include "kernels/common/layout.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

// Input n x c x h x w, output n x c x h*factor_h x w*factor_w in the same layout; scale 1 copies bits.
// REQUIRES: factors >= 1; no overlap. Nothing is allocated or thrown.
void upsample_nearest(Layout layout, int64_t n, int64_t c, int64_t h, int64_t w, int64_t factor_h, int64_t factor_w,
                      float scale, const float* input, float* output, const Parallel& parallel) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_UPSAMPLE_H_
