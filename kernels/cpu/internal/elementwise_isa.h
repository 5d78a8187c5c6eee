// The per-instruction-set part of elementwise: single rows. Strides are in elements.
#ifndef TENON_KERNELS_CPU_INTERNAL_ELEMENTWISE_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_ELEMENTWISE_ISA_H_

#include "kernels/cpu/elementwise.h"

namespace tenon::cpu {

struct ElementwiseTable {
  void (*compare)(CompareKind kind, ElementType type, int64_t count, const void* a, int64_t a_stride, const void* b,
                  int64_t b_stride, uint8_t* y);
  void (*where)(int element_bytes, int64_t count, const uint8_t* condition, int64_t condition_stride, const void* a,
                int64_t a_stride, const void* b, int64_t b_stride, void* y);
  void (*integer_binary)(BinaryKind kind, ElementType type, int64_t count, const void* a, int64_t a_stride,
                         const void* b, int64_t b_stride, void* y);
};

namespace baseline {
extern const ElementwiseTable kElementwiseTable;
}
namespace avx2 {
extern const ElementwiseTable kElementwiseTable;
}
namespace avx512 {
extern const ElementwiseTable kElementwiseTable;
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_ELEMENTWISE_ISA_H_
