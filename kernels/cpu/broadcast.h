// The walk over broadcast operands (kernels/common/broadcast.h) row by row.
#ifndef TENON_KERNELS_CPU_BROADCAST_H_
#define TENON_KERNELS_CPU_BROADCAST_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/common/broadcast.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

// Elements below which another thread costs more than it gives.
constexpr int64_t kPointwiseGrain = 16 * 1024;

// Calls row(count, offsets, strides, out) for runs of `count` outputs from number `out` on that together cover the
// output; operand k starts at offsets[k] and advances by strides[k]. A thread gets at least `grain` elements.
template <int kOperands, class Row>
void for_each_row(const Broadcast<kOperands>& shape, const Parallel& parallel, const Row& row,
                  int64_t grain = kPointwiseGrain) {
  using Offsets = std::array<int64_t, kOperands>;
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] == 0) return;
  }
  const Broadcast<kOperands> flat = collapse(shape);
  const int inner = flat.rank - 1;
  const int64_t columns = flat.dims[inner];
  Offsets steps;
  for (int k = 0; k < kOperands; ++k) steps[k] = flat.strides[k][inner];
  if (flat.rank == 1) {
    parallel_ranges(parallel, columns, grain, [&](int64_t begin, int64_t end) {
      Offsets offsets;
      for (int k = 0; k < kOperands; ++k) offsets[k] = begin * steps[k];
      row(end - begin, offsets, steps, begin);
    });
    return;
  }
  int64_t rows = 1;
  for (int i = 0; i < inner; ++i) rows *= flat.dims[i];
  parallel_ranges(parallel, rows, std::max<int64_t>(grain / columns, 1), [&](int64_t begin, int64_t end) {
    int64_t index[kBroadcastMaxRank] = {};
    Offsets offsets = {};
    int64_t rest = begin;
    for (int i = inner - 1; i >= 0; --i) {
      index[i] = rest % flat.dims[i];
      rest /= flat.dims[i];
      for (int k = 0; k < kOperands; ++k) offsets[k] += index[i] * flat.strides[k][i];
    }
    for (int64_t at = begin; at < end; ++at) {
      row(columns, offsets, steps, at * columns);
      for (int i = inner - 1; i >= 0; --i) {
        for (int k = 0; k < kOperands; ++k) offsets[k] += flat.strides[k][i];
        if (++index[i] < flat.dims[i]) break;
        for (int k = 0; k < kOperands; ++k) offsets[k] -= flat.dims[i] * flat.strides[k][i];
        index[i] = 0;
      }
    }
  });
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_BROADCAST_H_
