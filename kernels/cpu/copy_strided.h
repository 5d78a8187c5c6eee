// copy_strided: N-dimensional copy with strides on both sides, for slice, concat, pad, flip and broadcast.
#ifndef TENON_KERNELS_CPU_COPY_STRIDED_H_
#define TENON_KERNELS_CPU_COPY_STRIDED_H_

#include <cstdint>

#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

constexpr int kCopyMaxRank = 16;  // tile takes two for each axis

// output[sum i_d*output_strides[d]] = input[sum i_d*input_strides[d]] for all 0 <= i_d < dims[d]; strides in elements,
// input strides may be 0 or negative (the pointer is that of index 0), output strides must reach each element once.
// REQUIRES: 0 <= rank <= kCopyMaxRank; element_size is 1, 2, 4 or 8; buffers aligned to it and not overlapping.
// Nothing is allocated or thrown.
void copy_strided(int rank, const int64_t* dims, const int64_t* input_strides, const int64_t* output_strides,
                  int element_size, const void* input, void* output, const Parallel& parallel) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_COPY_STRIDED_H_
