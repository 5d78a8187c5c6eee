#include "kernels/cuda/conv2d.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/conv2d_internal.h"
#include "kernels/cuda/gemm_internal.h"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

// Threads stride over the packed weights: row [..][pitch] holds [taps][channels] of one output channel.
template <class T>
__global__ void __launch_bounds__(kThreads)
    pack_rows(int64_t count, int64_t pitch, int64_t channels, int64_t taps, const T* weights, float* packed) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    const int64_t row = i / pitch;
    const int64_t at = i - row * pitch;
    const int64_t tap = at / max(channels, static_cast<int64_t>(1));
    const int64_t channel = at - tap * channels;
    packed[i] = tap < taps && channels > 0 ? to_float(weights[(row * channels + channel) * taps + tap]) : 0.0f;
  }
}

// [c][taps] to [taps][c].
__global__ void __launch_bounds__(kThreads)
    pack_taps(int64_t count, int64_t channels, int64_t taps, const float* weights, float* packed) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    const int64_t tap = i / channels;
    packed[i] = weights[(i - tap * channels) * taps + tap];
  }
}

// The product that an algorithm amounts to, for each group: rows x columns x k.
GemmShape product(const Conv2dGeometry& g, const Conv2dConfig& config) {
  const int64_t pixels = g.oh * g.ow;
  const int64_t kg = g.k / g.groups;
  GemmShape shape;
  shape.k = weights_depth(g);
  if (config.algorithm == Conv2dAlgorithm::kGemm1x1 && config.layout == Layout::kNchw) {
    shape.m = g.k;
    shape.n = pixels;
    shape.lda = weights_pitch(g);
    shape.ldb = shape.ldc = pixels;
    shape.batches = g.n;
    shape.b_stride = g.c * pixels;
    shape.c_stride = g.k * pixels;
  } else if (config.layout == Layout::kNchw) {
    shape.m = kg;
    shape.n = g.n * pixels;
    shape.batches = g.groups;
  } else {
    shape.m = g.n * pixels;
    shape.n = kg;
    shape.trans_b = true;
    shape.lda = g.c;
    shape.ldb = weights_pitch(g);
    shape.ldc = g.k;
    shape.batches = g.groups;
  }
  shape.type = config.type;
  return shape;
}

bool fits(int64_t size, int64_t kernel, int64_t stride, int64_t dilation, int64_t before, int64_t out) {
  constexpr int64_t kLimit = int64_t{1} << 30;
  if (size >= kLimit || kernel >= kLimit || stride >= kLimit || dilation >= kLimit || out >= kLimit) return false;
  return before < kLimit && out * stride + kernel * dilation < kLimit;
}

}  // namespace

bool conv2d_supports(const Conv2dGeometry& g, const Conv2dConfig& config) noexcept {
  if (config.layout != Layout::kNchw && config.layout != Layout::kNhwc) return false;
  if (config.type != ElementType::kF32 && config.algorithm != Conv2dAlgorithm::kImplicitGemm) return false;
  if (g.n < 0 || g.groups < 1 || g.c % g.groups != 0 || g.k % g.groups != 0) return false;
  if (!fits(g.h, g.r, g.stride_h, g.dilation_h, g.pad_top, g.oh)) return false;
  if (!fits(g.w, g.s, g.stride_w, g.dilation_w, g.pad_left, g.ow)) return false;
  switch (config.algorithm) {
    case Conv2dAlgorithm::kImplicitGemm:
      return config.tactic.tile != GemmTile::kSkinny && gemm_supports(product(g, config), config.tactic);
    case Conv2dAlgorithm::kGemm1x1:
      return g.r == 1 && g.s == 1 && g.stride_h == 1 && g.stride_w == 1 && g.pad_top == 0 && g.pad_left == 0 &&
             g.oh == g.h && g.ow == g.w && g.groups == 1 && gemm_supports(product(g, config), config.tactic);
    case Conv2dAlgorithm::kDepthwise:
      return g.groups == g.c && g.groups == g.k && g.r * g.s <= kInt32Max;
  }
  return false;
}

