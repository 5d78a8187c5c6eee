// normalize: lists of elements normalised by their own statistics, and across neighbouring channels; float types
// (element_type.h), arithmetic in float32.
// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch. The same
// sizes give the same bits.
#ifndef TENON_KERNELS_CUDA_NORMALIZE_H_
#define TENON_KERNELS_CUDA_NORMALIZE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/element_type.h"
#include "kernels/cuda/epilogue.h"

namespace tenon::cuda {

enum class NormKind : int {
  kLayer,  // y = (x - mean) / sqrt(mean((x - mean)^2) + epsilon)
  kRms,    // y = x / sqrt(mean(x^2) + epsilon)
  kL1,     // y = x / sum |x|, 0 where that sum is 0
  kL2,     // y = x / sqrt(sum x^2), 0 where that sum is 0
};

// Lists along the middle dimension of [outer][axis][inner]; then element i of list l is y * scale[at] + bias[at] with
// at = l % groups * factors + i / run.
struct NormShape {
  int64_t outer = 1;
  int64_t axis = 1;
  int64_t inner = 1;
  int64_t groups = 1;   // lists after which scale and bias begin anew
  int64_t factors = 0;  // of a list
  int64_t run = 1;      // elements that share a factor

  // One factor for each element of a row.
  static NormShape rows(int64_t rows, int64_t length) { return {rows, length, 1, 1, 0, 1}; }
  // Groups of `channels` neighbouring channels of `pixels` each, with a factor for each channel or, `of_group`, for
  // each group.
  static NormShape channel_groups(int64_t n, int64_t groups, int64_t channels, int64_t pixels, bool of_group) {
    return {n * groups, channels * pixels, 1, groups, of_group ? 1 : channels, of_group ? channels * pixels : pixels};
  }
};

// scale and bias may be null for 1 and 0. x and y may be the same buffer, or must not overlap.
cudaError_t normalize(ElementType type, NormKind kind, const NormShape& shape, float epsilon, const void* x,
                      const void* scale, const void* bias, const Epilogue& epilogue, void* y,
                      cudaStream_t stream) noexcept;

// y[c] = x[c] / (bias + alpha / size * sum(x[i]^2))^beta, i in [c - (size - 1) / 2, c + size / 2] as far as there are
// channels, of [outer][channels][inner]. No overlap. REQUIRES: 1 <= size.
struct LrnParams {
  int64_t size;
  float alpha;
  float beta;
  float bias;
};
cudaError_t local_response_norm(ElementType type, const LrnParams& params, int64_t outer, int64_t channels,
                                int64_t inner, const void* x, void* y, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_NORMALIZE_H_
