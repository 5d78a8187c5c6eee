// gather: runs of elements from places that indices name. Moves bits, so one function serves all types of a size.
#ifndef TENON_KERNELS_CPU_GATHER_H_
#define TENON_KERNELS_CPU_GATHER_H_

#include <cstdint>

#include "kernels/common/gather.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

// output[b][t][:] = input[b][tuple t][:]. element_size is 1, 2, 4 or 8. Nothing is allocated or thrown.
void gather(const GatherShape& shape, Indices indices, int element_size, const void* input, void* output,
            const Parallel& parallel) noexcept;

// output[i] = input[i with i[axis] replaced by indices[i]] for all i of index_dims, which the output has too; but for
// `axis` no index_dims[d] is above input_dims[d]. REQUIRES: 1 <= rank <= kGatherMaxRank; input_dims[axis] > 0.
void gather_elements(int rank, int axis, const int64_t* input_dims, const int64_t* index_dims, Indices indices,
                     int element_size, const void* input, void* output, const Parallel& parallel) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_GATHER_H_
