// The per-instruction-set part of softmax.
#ifndef TENON_KERNELS_CPU_INTERNAL_SOFTMAX_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_SOFTMAX_ISA_H_

#include "kernels/cpu/softmax.h"

namespace tenon::cpu {

struct SoftmaxTable {
  // `rows` contiguous rows of `axis` elements.
  void (*rows)(SoftmaxKind kind, int64_t rows, int64_t axis, const float* input, float* output);
  // Columns [begin, end) of one [axis][inner] matrix, softmax down the columns.
  void (*columns)(SoftmaxKind kind, int64_t axis, int64_t inner, int64_t begin, int64_t end, const float* input,
                  float* output);
  // See softmax_of_scores.
  void (*scores)(int64_t count, float scale, const float* bias, float* x);
};

namespace baseline {
extern const SoftmaxTable kSoftmaxTable;
}
namespace avx2 {
extern const SoftmaxTable kSoftmaxTable;
}
namespace avx512 {
extern const SoftmaxTable kSoftmaxTable;
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_SOFTMAX_ISA_H_
