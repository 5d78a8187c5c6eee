#include "kernels/cpu/reduce.h"

#include <algorithm>

#include "kernels/cpu/internal/reduce_isa.h"

namespace tenon::cpu {
namespace {

const ReduceTable& table_of(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::kReduceTable : isa == Isa::kAvx2 ? avx2::kReduceTable : baseline::kReduceTable;
}

constexpr int64_t kGrain = 16 * 1024;  // elements of a task
constexpr int64_t kColumns = 256;      // of a task; a multiple of every vector width

}  // namespace

ReduceShape reduce_shape(int rank, const int64_t* dims, const bool* folded) noexcept {
  ReduceShape shape;
  for (int axis = 0; axis < rank; ++axis) {
    if (dims[axis] == 1) continue;
    if (shape.rank > 0 && shape.folded[shape.rank - 1] == folded[axis]) {
      shape.dims[shape.rank - 1] *= dims[axis];
      continue;
    }
    shape.dims[shape.rank] = dims[axis];
    shape.folded[shape.rank++] = folded[axis];
  }
  return shape;
}

void reduce(ReduceKind kind, const ReduceShape& shape, const float* input, float* output, const Parallel& parallel,
            Isa isa) noexcept {
  // The innermost axis is walked by vectors, the others by position.
  const int outer = shape.rank == 0 ? 0 : shape.rank - 1;
  const int64_t last = shape.rank == 0 ? 1 : shape.dims[outer];
  const bool rows = shape.rank == 0 || shape.folded[outer];
  ReduceWalk kept, folded;
  int64_t stride = last;
  int64_t strides[kMaxReduceRank] = {};
  for (int axis = outer - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape.dims[axis];
  }
  for (int axis = 0; axis < outer; ++axis) {
    ReduceWalk& walk = shape.folded[axis] ? folded : kept;
    walk.dims[walk.rank] = shape.dims[axis];
    walk.strides[walk.rank++] = strides[axis];
    walk.count *= shape.dims[axis];
  }
  const ReduceTable& table = table_of(isa);
  if (rows) {
    const int64_t grain = std::max<int64_t>(kGrain / std::max<int64_t>(folded.count * last, 1), 1);
    parallel_ranges(parallel, kept.count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        table.row(kind, folded, last, input + walk_offset(kept, i), output + i);
      }
    });
    return;
  }
  const int64_t blocks = (last + kColumns - 1) / kColumns;
  const int64_t work = std::max<int64_t>(folded.count * std::min(last, kColumns), 1);
  parallel_ranges(parallel, kept.count * blocks, std::max<int64_t>(kGrain / work, 1), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t i = task / blocks;
      const int64_t column = task % blocks * kColumns;
      table.columns(kind, folded, std::min(kColumns, last - column), input + walk_offset(kept, i) + column,
                    output + i * last + column);
    }
  });
}

void arg_extreme(bool smallest, int64_t outer, int64_t axis, int64_t inner, const float* input, int64_t* output,
                 const Parallel& parallel, Isa isa) noexcept {
  const ReduceTable& table = table_of(isa);
  if (inner == 1) {
    parallel_ranges(parallel, outer, std::max<int64_t>(kGrain / axis, 1), [&](int64_t begin, int64_t end) {
      table.arg_rows(smallest, end - begin, axis, input + begin * axis, output + begin);
    });
    return;
  }
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  parallel_for(parallel, outer * blocks, [&](int64_t task) {
    const int64_t column = task % blocks * kColumns;
    table.arg_columns(smallest, axis, inner, std::min(kColumns, inner - column),
                      input + task / blocks * axis * inner + column, output + task / blocks * inner + column);
  });
}

}  // namespace tenon::cpu
