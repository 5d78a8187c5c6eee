// conv_nd: convolutions and transposed convolutions of images with one to three axes, [n][channels][pixels], any
// groups, strides and dilations; float types (element_type.h), sums in float32. conv2d.h has what is faster for two
// axes and packed weights.
// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch. The same
// sizes give the same bits. No overlap.
#ifndef TENON_KERNELS_CUDA_CONV_ND_H_
#define TENON_KERNELS_CUDA_CONV_ND_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/element_type.h"
#include "kernels/cuda/epilogue.h"

namespace tenon::cuda {

constexpr int kConvNdMaxAxes = 3;

// Window position p of an axis has its tap t at pixel p * stride - pad + t * dilation.
struct ConvNdShape {
  bool transposed = false;  // x has the positions and y the pixels; otherwise the other way round
  int64_t n = 1;
  int64_t inputs = 1;  // channels of x
  int64_t outputs = 1;
  int64_t groups = 1;
  int axes = 1;  // from the outermost to the innermost
  int64_t pixels[kConvNdMaxAxes] = {};
  int64_t positions[kConvNdMaxAxes] = {};
  int64_t kernel[kConvNdMaxAxes] = {};
  int64_t stride[kConvNdMaxAxes] = {};
  int64_t dilation[kConvNdMaxAxes] = {};
  int64_t pad[kConvNdMaxAxes] = {};
};

enum class ConvNdAlgorithm : int {
  kDirect,        // a thread for each pixel of a few channels; for small convolutions and many groups
  kImplicitGemm,  // a tiled product whose patches are gathered as they are read
};

// False where a coordinate may go beyond 2^30 in either direction, or with more axes or as many weights for a channel.
bool conv_nd_supports(const ConvNdShape& shape) noexcept;

// Weights [outputs][inputs / groups][taps], or transposed [inputs][outputs / groups][taps]. bias [outputs] and residual
// (as y, added before the activation) may be null. cudaErrorInvalidValue where conv_nd_supports is false.
cudaError_t conv_nd(ElementType type, ConvNdAlgorithm algorithm, const ConvNdShape& shape, const void* x,
                    const void* weights, const void* bias, const void* residual, const Epilogue& epilogue, void* y,
                    cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_CONV_ND_H_
