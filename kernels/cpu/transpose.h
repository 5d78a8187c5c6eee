// transpose: general permutation of dimensions. Moves bits, so one function serves all types of a size.
#ifndef TENON_KERNELS_CPU_TRANSPOSE_H_
#define TENON_KERNELS_CPU_TRANSPOSE_H_

#include <cstdint>

#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

constexpr int kTransposeMaxRank = 8;

// Output dimension i is input dimension perm[i]; both dense, row-major, not overlapping, aligned to element_size.
// REQUIRES: 0 <= rank <= kTransposeMaxRank; perm is a permutation of 0..rank-1; element_size is 1, 2, 4 or 8.
// Nothing is allocated or thrown.
void transpose(int rank, const int64_t* input_dims, const int* perm, int element_size, const void* input, void* output,
               const Parallel& parallel) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_TRANSPOSE_H_
