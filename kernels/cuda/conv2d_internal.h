// What the files of conv2d share on the host's side.
#ifndef TENON_KERNELS_CUDA_CONV2D_INTERNAL_H_
#define TENON_KERNELS_CUDA_CONV2D_INTERNAL_H_

#include "kernels/cuda/conv2d.h"

namespace tenon::cuda {

// Packed weights of the matrix products: [k][pitch], within a row [r][s][c/groups], filled with zeros.
constexpr int64_t weights_depth(const Conv2dGeometry& g) { return g.c / g.groups * g.r * g.s; }
constexpr int64_t weights_pitch(const Conv2dGeometry& g) { return (weights_depth(g) + 3) / 4 * 4; }

// `parts` is not null where needs_add_parts: [split_k], each dense and in the output's layout.
cudaError_t conv2d_implicit_gemm(const Conv2dGeometry& geometry, const Conv2dConfig& config,
                                 const Conv2dBuffers& buffers, const Epilogue& epilogue, float* parts,
                                 cudaStream_t stream) noexcept;

// kF32 only. Packed weights: [c][r][s] for kNchw, [r][s][c] for kNhwc.
cudaError_t conv2d_depthwise(const Conv2dGeometry& geometry, Layout layout, const Conv2dBuffers& buffers,
                             const Epilogue& epilogue, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_CONV2D_INTERNAL_H_
