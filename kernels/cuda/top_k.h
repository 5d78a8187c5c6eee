// top_k, arg_extreme: the best elements along an axis and where they stand; float types. Both launch on the stream,
// allocate nothing, do not wait, may be captured, and return the error of the launch. REQUIRES: buffers aligned to
// their element and not overlapping.
#ifndef TENON_KERNELS_CUDA_TOP_K_H_
#define TENON_KERNELS_CUDA_TOP_K_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/element_type.h"

namespace tenon::cuda {

struct TopKShape {
  int64_t outer = 1;
  int64_t size = 0;  // of the axis; below kTopKMostSize
  int64_t inner = 1;
  int64_t k = 0;  // 0 to size
  bool largest = true;
};
constexpr int64_t kTopKMostSize = INT64_C(0x80000000);

// Bytes of the workspace that top_k needs.
uint64_t top_k_workspace(const TopKShape& shape) noexcept;

// values and indices are [outer][k][inner], the best first, of equals the one with the lower index. NaN is larger than
// every number. `workspace` is aligned to 8.
cudaError_t top_k(ElementType type, const TopKShape& shape, const void* input, void* values, int64_t* indices,
                  void* workspace, cudaStream_t stream) noexcept;

// output[o][i] is the position of the extreme one of x[o][:][i], x being [outer][size][inner]: NaN if there is one; of
// equals the first, or the last. REQUIRES: 1 <= size < kTopKMostSize.
cudaError_t arg_extreme(ElementType type, bool smallest, bool last, int64_t outer, int64_t size, int64_t inner,
                        const void* x, int64_t* output, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_TOP_K_H_
