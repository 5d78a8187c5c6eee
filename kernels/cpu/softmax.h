// softmax over the middle dimension of [outer][axis][inner], float32:
//   y = exp(x - max) / sum(exp(x - max)), maximum and sum along the axis.
// -inf inputs give 0; a row of -inf alone, or one that holds +inf or NaN, gives NaN, as the formula does.
// `log` gives x - max - log(sum) instead. Input and output may be the same buffer, or must not overlap.
#ifndef TENON_KERNELS_CPU_SOFTMAX_H_
#define TENON_KERNELS_CPU_SOFTMAX_H_

#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

enum class SoftmaxKind { kSoftmax, kLogSoftmax };

// REQUIRES: isa <= detect_isa(). Nothing is allocated or thrown; the same bits for every thread count.
void softmax(SoftmaxKind kind, int64_t outer, int64_t axis, int64_t inner, const float* input, float* output,
             const Parallel& parallel, Isa isa) noexcept;

// In place on `count` numbers: x = softmax(scale * x + bias), as attention has it. bias is null or holds `count`
// numbers; where it is -inf the result is 0 whatever x is, and so is every result if nothing is left. REQUIRES as
// above.
void softmax_of_scores(int64_t count, float scale, const float* bias, float* x, Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_SOFTMAX_H_
