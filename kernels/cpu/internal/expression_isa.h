// The per-instruction-set part of expression: the steps that pointwise has no function for, over one block. Strides
// are 0 or 1.
#ifndef TENON_KERNELS_CPU_INTERNAL_EXPRESSION_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_EXPRESSION_ISA_H_

#include "kernels/cpu/expression.h"

namespace tenon::cpu {

struct ExpressionTable {
  // Of kAnd to kEqual.
  void (*compare)(ExprKind kind, int64_t count, const float* a, int64_t a_stride, const float* b, int64_t b_stride,
                  float* y);
  void (*select)(int64_t count, const float* condition, const float* a, int64_t a_stride, const float* b,
                 int64_t b_stride, float* y);
  void (*integer)(float low, float high, int64_t count, const float* x, float* y);
  // Operand k at `rows` rows of `flat` from number `row` on, written out one row after the other.
  void (*expand)(const ExprShape& flat, int k, int64_t row, int64_t rows, const float* x, float* y);
};

namespace baseline {
extern const ExpressionTable kExpressionTable;
}
namespace avx2 {
extern const ExpressionTable kExpressionTable;
}
namespace avx512 {
extern const ExpressionTable kExpressionTable;
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_EXPRESSION_ISA_H_
