// The per-instruction-set part of pointwise.
#ifndef TENON_KERNELS_CPU_INTERNAL_POINTWISE_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_POINTWISE_ISA_H_

#include "kernels/cpu/pointwise.h"

namespace tenon::cpu {

// Largest magnitude for which the vector form of sine and cosine is exact enough.
constexpr float kSinCosRange = 1000.0f;

struct PointwiseTable {
  // REQUIRES for kSin and kCos: |x[i]| <= kSinCosRange.
  void (*unary)(UnaryKind kind, float alpha, float beta, int64_t count, const float* x, float* y);
  // One row: y[i] = a[i * a_stride] op b[i * b_stride].
  void (*binary)(BinaryKind kind, int64_t count, const float* a, int64_t a_stride, const float* b, int64_t b_stride,
                 float* y);
};

namespace baseline {
extern const PointwiseTable kPointwiseTable;
}
namespace avx2 {
extern const PointwiseTable kPointwiseTable;
}
namespace avx512 {
extern const PointwiseTable kPointwiseTable;
}

const PointwiseTable& pointwise_table(Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_POINTWISE_ISA_H_