GemmTactic conv2d_default_tactic(const Conv2dGeometry& g, Conv2dAlgorithm algorithm, Layout layout) noexcept {
  const GemmShape shape = product(g, {algorithm, layout, {}});
  if (algorithm == Conv2dAlgorithm::kGemm1x1) return gemm_default_tactic(shape);
  return default_tile(shape.m, shape.n, shape.k, shape.batches);
}

size_t conv2d_packed_bytes(const Conv2dGeometry& g, const Conv2dConfig& config) noexcept {
  const int64_t row = config.algorithm == Conv2dAlgorithm::kDepthwise ? g.r * g.s : weights_pitch(g);
  return static_cast<size_t>(g.k * row) * sizeof(float);
}

cudaError_t conv2d_pack_weights(const Conv2dGeometry& g, const Conv2dConfig& config, const void* weights, void* packed,
                                cudaStream_t stream) noexcept {
  const int64_t count = static_cast<int64_t>(conv2d_packed_bytes(g, config) / sizeof(float));
  if (count == 0) return cudaSuccess;
  const bool depthwise = config.algorithm == Conv2dAlgorithm::kDepthwise;
  float* to = static_cast<float*>(packed);
  if (depthwise && config.layout == Layout::kNhwc) {
    pack_taps<<<grid_for(count, kThreads), kThreads, 0, stream>>>(count, g.c, g.r * g.s,
                                                                  static_cast<const float*>(weights), to);
    return cudaGetLastError();
  }
  cudaError_t error = cudaErrorInvalidValue;
  with_float(config.type, [&](auto element) {
    using T = decltype(element);
    pack_rows<T><<<grid_for(count, kThreads), kThreads, 0, stream>>>(
        count, depthwise ? g.r * g.s : weights_pitch(g), g.c / g.groups, g.r * g.s, static_cast<const T*>(weights), to);
    error = cudaGetLastError();
  });
  return error;
}

size_t conv2d_workspace_bytes(const Conv2dGeometry& g, const Conv2dConfig& config) noexcept {
  if (config.algorithm == Conv2dAlgorithm::kDepthwise) return 0;
  return gemm_workspace_bytes(product(g, config), config.tactic);
}

cudaError_t conv2d(const Conv2dGeometry& g, const Conv2dConfig& config, const Conv2dBuffers& buffers,
                   const Epilogue& epilogue, cudaStream_t stream) noexcept {
  if (!conv2d_supports(g, config)) return cudaErrorInvalidValue;
  if (g.n == 0 || g.k == 0 || g.oh == 0 || g.ow == 0) return cudaSuccess;
  if (config.algorithm == Conv2dAlgorithm::kDepthwise) {
    return conv2d_depthwise(g, config.layout, buffers, epilogue, stream);
  }
  const bool nhwc = config.layout == Layout::kNhwc;
  GemmOutput output;
  output.c = buffers.output;
  output.bias = buffers.bias;
  if (buffers.bias != nullptr) output.bias_axis = nhwc ? BiasAxis::kPerColumn : BiasAxis::kPerRow;
  output.residual = buffers.residual;
  output.epilogue = epilogue;
  if (config.algorithm == Conv2dAlgorithm::kGemm1x1) {
    const void* weights = buffers.packed_weights;
    return gemm(product(g, config), nhwc ? buffers.input : weights, nhwc ? weights : buffers.input, output,
                config.tactic, buffers.workspace, stream);
  }
  if (!needs_add_parts(config.tactic)) return conv2d_implicit_gemm(g, config, buffers, epilogue, nullptr, stream);
  float* parts = static_cast<float*>(buffers.workspace);
  const cudaError_t error = conv2d_implicit_gemm(g, config, buffers, epilogue, parts, stream);
  if (error != cudaSuccess) return error;
  const int64_t pixels = g.oh * g.ow;
  if (nhwc) return add_parts(parts, config.tactic.split_k, 1, g.n * pixels, g.k, g.k, 0, output, stream);
  return add_parts(parts, config.tactic.split_k, g.n, g.k, pixels, pixels, g.k * pixels, output, stream);
}

}  // namespace tenon::cuda
