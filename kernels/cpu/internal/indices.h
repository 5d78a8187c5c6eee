// Indices of the gather and scatter kernels.
#ifndef TENON_KERNELS_CPU_INTERNAL_INDICES_H_
#define TENON_KERNELS_CPU_INTERNAL_INDICES_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/gather.h"

namespace tenon::cpu {

// Where an index points on an axis of `size` > 0 positions: see Indices.
inline int64_t place(int64_t index, int64_t size) {
  return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size - 1);
}

// The row-major number of the position that `depth` indices name.
template <class Index>
int64_t position(const Index* tuple, int depth, const int64_t* sizes) {
  int64_t at = 0;
  for (int d = 0; d < depth; ++d) at = at * sizes[d] + place(tuple[d], sizes[d]);
  return at;
}

// Calls body with the indices as const int64_t* or const int32_t*.
template <class Body>
void with_index(Indices indices, Body&& body) {
  if (indices.is_i64) {
    body(static_cast<const int64_t*>(indices.data));
  } else {
    body(static_cast<const int32_t*>(indices.data));
  }
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_INDICES_H_
