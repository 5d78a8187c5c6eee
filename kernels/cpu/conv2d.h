// conv2d: 2-D convolution (cross-correlation, as in the deep learning frameworks), float32.
//   y[n,k,oh,ow] = act(bias[k] + residual[n,k,oh,ow]
//                      + sum over c,r,s of x[n, g*C/groups + c, oh*stride_h - pad_top + r*dilation_h,
//                                            ow*stride_w - pad_left + s*dilation_w] * weights[k,c,r,s])
// with g = k / (K/groups), and x = 0 outside the image.
//
// Use: choose a Conv2dConfig for which conv2d_supports is true; pack the weights once; ask for the workspace; call
// conv2d any number of times, from several threads at once if each has its own workspace and output.
//
// Common rules
// - Nothing is allocated and nothing is thrown. Tensors need float alignment; packed weights and workspaces 64 bytes.
// - config.isa must not exceed detect_isa(). Packed weights fit the very geometry (but n, h, w, oh, ow, pads, strides
// and
//   dilations) and config that they were packed for.
// - Results are the same bits for every thread count. Filling channels of a blocked output are written as 0.
// - A dimension of 0 is fine: with n, k, oh or ow 0 nothing is written; with c 0 the sum is 0.
#ifndef TENON_KERNELS_CPU_CONV2D_H_
#define TENON_KERNELS_CPU_CONV2D_H_

#include <cstddef>
#include <cstdint>

#include "kernels/common/conv2d_geometry.h"
#include "kernels/common/layout.h"
#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

enum class Conv2dAlgorithm {
  // The 1x1 kernel with stride 1 and no padding, as a matrix product on the tensors as they are.
  // kNchw -> kNchw (any groups) or kNhwc -> kNhwc (groups 1).
  kGemm1x1,
  // Patches gathered block by block into cache, then a matrix product. kNchw -> kNchw, any geometry.
  kIm2col,
  // Direct, register-blocked over output width. Input and output in the same layout: kNchw8c or kNchw16c (groups 1, or
  // C/groups and K/groups multiples of the block), or kNhwc (any groups).
  // kNchw8c runs on AVX2 where isa is AVX-512.
  kDirect,
  // For images with few channels (C <= 4, groups 1): kNchw -> kNhwc, kNchw8c or kNchw16c.
  kFirst,
  // groups == c == k: kNchw, kNhwc, kNchw8c or kNchw16c, in = out.
  kDepthwise,
  // groups == c == k: kNchw -> kNchw, kernels 3x3 and 5x5, strides 1 and 2 (the same both ways), dilation 1; AVX2 and
  // better. Rows of at most 8 outputs run on AVX2 where isa is AVX-512.
  kDepthwiseRows,
  // Winograd F(2x2, 3x3): 3x3 kernel, stride 1, dilation 1, groups 1; kNchw8c or kNchw16c, in = out. Fewer
  // multiplications; rounding errors are a few times those of the other algorithms.
  kWinograd2x2,
};

struct Conv2dConfig {
  Conv2dAlgorithm algorithm = Conv2dAlgorithm::kIm2col;
  Layout input_layout = Layout::kNchw;
  Layout output_layout = Layout::kNchw;
  GemmTactic tactic;  // blocking for kGemm1x1 and kIm2col; zeros mean gemm_tactic(0, isa); the others ignore it
  Isa isa = Isa::kBaseline;
};

struct Conv2dBuffers {
  const float* input = nullptr;
  const void* packed_weights = nullptr;
  const float* bias = nullptr;      // null, or [k]
  const float* residual = nullptr;  // null, or a tensor of the output's shape and layout; must not overlap the output
  float* output = nullptr;
  void* workspace = nullptr;  // conv2d_workspace_bytes bytes, may be null if that is 0
};

// Whether the algorithm can compute this geometry in these layouts with this instruction set.
bool conv2d_supports(const Conv2dGeometry& geometry, const Conv2dConfig& config) noexcept;

// Weights come as [k][c/groups][r][s], dense. REQUIRES (all below): conv2d_supports(geometry, config).
size_t conv2d_packed_bytes(const Conv2dGeometry& geometry, const Conv2dConfig& config) noexcept;
void conv2d_pack_weights(const Conv2dGeometry& geometry, const Conv2dConfig& config, const float* weights,
                         void* packed) noexcept;

// `threads` is Parallel::threads of the compute call or more.
size_t conv2d_workspace_bytes(const Conv2dGeometry& geometry, const Conv2dConfig& config, int threads) noexcept;

void conv2d(const Conv2dGeometry& geometry, const Conv2dConfig& config, const Conv2dBuffers& buffers,
            const Epilogue& epilogue, const Parallel& parallel) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_CONV2D_H_
