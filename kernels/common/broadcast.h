// Operands of one shape each under numpy's broadcasting, for every device.
#ifndef TENON_KERNELS_COMMON_BROADCAST_H_
#define TENON_KERNELS_COMMON_BROADCAST_H_

#include <algorithm>
#include <cstdint>

namespace tenon::kernels {

constexpr int kBroadcastMaxRank = 8;

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

}  // namespace tenon::kernels

namespace tenon::cpu {
using kernels::Broadcast;
using kernels::broadcast_shape;
using kernels::collapse;
using kernels::kBroadcastMaxRank;
}  // namespace tenon::cpu

namespace tenon::cuda {
using kernels::Broadcast;
using kernels::broadcast_shape;
using kernels::collapse;
using kernels::kBroadcastMaxRank;
}  // namespace tenon::cuda

#endif  // TENON_KERNELS_COMMON_BROADCAST_H_
