// The per-instruction-set part of reduce.
#ifndef TENON_KERNELS_CPU_INTERNAL_REDUCE_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_REDUCE_ISA_H_

#include "kernels/cpu/reduce.h"

namespace tenon::cpu {

// Positions of a strided box in row-major order.
struct ReduceWalk {
  int rank = 0;
  int64_t count = 1;
  int64_t dims[kMaxReduceRank] = {};
  int64_t strides[kMaxReduceRank] = {};
};

TENON_CPU_INLINE int64_t walk_offset(const ReduceWalk& walk, int64_t position) {
  int64_t offset = 0;
  for (int axis = walk.rank - 1; axis > 0; --axis) {
    offset += position % walk.dims[axis] * walk.strides[axis];
    position /= walk.dims[axis];
  }
  return walk.rank > 0 ? offset + position * walk.strides[0] : offset;
}

struct ReduceTable {
  // One output: contiguous rows of `length` elements that begin at the positions of `rows`.
  void (*row)(ReduceKind kind, const ReduceWalk& rows, int64_t length, const float* input, float* output);
  // `columns` neighbouring outputs: down the rows that begin at the positions of `rows`.
  void (*columns)(ReduceKind kind, const ReduceWalk& rows, int64_t columns, const float* input, float* output);
  // arg_extreme of `rows` contiguous rows, and of `columns` columns of one [axis][inner] matrix.
  void (*arg_rows)(bool smallest, int64_t rows, int64_t axis, const float* input, int64_t* output);
  void (*arg_columns)(bool smallest, int64_t axis, int64_t inner, int64_t columns, const float* input, int64_t* output);
};

namespace baseline {
extern const ReduceTable kReduceTable;
}
namespace avx2 {
extern const ReduceTable kReduceTable;
}
namespace avx512 {
extern const ReduceTable kReduceTable;
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_REDUCE_ISA_H_
