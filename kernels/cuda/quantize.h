// quantize: between float32 and integers with a scale and a zero point. Rounding is to the nearest integer, ties to
// even; NaN becomes the smallest number.
// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch. No
// overlap.
#ifndef TENON_KERNELS_CUDA_QUANTIZE_H_
#define TENON_KERNELS_CUDA_QUANTIZE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/element_type.h"

namespace tenon::cuda {

// x as [outer][channels][inner] with a scale and a zero point for each channel; one for all: outer = channels = 1.
struct QuantizeShape {
  int64_t outer = 1, channels = 1, inner = 1;
};

// y = saturate(round(x / scale) + zero_point). zero_points may be null: 0. `to`: kU8 or kI8, others are
// cudaErrorInvalidValue.
cudaError_t quantize(ElementType to, const QuantizeShape& shape, const float* x, const float* scales,
                     const void* zero_points, void* y, cudaStream_t stream) noexcept;

// y = (x - zero_point) * scale. `from`: as above, or kI32.
cudaError_t dequantize(ElementType from, const QuantizeShape& shape, const void* x, const float* scales,
                       const void* zero_points, float* y, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_QUANTIZE_H_
