#include "kernels/cpu/conv2d.h"

#include "kernels/cpu/internal/conv2d_algorithms.h"

namespace tenon::cpu {
namespace {

const Conv2dAlgorithmTable& algorithm_table(Conv2dAlgorithm algorithm) {
  switch (algorithm) {
    case Conv2dAlgorithm::kGemm1x1:
      return kConv2dGemm1x1;
    case Conv2dAlgorithm::kDirect:
      return kConv2dDirect;
    case Conv2dAlgorithm::kFirst:
      return kConv2dFirst;
    case Conv2dAlgorithm::kDepthwise:
      return kConv2dDepthwise;
    case Conv2dAlgorithm::kDepthwiseRows:
      return kConv2dDepthwiseRows;
    case Conv2dAlgorithm::kWinograd2x2:
      return kConv2dWinograd2x2;
    case Conv2dAlgorithm::kIm2col:
      break;
  }
  return kConv2dIm2col;
}

bool valid(const Conv2dGeometry& g) {
  return g.n >= 0 && g.c >= 0 && g.h >= 0 && g.w >= 0 && g.k >= 0 && g.oh >= 0 && g.ow >= 0 && g.r >= 1 && g.s >= 1 &&
         g.stride_h >= 1 && g.stride_w >= 1 && g.dilation_h >= 1 && g.dilation_w >= 1 && g.pad_top >= 0 &&
         g.pad_left >= 0 && g.groups >= 1 && g.c % g.groups == 0 && g.k % g.groups == 0;
}

// Blocks of 8 are one AVX2 vector; half-filled AVX-512 vectors gain nothing.
Conv2dConfig effective(Conv2dConfig config) {
  const bool blocks_of_8 = config.input_layout == Layout::kNchw8c || config.output_layout == Layout::kNchw8c;
  if (blocks_of_8 && config.isa == Isa::kAvx512) config.isa = Isa::kAvx2;
  return config;
}

}  // namespace

const Conv2dTable& conv2d_table(Isa isa) noexcept {
  return isa == Isa::kAvx512 ? avx512::kConv2dTable : isa == Isa::kAvx2 ? avx2::kConv2dTable : baseline::kConv2dTable;
}

bool conv2d_supports(const Conv2dGeometry& geometry, const Conv2dConfig& config) noexcept {
  return config.isa <= detect_isa() && valid(geometry) &&
         algorithm_table(config.algorithm).supports(geometry, effective(config));
}

size_t conv2d_packed_bytes(const Conv2dGeometry& geometry, const Conv2dConfig& config) noexcept {
  return algorithm_table(config.algorithm).packed_bytes(geometry, effective(config));
}

void conv2d_pack_weights(const Conv2dGeometry& geometry, const Conv2dConfig& config, const float* weights,
                         void* packed) noexcept {
  algorithm_table(config.algorithm).pack(geometry, effective(config), weights, static_cast<float*>(packed));
}

size_t conv2d_workspace_bytes(const Conv2dGeometry& geometry, const Conv2dConfig& config, int threads) noexcept {
  if (geometry.n == 0 || geometry.k == 0 || geometry.oh == 0 || geometry.ow == 0) return 0;
  return algorithm_table(config.algorithm).workspace_bytes(geometry, effective(config), threads < 1 ? 1 : threads);
}

void conv2d(const Conv2dGeometry& geometry, const Conv2dConfig& config, const Conv2dBuffers& buffers,
            const Epilogue& epilogue, const Parallel& parallel) noexcept {
  if (geometry.n == 0 || geometry.k == 0 || geometry.oh == 0 || geometry.ow == 0) return;
  algorithm_table(config.algorithm)
      .run(geometry, effective(config), buffers, epilogue, parallel_if_worth(parallel, conv2d_work(geometry)));
}

}  // namespace tenon::cpu
