// conv2d: 2-D convolution (cross-correlation, as in the deep learning frameworks), float32.
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
// - Pointers are device memory, aligned to 4 bytes (16 is faster); packed weights and workspaces to 16.
// - Arithmetic is float32 with fused multiply-add, never tf32. The same geometry and config give the same bits.
// - Packed weights fit the very geometry (but n, h, w, oh, ow, pads, strides and dilations) and config that they were
//   packed for.
// - A dimension of 0 is fine: with n, k, oh or ow 0 nothing is launched; with c 0 the sum is 0.
#ifndef TENON_KERNELS_CUDA_CONV2D_H_
#define TENON_KERNELS_CUDA_CONV2D_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/epilogue.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/layout.h"

namespace tenon::cuda {

// REQUIRES: sizes and pads >= 0; r, s, strides, dilations and groups >= 1; c and k divisible by groups. The output size
// is the caller's choice (rounding rules differ): windows may lie partly or wholly outside the image.
struct Conv2dGeometry {
  int64_t n = 1, c = 0, h = 0, w = 0;  // input
  int64_t k = 0, r = 1, s = 1;         // output channels, kernel height and width
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;
  int64_t oh = 0, ow = 0;  // output
};

// floor((in + pad_begin + pad_end - (dilation * (kernel - 1) + 1)) / stride) + 1, and 0 where the kernel does not fit.
constexpr int64_t conv2d_output_size(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad_begin,
                                     int64_t pad_end) {
  const int64_t room = in + pad_begin + pad_end - (dilation * (kernel - 1) + 1);
  return room < 0 ? 0 : room / stride + 1;
}

enum class Conv2dAlgorithm : int {
  // A matrix product whose patches are gathered as they are read; any geometry. Tactics: all but kSkinny.
  kImplicitGemm,
  // The 1x1 kernel with stride 1, no padding and groups 1, as gemm on the tensors as they are. Tactics: all of gemm's.
  kGemm1x1,
  // groups == c == k. Ignores the tactic.
  kDepthwise,
};

struct Conv2dConfig {
  Conv2dAlgorithm algorithm = Conv2dAlgorithm::kImplicitGemm;
  Layout layout = Layout::kNchw;  // of input and output: kNchw or kNhwc
  GemmTactic tactic;
};

struct Conv2dBuffers {
  const float* input = nullptr;
  const void* packed_weights = nullptr;
  const float* bias = nullptr;      // null, or [k]
  const float* residual = nullptr;  // null, or a tensor of the output's shape and layout; may be the output itself
  float* output = nullptr;
  void* workspace = nullptr;  // conv2d_workspace_bytes bytes, may be null if that is 0
};

// Whether the config computes this geometry. False, too, where n*oh*ow, k or c/groups*r*s come near 2^31, where a
// window reaches a coordinate beyond 2^30, and where gemm_supports would refuse the tactic.
bool conv2d_supports(const Conv2dGeometry& geometry, const Conv2dConfig& config) noexcept;

// The tactic to take without timing.
GemmTactic conv2d_default_tactic(const Conv2dGeometry& geometry, Conv2dAlgorithm algorithm, Layout layout) noexcept;

// Weights come as [k][c/groups][r][s], dense, in device memory. REQUIRES (all below): conv2d_supports.
size_t conv2d_packed_bytes(const Conv2dGeometry& geometry, const Conv2dConfig& config) noexcept;
cudaError_t conv2d_pack_weights(const Conv2dGeometry& geometry, const Conv2dConfig& config, const float* weights,
                                void* packed, cudaStream_t stream) noexcept;

// 0 unless config.tactic.split_k > 1.
size_t conv2d_workspace_bytes(const Conv2dGeometry& geometry, const Conv2dConfig& config) noexcept;

cudaError_t conv2d(const Conv2dGeometry& geometry, const Conv2dConfig& config, const Conv2dBuffers& buffers,
                   const Epilogue& epilogue, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_CONV2D_H_
