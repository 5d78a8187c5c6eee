// pad: a tensor with more (or fewer) positions along its axes. Moves bits, so one function serves all types of a size.
#ifndef TENON_KERNELS_CPU_PAD_H_
#define TENON_KERNELS_CPU_PAD_H_

#include <cstdint>

#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

constexpr int kPadMaxRank = 8;

struct PadShape {
  int rank = 1;                           // at least 1
  int64_t dims[kPadMaxRank] = {};         // of the output
  int64_t strides[kPadMaxRank] = {};      // of the input, in elements
  const int64_t* maps[kPadMaxRank] = {};  // for each position of the output that of the input; -1: the fill value
  int64_t inner = 1;                      // elements at each position of the last axis, in the input one after another
  int64_t begin = 0, end = 0;             // where the last axis' map counts up by ones
};

// `fill` is one element. element_size is 1, 2, 4 or 8. Nothing is allocated or thrown.
void pad(const PadShape& shape, int element_size, const void* input, const void* fill, void* output,
         const Parallel& parallel) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_PAD_H_
