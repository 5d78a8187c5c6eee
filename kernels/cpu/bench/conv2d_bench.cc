// Convolutions of known networks, every algorithm and layout that fits, one thread. Arguments: shape index, variant,
// instruction set. The counter is floating point operations a second (for depthwise too, which memory bounds).
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/cpu/conv2d.h"

namespace tenon::cpu {
namespace {

struct Shape {
  const char* name;
  int64_t c, size, k, kernel, stride, groups;
};

constexpr Shape kShapes[] = {
    {"stem 3x224 -> 64 7x7/2", 3, 224, 64, 7, 2, 1},   {"64x56 -> 64 3x3", 64, 56, 64, 3, 1, 1},
    {"128x28 -> 128 3x3", 128, 28, 128, 3, 1, 1},      {"256x14 -> 256 3x3", 256, 14, 256, 3, 1, 1},
    {"512x7 -> 512 3x3", 512, 7, 512, 3, 1, 1},        {"64x56 -> 256 1x1", 64, 56, 256, 1, 1, 1},
    {"1024x14 -> 256 1x1", 1024, 14, 256, 1, 1, 1},    {"256x56 -> 512 1x1/2", 256, 56, 512, 1, 2, 1},
    {"depthwise 144x56 3x3", 144, 56, 144, 3, 1, 144}, {"depthwise 96x112 3x3/2", 96, 112, 96, 3, 2, 96},
    {"depthwise 960x7 5x5", 960, 7, 960, 5, 1, 960},   {"depthwise 112x56 3x3/2", 112, 56, 112, 3, 2, 112},
    {"depthwise 136x28 3x3", 136, 28, 136, 3, 1, 136}, {"depthwise 136x28 3x3/2", 136, 28, 136, 3, 2, 136},
    {"depthwise 272x14 3x3", 272, 14, 272, 3, 1, 272}, {"depthwise 544x7 3x3", 544, 7, 544, 3, 1, 544},
};

struct Variant {
  const char* name;
  Conv2dAlgorithm algorithm;
  Layout input, output;
};

constexpr Variant kVariants[] = {
    {"gemm1x1 nchw", Conv2dAlgorithm::kGemm1x1, Layout::kNchw, Layout::kNchw},
    {"gemm1x1 nhwc", Conv2dAlgorithm::kGemm1x1, Layout::kNhwc, Layout::kNhwc},
    {"im2col nchw", Conv2dAlgorithm::kIm2col, Layout::kNchw, Layout::kNchw},
    {"direct nhwc", Conv2dAlgorithm::kDirect, Layout::kNhwc, Layout::kNhwc},
    {"direct nchw8c", Conv2dAlgorithm::kDirect, Layout::kNchw8c, Layout::kNchw8c},
    {"direct nchw16c", Conv2dAlgorithm::kDirect, Layout::kNchw16c, Layout::kNchw16c},
    {"first nchw8c", Conv2dAlgorithm::kFirst, Layout::kNchw, Layout::kNchw8c},
    {"first nchw16c", Conv2dAlgorithm::kFirst, Layout::kNchw, Layout::kNchw16c},
    {"winograd nchw8c", Conv2dAlgorithm::kWinograd2x2, Layout::kNchw8c, Layout::kNchw8c},
    {"winograd nchw16c", Conv2dAlgorithm::kWinograd2x2, Layout::kNchw16c, Layout::kNchw16c},
    {"depthwise nchw", Conv2dAlgorithm::kDepthwise, Layout::kNchw, Layout::kNchw},
    {"depthwise_rows nchw", Conv2dAlgorithm::kDepthwiseRows, Layout::kNchw, Layout::kNchw},
    {"depthwise nhwc", Conv2dAlgorithm::kDepthwise, Layout::kNhwc, Layout::kNhwc},
    {"depthwise nchw8c", Conv2dAlgorithm::kDepthwise, Layout::kNchw8c, Layout::kNchw8c},
    {"depthwise nchw16c", Conv2dAlgorithm::kDepthwise, Layout::kNchw16c, Layout::kNchw16c},
};

Conv2dGeometry geometry_of(const Shape& shape) {
  Conv2dGeometry g;
  g.c = shape.c;
  g.h = g.w = shape.size;
  g.k = shape.k;
  g.r = g.s = shape.kernel;
  g.stride_h = g.stride_w = shape.stride;
  g.pad_top = g.pad_left = g.pad_bottom = g.pad_right = shape.kernel / 2;
  g.groups = shape.groups;
  g.oh = g.ow = conv2d_output_size(shape.size, shape.kernel, shape.stride, 1, shape.kernel / 2, shape.kernel / 2);
  return g;
}

void conv(benchmark::State& state, const Conv2dGeometry& g, const Conv2dConfig& config) {
  std::vector<float> input(layout_elements(config.input_layout, g.n, g.c, g.h, g.w), 0.5f);
  std::vector<float> output(layout_elements(config.output_layout, g.n, g.k, g.oh, g.ow));
  std::vector<float> weights(g.k * (g.c / g.groups) * g.r * g.s, 0.25f);
  std::vector<float> bias(g.k, 1.0f);
  const auto aligned = [](size_t bytes) { return std::aligned_alloc(64, (bytes + 64) / 64 * 64); };
  void* packed = aligned(conv2d_packed_bytes(g, config));
  void* workspace = aligned(conv2d_workspace_bytes(g, config, 1));
  conv2d_pack_weights(g, config, weights.data(), packed);
  const Conv2dBuffers buffers = {input.data(), packed, bias.data(), nullptr, output.data(), workspace};
  for (auto _ : state) conv2d(g, config, buffers, Epilogue::relu(), Parallel{});
  const double flops = 2.0 * static_cast<double>(g.k * (g.c / g.groups) * g.r * g.s * g.oh * g.ow);
  state.counters["flops"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
  std::free(packed);
  std::free(workspace);
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const Shape& shape : kShapes) {
    for (const Variant& variant : kVariants) {
      for (int i = 0; i <= static_cast<int>(detect_isa()); ++i) {
        Conv2dConfig config;
        config.algorithm = variant.algorithm;
        config.input_layout = variant.input;
        config.output_layout = variant.output;
        config.isa = static_cast<Isa>(i);
        const Conv2dGeometry g = geometry_of(shape);
        // The general algorithm on a depthwise convolution is a matrix product with one row: of no interest.
        const bool wasteful = shape.groups > 1 && variant.algorithm != Conv2dAlgorithm::kDepthwise &&
                              variant.algorithm != Conv2dAlgorithm::kDepthwiseRows;
        if (wasteful || !conv2d_supports(g, config)) continue;
        const std::string name = std::string("conv2d/") + shape.name + "/" + variant.name + "/" + isa_name(config.isa);
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { conv(state, g, config); });
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace tenon::cpu
