// Plain loops over two operands, for files that are compiled once per instruction set.
#ifndef TENON_KERNELS_CPU_INTERNAL_COMBINE_H_
#define TENON_KERNELS_CPU_INTERNAL_COMBINE_H_

#include <cstdint>

#include "kernels/cpu/inline.h"

namespace tenon::cpu::TENON_CPU_ISA {

// y[i] = function(a[i * a_stride], b[i * b_stride]); the compiler vectorises it for strides of 0 and 1.
template <class A, class Y, class Function>
TENON_CPU_INLINE void combine(int64_t count, const A* a, int64_t a_stride, const A* b, int64_t b_stride, Y* y,
                              const Function& function) {
  if (a_stride == 1 && b_stride == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] = function(a[i], b[i]);
  } else if (a_stride == 1 && b_stride == 0) {
    const A second = *b;
    for (int64_t i = 0; i < count; ++i) y[i] = function(a[i], second);
  } else if (a_stride == 0 && b_stride == 1) {
    const A first = *a;
    for (int64_t i = 0; i < count; ++i) y[i] = function(first, b[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = function(a[i * a_stride], b[i * b_stride]);
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA

#endif  // TENON_KERNELS_CPU_INTERNAL_COMBINE_H_
