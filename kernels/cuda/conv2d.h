// conv2d: 2-D convolution (cross-correlation, as in the deep learning frameworks), float types (element_type.h).
//   y[n,k,oh,ow] = act(bias[k] + residual[n,k,oh,ow]
//                      + sum over c,r,s of x[n, g*C/groups + c, oh*stride_h - pad_top + r*dilation_h,
//                                            ow*stride_w - pad_left + s*dilation_w] * weights[k,c,r,s])
// with g = k / (K/groups), and x = 0 outside the image.
//
// Use: choose a Conv2dConfig for which conv2d_supports is true; pack the weights once; ask for the workspace; call
// conv2d any number of times, concurrently if each call has its own workspace and output.
//
// Common rules
// - Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch, and
//   cudaErrorInvalidValue where conv2d_supports is false.
// - Pointers are device memory, aligned to their element (16 is faster); packed weights and workspaces to 16.
// - Arithmetic is float32 with fused multiply-add, never tf32. The same geometry and config give the same bits.
// - Packed weights fit the very geometry (but n, h, w, oh, ow, pads, strides and dilations) and config that they were
//   packed for.
// - A dimension of 0 is fine: with n, k, oh or ow 0 nothing is launched; with c 0 the sum is 0.
#ifndef TENON_KERNELS_CUDA_CONV2D_H_
#define TENON_KERNELS_CUDA_CONV2D_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/common/conv2d_geometry.h"
#include "kernels/common/layout.h"
#include "kernels/cuda/epilogue.h"
#include "kernels/cuda/gemm.h"

namespace tenon::cuda {

enum class Conv2dAlgorithm : int {
  // A matrix product whose patches are gathered as they are read; any geometry. Tactics: all but kSkinny.
  kImplicitGemm,
  // The 1x1 kernel with stride 1, no padding and groups 1, as gemm on the tensors as they are. Tactics: all of gemm's.
  kGemm1x1,
  // groups == c == k. Ignores the tactic.
  kDepthwise,
};

// kF16: only kImplicitGemm, with the tactic k64x64, without split_k or with cluster.
struct Conv2dConfig {
  Conv2dAlgorithm algorithm = Conv2dAlgorithm::kImplicitGemm;
  Layout layout = Layout::kNchw;  // of input and output: kNchw or kNhwc
  GemmTactic tactic;
  ElementType type = ElementType::kF32;  // of input, weights, bias, residual and output; packed weights are float
};

struct Conv2dBuffers {
  const void* input = nullptr;
  const void* packed_weights = nullptr;
  const void* bias = nullptr;      // null, or [k]
  const void* residual = nullptr;  // null, or a tensor of the output's shape and layout; may be the output itself
  void* output = nullptr;
  void* workspace = nullptr;  // conv2d_workspace_bytes bytes, may be null if that is 0
};

// Whether the config computes this geometry. False, too, where n*oh*ow, k or c/groups*r*s come near 2^31, where a
// window reaches a coordinate beyond 2^30, and where gemm_supports would refuse the tactic.
bool conv2d_supports(const Conv2dGeometry& geometry, const Conv2dConfig& config) noexcept;

// The tactic to take without timing.
GemmTactic conv2d_default_tactic(const Conv2dGeometry& geometry, Conv2dAlgorithm algorithm, Layout layout) noexcept;

// Weights come as [k][c/groups][r][s], dense, in device memory. REQUIRES (all below): conv2d_supports.
size_t conv2d_packed_bytes(const Conv2dGeometry& geometry, const Conv2dConfig& config) noexcept;
cudaError_t conv2d_pack_weights(const Conv2dGeometry& geometry, const Conv2dConfig& config, const void* weights,
                                void* packed, cudaStream_t stream) noexcept;

// 0 unless config.tactic.split_k > 1 without cluster.
size_t conv2d_workspace_bytes(const Conv2dGeometry& geometry, const Conv2dConfig& config) noexcept;

cudaError_t conv2d(const Conv2dGeometry& geometry, const Conv2dConfig& config, const Conv2dBuffers& buffers,
                   const Epilogue& epilogue, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_CONV2D_H_
