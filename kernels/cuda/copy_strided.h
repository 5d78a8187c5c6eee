// copy_strided: N-dimensional copy with strides on both sides, for slice, concat, pad, flip, broadcast and transpose.
// Moves bits, so one function serves all types of a size.
#ifndef TENON_KERNELS_CUDA_COPY_STRIDED_H_
#define TENON_KERNELS_CUDA_COPY_STRIDED_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tenon::cuda {

constexpr int kCopyMaxRank = 16;  // tile takes two for each axis

// output[sum i_d*output_strides[d]] = input[sum i_d*input_strides[d]] for all 0 <= i_d < dims[d]; strides in elements,
// input strides may be 0 or negative (the pointer is that of index 0), output strides must reach each element once.
// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch, and
// cudaErrorInvalidValue for a rank outside 0..kCopyMaxRank or an element size that is not 1, 2, 4 or 8.
// REQUIRES: buffers aligned to the element and not overlapping.
cudaError_t copy_strided(int rank, const int64_t* dims, const int64_t* input_strides, const int64_t* output_strides,
                         int element_size, const void* input, void* output, cudaStream_t stream) noexcept;

// Output dimension i is input dimension perm[i]; both dense, row-major. perm is a permutation of 0..rank-1; the rest as
// for copy_strided.
cudaError_t transpose(int rank, const int64_t* input_dims, const int* perm, int element_size, const void* input,
                      void* output, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_COPY_STRIDED_H_
