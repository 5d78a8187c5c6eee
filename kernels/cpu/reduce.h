// Folding of some axes of a row-major float32 tensor into one number: sums, extremes, norms.
#ifndef TENON_KERNELS_CPU_REDUCE_H_
#define TENON_KERNELS_CPU_REDUCE_H_

#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

enum class ReduceKind {
  kSum,
  kMean,
  kMax,  // NaN if any element is; -inf of nothing
  kMin,  // NaN if any element is; +inf of nothing
  kProd,
  kL1,         // sum |x|
  kL2,         // sqrt(sum x^2)
  kLogSum,     // log(sum x)
  kLogSumExp,  // log(sum exp(x)), without overflow
  kSumSquare,  // sum x^2
};

inline constexpr int kMaxReduceRank = 8;

// Axes from the outermost to the innermost; neighbours that are both folded or both kept are one axis.
struct ReduceShape {
  int rank = 0;
  int64_t dims[kMaxReduceRank] = {};
  bool folded[kMaxReduceRank] = {};
};

// REQUIRES: 0 <= rank <= kMaxReduceRank.
ReduceShape reduce_shape(int rank, const int64_t* dims, const bool* folded) noexcept;

// One output for each element of the kept axes, row-major. Input and output must not overlap. REQUIRES: isa <=
// detect_isa(). Nothing is allocated or thrown; the same bits for every thread count.
void reduce(ReduceKind kind, const ReduceShape& shape, const float* input, float* output, const Parallel& parallel,
            Isa isa) noexcept;

// Position of the largest (or smallest) element along the middle dimension of [outer][axis][inner], the first of equal
// ones; a NaN counts as the largest (smallest). REQUIRES: 1 <= axis <= INT32_MAX; otherwise as reduce().
void arg_extreme(bool smallest, int64_t outer, int64_t axis, int64_t inner, const float* input, int64_t* output,
                 const Parallel& parallel, Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_REDUCE_H_
