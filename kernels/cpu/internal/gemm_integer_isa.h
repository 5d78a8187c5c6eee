// The per-instruction-set part of the integer matrix product.
#ifndef TENON_KERNELS_CPU_INTERNAL_GEMM_INTEGER_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_GEMM_INTEGER_ISA_H_

#include "kernels/cpu/gemm_integer.h"

namespace tenon::cpu {

struct IntegerGemmTable {
  // c[row][column] += over `pairs` pairs; rows of A are a_stride numbers apart; columns <= kIntegerPanel.
  void (*panel)(int64_t rows, int64_t columns, int64_t pairs, const int16_t* a, int64_t a_stride, const int16_t* panel,
                int32_t* c, int64_t ldc);
};

namespace baseline {
extern const IntegerGemmTable kIntegerGemmTable;
}
namespace avx2 {
extern const IntegerGemmTable kIntegerGemmTable;
}
namespace avx512 {
extern const IntegerGemmTable kIntegerGemmTable;
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_GEMM_INTEGER_ISA_H_
