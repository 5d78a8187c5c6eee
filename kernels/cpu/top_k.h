// top_k: the largest or smallest elements along an axis and where they stand.
#ifndef TENON_KERNELS_CPU_TOP_K_H_
#define TENON_KERNELS_CPU_TOP_K_H_

#include <cstdint>

#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

struct TopKShape {
  int64_t outer = 1;
  int64_t size = 0;  // of the axis; below kTopKMostSize
  int64_t inner = 1;
  int64_t k = 0;  // 0 to size
  bool largest = true;
};
constexpr int64_t kTopKMostSize = INT64_C(0xFFFFFFFF);

// Bytes of the workspace that top_k needs for so many threads.
uint64_t top_k_workspace(const TopKShape& shape, int threads);

// values and indices are [outer][k][inner], the best first, of equals the one with the lower index. NaN is larger than
// every number. `workspace` is aligned to 8. Nothing is allocated or thrown.
void top_k(const TopKShape& shape, const float* input, float* values, int64_t* indices, void* workspace,
           const Parallel& parallel) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_TOP_K_H_
