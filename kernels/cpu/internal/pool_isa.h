// The per-instruction-set part of pool.
#ifndef TENON_KERNELS_CPU_INTERNAL_POOL_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_POOL_ISA_H_

#include "kernels/cpu/inline.h"
#include "kernels/cpu/pool.h"

namespace tenon::cpu {

struct PoolTable {
  // One plane of NCHW; scratch holds pool_slot_floats.
  void (*plane)(PoolKind kind, const PoolGeometry& geometry, const float* input, float* output, float* scratch);
  // Rows [oh_begin, oh_end) of one image of pixels with `channels` channels; those from `valid` on are written as 0.
  void (*pixels)(PoolKind kind, const PoolGeometry& geometry, int64_t channels, int64_t valid, const float* input,
                 float* output, int64_t oh_begin, int64_t oh_end);
  float (*sum)(int64_t count, const float* input);
  // output[i] = scale * sum of `count` pixels, `pitch` floats apart, for `lanes` channels.
  void (*sum_pixels)(int64_t count, int64_t lanes, int64_t pitch, float divisor, const float* input, float* output);
};

// The row of column results, the same split by column modulo the stride, and the divisors of a row.
TENON_CPU_INLINE int64_t pool_phase_floats(const PoolGeometry& g) {
  return g.ow + (g.kernel_w - 1) * g.dilation_w / g.stride_w + 1;
}
TENON_CPU_INLINE int64_t pool_slot_floats(const PoolGeometry& g) {
  return ((g.stride_w == 1 ? 1 : 2) * g.stride_w * pool_phase_floats(g) + g.ow + 15) / 16 * 16;
}

namespace baseline {
extern const PoolTable kPoolTable;
}
namespace avx2 {
extern const PoolTable kPoolTable;
}
namespace avx512 {
extern const PoolTable kPoolTable;
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_POOL_ISA_H_
