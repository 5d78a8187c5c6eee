// gather, scatter: runs of elements from or to places that indices name. They move bits, so one function serves all
// types of a size (1, 2, 4 or 8; cudaErrorInvalidValue for others). Every function launches on the stream, allocates
// nothing, does not wait, may be captured, and returns the error of the launch; buffers are device memory, aligned to
// their element, and do not overlap.
#ifndef TENON_KERNELS_CUDA_GATHER_H_
#define TENON_KERNELS_CUDA_GATHER_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/gather.h"

namespace tenon::cuda {

// output[b][t][:] = input[b][tuple t][:].
cudaError_t gather(const GatherShape& shape, Indices indices, int element_size, const void* input, void* output,
                   cudaStream_t stream) noexcept;

// output[i] = input[i with i[axis] replaced by indices[i]] for all i of index_dims, which the output has too; but for
// `axis` no index_dims[d] is above input_dims[d]. REQUIRES: 1 <= rank <= kGatherMaxRank; input_dims[axis] > 0.
cudaError_t gather_elements(int rank, int axis, const int64_t* input_dims, const int64_t* index_dims, Indices indices,
                            int element_size, const void* input, void* output, cudaStream_t stream) noexcept;

// output[tuple t][:] = updates[t][:] for each tuple in turn: where several name a position the last one wins. `shape`
// is that of gather with one batch. `owners` has an element for each position, product of sizes[0..depth); fewer than
// 2^31 tuples.
cudaError_t scatter(const GatherShape& shape, Indices indices, int element_size, const void* updates, int32_t* owners,
                    void* output, cudaStream_t stream) noexcept;

// output[i with i[axis] replaced by indices[i]] = updates[i] for all i of index_dims, in order. `owners` has an element
// for each of the output; fewer than 2^31 updates. REQUIRES: as gather_elements, for output_dims.
cudaError_t scatter_elements(int rank, int axis, const int64_t* output_dims, const int64_t* index_dims, Indices indices,
                             int element_size, const void* updates, int32_t* owners, void* output,
                             cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_GATHER_H_
