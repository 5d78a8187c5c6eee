// Operands of one shape each under numpy's broadcasting, and the walk over them row by row.
#ifndef TENON_KERNELS_CPU_BROADCAST_H_
#define TENON_KERNELS_CPU_BROADCAST_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

constexpr int kBroadcastMaxRank = 8;
// Elements below which another thread costs more than it gives.
constexpr int64_t kPointwiseGrain = 16 * 1024;

// Output dimension i has size dims[i]; operand k walks it with strides[k][i], in elements, and a stride of 0 repeats.
// The output is dense, row-major. rank 0 is one element.
template <int kOperands>
struct Broadcast {
  int rank = 0;
  int64_t dims[kBroadcastMaxRank] = {};
  int64_t strides[kOperands][kBroadcastMaxRank] = {};
};

// The shape for dense operands with numpy's rules (aligned at the last dimension, 1 repeats).
// Success: true. Failure: false if the shapes do not fit or a rank is above kBroadcastMaxRank; *shape is unspecified.
template <int kOperands>
bool broadcast_shape(const int* ranks, const int64_t* const* operand_dims, Broadcast<kOperands>* shape) noexcept {
  shape->rank = 0;
  for (int k = 0; k < kOperands; ++k) {
    if (ranks[k] < 0 || ranks[k] > kBroadcastMaxRank) return false;
    shape->rank = std::max(shape->rank, ranks[k]);
  }
  int64_t steps[kOperands];
  for (int64_t& step : steps) step = 1;
  for (int i = shape->rank - 1; i >= 0; --i) {
    int64_t sizes[kOperands];
    shape->dims[i] = 1;
    for (int k = 0; k < kOperands; ++k) {
      const int own = i - (shape->rank - ranks[k]);
      sizes[k] = own >= 0 ? operand_dims[k][own] : 1;
      if (sizes[k] == 1) continue;
      if (shape->dims[i] != 1 && shape->dims[i] != sizes[k]) return false;
      shape->dims[i] = sizes[k];
    }
    for (int k = 0; k < kOperands; ++k) {
      shape->strides[k][i] = sizes[k] == 1 ? 0 : steps[k];
      steps[k] *= sizes[k];
    }
  }
  return true;
}

// Drops dimensions of size 1 and joins neighbours that all operands walk as one. The result has a rank of at least 1.
template <int kOperands>
Broadcast<kOperands> collapse(const Broadcast<kOperands>& shape) noexcept {
  Broadcast<kOperands> result;
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] == 1) continue;
    const int last = result.rank - 1;
    bool joins = last >= 0;
    for (int k = 0; joins && k < kOperands; ++k) {
      joins = result.strides[k][last] == shape.strides[k][i] * shape.dims[i];
    }
    const int at = joins ? last : result.rank++;
    result.dims[at] = joins ? result.dims[at] * shape.dims[i] : shape.dims[i];
    for (int k = 0; k < kOperands; ++k) result.strides[k][at] = shape.strides[k][i];
  }
  if (result.rank == 0) {
    result.rank = 1;
    result.dims[0] = 1;
  }
  return result;
}

// Calls row(count, offsets, strides, out) for runs of `count` outputs from number `out` on that together cover the
// output; operand k starts at offsets[k] and advances by strides[k].
template <int kOperands, class Row>
void for_each_row(const Broadcast<kOperands>& shape, const Parallel& parallel, const Row& row) {
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
    parallel_ranges(parallel, columns, kPointwiseGrain, [&](int64_t begin, int64_t end) {
      Offsets offsets;
      for (int k = 0; k < kOperands; ++k) offsets[k] = begin * steps[k];
      row(end - begin, offsets, steps, begin);
    });
    return;
  }
  int64_t rows = 1;
  for (int i = 0; i < inner; ++i) rows *= flat.dims[i];
  parallel_ranges(parallel, rows, std::max<int64_t>(kPointwiseGrain / columns, 1), [&](int64_t begin, int64_t end) {
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
