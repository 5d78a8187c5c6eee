// What gather and scatter are asked for, on every device.
#ifndef TENON_KERNELS_COMMON_GATHER_H_
#define TENON_KERNELS_COMMON_GATHER_H_

#include <cstdint>

namespace tenon::kernels {

constexpr int kGatherMaxRank = 8;

// Indices in the memory of the device. Negative ones count from the end of their axis; those outside of it mean its
// nearest position.
struct Indices {
  const void* data;
  bool is_i64;  // else i32
};

// A batch of the input is a tensor of the axes `sizes` with `inner` elements at each position. Each of `tuples` tuples
// of `depth` indices names a position.
struct GatherShape {
  int64_t batches = 1;
  int64_t tuples = 0;
  int64_t inner = 1;
  int depth = 1;
  int64_t sizes[kGatherMaxRank] = {};  // above 0
  bool shared = false;                 // one set of tuples for all batches, rather than one for each
};

}  // namespace tenon::kernels

namespace tenon::cpu {
using kernels::GatherShape;
using kernels::Indices;
using kernels::kGatherMaxRank;
}  // namespace tenon::cpu

namespace tenon::cuda {
using kernels::GatherShape;
using kernels::Indices;
using kernels::kGatherMaxRank;
}  // namespace tenon::cuda

#endif  // TENON_KERNELS_COMMON_GATHER_H_
