#include "kernels/cuda/conv2d.h"

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

struct Case {
  Conv2dGeometry g;
  Epilogue epilogue = Epilogue::none();
  bool bias = true;
  bool residual = false;
  size_t shift = 0;  // bytes that the tensors are off their alignment
};

// The output size follows from the pads.
Conv2dGeometry geometry(int64_t n, int64_t c, int64_t h, int64_t w, int64_t k, int64_t r, int64_t s, int64_t stride = 1,
                        int64_t pad = 0, int64_t dilation = 1, int64_t groups = 1) {
  Conv2dGeometry g;
  g.n = n;
  g.c = c;
  g.h = h;
  g.w = w;
  g.k = k;
  g.r = r;
  g.s = s;
  g.stride_h = g.stride_w = stride;
  g.pad_top = g.pad_left = g.pad_bottom = g.pad_right = pad;
  g.dilation_h = g.dilation_w = dilation;
  g.groups = groups;
  g.oh = conv2d_output_size(h, r, stride, dilation, pad, pad);
  g.ow = conv2d_output_size(w, s, stride, dilation, pad, pad);
  return g;
}

double activate(double x, const Epilogue& e) {
  if (e.kind == UnaryKind::kRelu) return std::max(x, 0.0);
  if (e.kind == UnaryKind::kLeakyRelu) return x > 0 ? x : e.alpha * x;
  if (e.kind == UnaryKind::kClip) return std::min<double>(std::max<double>(x, e.alpha), e.beta);
  if (e.kind == UnaryKind::kSwish) return x / (1 + std::exp(-x));
  return x;
}

template <class T>
std::vector<T> arrange(const std::vector<T>& nchw, Layout layout, int64_t n, int64_t c, int64_t cells) {
  if (layout == Layout::kNchw) return nchw;
  std::vector<T> result(nchw.size());
  for (int64_t i = 0; i < n * c * cells; ++i)
    result[(i / (c * cells) * cells + i % cells) * c + i / cells % c] = nchw[i];
  return result;
}

std::vector<double> expect(const Case& test, const std::vector<float>& input, const std::vector<float>& weights,
                           const std::vector<float>& bias, const std::vector<float>& residual) {
  const Conv2dGeometry& g = test.g;
  std::vector<double> expected;
  const int64_t cg = g.c / g.groups;
  const int64_t kg = g.k / g.groups;
  for (int64_t n = 0; n < g.n; ++n) {
    for (int64_t k = 0; k < g.k; ++k) {
      for (int64_t oh = 0; oh < g.oh; ++oh) {
        for (int64_t ow = 0; ow < g.ow; ++ow) {
          double sum = test.bias ? bias[k] : 0.0;
          for (int64_t c = 0; c < cg; ++c) {
            for (int64_t r = 0; r < g.r; ++r) {
              for (int64_t s = 0; s < g.s; ++s) {
                const int64_t y = oh * g.stride_h - g.pad_top + r * g.dilation_h;
                const int64_t x = ow * g.stride_w - g.pad_left + s * g.dilation_w;
                if (y < 0 || y >= g.h || x < 0 || x >= g.w) continue;
                sum += static_cast<double>(input[((n * g.c + k / kg * cg + c) * g.h + y) * g.w + x]) *
                       weights[((k * cg + c) * g.r + r) * g.s + s];
              }
            }
          }
          if (test.residual) sum += residual[expected.size()];
          expected.push_back(activate(sum, test.epilogue));
        }
      }
    }
  }
  return expected;
}

std::vector<Conv2dConfig> configs(const Conv2dGeometry& g) {
  std::vector<Conv2dConfig> result;
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
    for (int i = 0; i < gemm_tactic_count(); ++i) {
      result.push_back({Conv2dAlgorithm::kImplicitGemm, layout, gemm_tactic(i)});
      result.push_back({Conv2dAlgorithm::kGemm1x1, layout, gemm_tactic(i)});
    }
    for (const auto algorithm : {Conv2dAlgorithm::kImplicitGemm, Conv2dAlgorithm::kGemm1x1}) {
      result.push_back({algorithm, layout, conv2d_default_tactic(g, algorithm, layout)});
    }
    result.push_back({Conv2dAlgorithm::kDepthwise, layout, {}});
  }
  return result;
}

class Conv2dTest : public CudaTest {
 protected:
  // Runs every config (of kDepthwise alone, if asked) that supports the case; returns how many did.
  int check(const Case& test, bool depthwise_only = false) {
    const int runs = check(test, depthwise_only, ElementType::kF32);
    return HasFailure() || depthwise_only ? runs : runs + check(test, depthwise_only, ElementType::kF16);
  }

  int check(const Case& test, bool depthwise_only, ElementType type) {
    const bool half = type == ElementType::kF16;
    int ordinal = 0;
    EXPECT_EQ(cudaGetDevice(&ordinal), cudaSuccess);
    const auto random = [&](int64_t count, uint32_t seed) {
      const auto values = random_floats(count, seed);
      return half ? to_floats(to_half(values)) : values;
    };
    const auto upload = [&](const std::vector<float>& values, size_t shift) {
      return half ? Input(to_half(values), shift) : Input(values, shift);
    };
    const Conv2dGeometry& g = test.g;
    const auto input = random(g.n * g.c * g.h * g.w, 1);
    const auto weights = random(g.k * (g.c / g.groups) * g.r * g.s, 2);
    const auto bias = random(g.k, 3);
    const auto residual = random(g.n * g.k * g.oh * g.ow, 4);
    const auto nchw = expect(test, input, weights, bias, residual);
    const Input dweights = upload(weights, 0);
    const Input dbias = upload(bias, 0);
    int runs = 0;
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
      const Input dinput = upload(arrange(input, layout, g.n, g.c, g.h * g.w), test.shift);
      const Input dresidual = upload(arrange(residual, layout, g.n, g.k, g.oh * g.ow), test.shift);
      const auto expected = arrange(nchw, layout, g.n, g.k, g.oh * g.ow);
      for (Conv2dConfig config : configs(g)) {
        config.type = type;
        if (config.layout != layout || !conv2d_supports(g, config)) continue;
        if (config.tactic.cluster && config.tactic.split_k > gemm_cluster_limit(ordinal)) continue;
        if (depthwise_only && config.algorithm != Conv2dAlgorithm::kDepthwise) continue;
        SCOPED_TRACE(testing::Message() << (config.tactic.cluster ? "cluster " : "") << "algorithm "
                                        << static_cast<int>(config.algorithm) << " layout " << static_cast<int>(layout)
                                        << " tile " << static_cast<int>(config.tactic.tile) << " split "
                                        << config.tactic.split_k << " n" << g.n << " c" << g.c << " h" << g.h << " w"
                                        << g.w << " k" << g.k << " r" << g.r << " s" << g.s << " stride " << g.stride_h
                                        << "," << g.stride_w << " pad " << g.pad_top << "," << g.pad_left
                                        << " dilation " << g.dilation_h << "," << g.dilation_w << " groups " << g.groups
                                        << " oh " << g.oh << " ow " << g.ow << " shift " << test.shift << " half "
                                        << half);
        const Output packed(conv2d_packed_bytes(g, config));
        launch([&](cudaStream_t stream) {
          return conv2d_pack_weights(g, config, dweights.data(), packed.data(), stream);
        });
        const auto run = [&](const Conv2dConfig& with) {
          const Output workspace(conv2d_workspace_bytes(g, with));
          const Output output(expected.size() * element_type_size(type), test.shift);
          Conv2dBuffers buffers;
          buffers.input = dinput.data();
          buffers.packed_weights = packed.data();
          buffers.bias = test.bias ? dbias.data() : nullptr;
          buffers.residual = test.residual ? dresidual.data() : nullptr;
          buffers.output = output.data();
          buffers.workspace = with.tactic.cluster ? nullptr : workspace.data();
          launch([&](cudaStream_t stream) { return conv2d(g, with, buffers, test.epilogue, stream); });
          packed.get();
          workspace.get();
          return half ? to_floats(output.get<__half>()) : output.get();
        };
        const double taps = static_cast<double>(g.c / g.groups * g.r * g.s);
        // A result in half precision is rounded once.
        const double tolerance = (half ? std::ldexp(1, -11) : 0) + 2e-6 * std::max(1.0, std::sqrt(taps));
        const auto got = run(config);
        EXPECT_EQ(count_mismatches(got, expected, tolerance), 0);
        if (config.tactic.cluster && !half) {
          Conv2dConfig two_launches = config;
          two_launches.tactic.cluster = false;
          EXPECT_TRUE(same_bits(got, run(two_launches))) << "unlike the two launches";
        }
        ++runs;
        if (HasFailure()) return runs;
      }
    }
    return runs;
  }
};

TEST_F(Conv2dTest, PointwiseKernels) {
  check({geometry(1, 16, 7, 7, 32, 1, 1)});
  check({geometry(2, 5, 9, 13, 7, 1, 1)});
  check({geometry(1, 33, 14, 14, 65, 1, 1), Epilogue::relu(), true, true});
  check({geometry(2, 32, 8, 8, 64, 1, 1), Epilogue::relu(), true, true, 4});
  check({geometry(1, 20, 10, 10, 9, 1, 1, 2)});
  check({geometry(1, 300, 5, 5, 40, 1, 1)});
  check({geometry(1, 64, 1, 1, 40, 1, 1), Epilogue::relu(), true, true});
  check({geometry(1, 24, 6, 6, 48, 1, 1, 1, 0, 1, 3)});
}

TEST_F(Conv2dTest, GradedKernelsStridesPads) {
  for (const int64_t kernel : {1, 2, 3, 7}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t pad : {0, 1, 3}) {
        check({geometry(1, kernel == 3 ? 8 : 5, 9, 11, 10, kernel, kernel, stride, pad), Epilogue::leaky(0.1f)});
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(Conv2dTest, FirstConvolutionOfNetworks) {
  check({geometry(1, 3, 23, 29, 18, 3, 3, 2, 1), Epilogue::relu()});
  check({geometry(2, 3, 15, 15, 64, 7, 7, 2, 3), Epilogue::relu()});
  check({geometry(1, 1, 28, 28, 20, 5, 5)});
  check({geometry(1, 4, 16, 16, 5, 3, 3, 1, 1, 2)});
}

TEST_F(Conv2dTest, UnevenPadsSizesStridesDilations) {
  Conv2dGeometry g = geometry(2, 17, 9, 12, 19, 3, 2);
  g.stride_h = 2;
  g.pad_top = 0;
  g.pad_bottom = 1;
  g.pad_left = 2;
  g.oh = 4;
  g.ow = 13;
  Epilogue swish;
  swish.kind = UnaryKind::kSwish;
  check({g, Epilogue::clip(-0.5f, 0.5f), true, true});
  g.dilation_h = 2;
  g.dilation_w = 3;
  check({g, swish});
  g.oh = 7;  // windows wholly below and right of the image
  g.ow = 20;
  check({g, Epilogue::none(), false});
}

TEST_F(Conv2dTest, Groups) {
  check({geometry(1, 6, 8, 9, 9, 3, 3, 1, 1, 1, 3)});
  check({geometry(2, 32, 7, 10, 64, 3, 3, 2, 1, 1, 2), Epilogue::relu(), true, true});
  check({geometry(1, 48, 6, 5, 48, 3, 3, 1, 2, 2, 3)});
  check({geometry(1, 4, 5, 5, 8, 3, 3, 1, 1, 1, 4)});
}

TEST_F(Conv2dTest, TilesAndManyChannels) {
  check({geometry(1, 70, 7, 7, 130, 3, 3, 1, 1), Epilogue::relu()});
  check({geometry(2, 32, 8, 10, 132, 3, 3, 1, 1), Epilogue::relu(), true, true});
  check({geometry(2, 32, 8, 10, 132, 3, 3, 1, 1), Epilogue::relu(), true, true, 4});
  check({geometry(1, 128, 4, 4, 40, 3, 3, 2, 1)});
  check({geometry(1, 32, 3, 70, 16, 3, 3, 1, 1)});
}

// Sums long enough for every split_k, some of whose parts are empty.
TEST_F(Conv2dTest, LongSumsInParts) {
  Epilogue swish;
  swish.kind = UnaryKind::kSwish;
  for (const size_t shift : {size_t{0}, size_t{4}}) {
    check({geometry(1, 528, 7, 7, 70, 1, 1), Epilogue::relu(), true, true, shift});
    check({geometry(2, 515, 4, 4, 66, 1, 1), swish, false, true, shift});
    check({geometry(2, 128, 5, 6, 68, 3, 3, 1, 1, 1, 2), Epilogue::clip(-1, 2), true, true, shift});
    check({geometry(1, 61, 9, 7, 33, 3, 3, 2, 1), Epilogue::leaky(0.1f), true, false, shift});
  }
}

TEST_F(Conv2dTest, Depthwise) {
  for (const int64_t kernel : {1, 2, 3, 5, 7}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t dilation : {1, 2}) {
        for (const int64_t channels : {1, 8, 19}) {
          const Epilogue epilogue = channels == 8 ? Epilogue::clip(0.25f, 6.0f) : Epilogue::leaky(0.2f);
          Case test{
              geometry(2, channels, 9, 14, channels, kernel, kernel, stride, kernel / 2 * dilation, dilation, channels),
              epilogue, channels != 19, channels == 19};
          for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
            EXPECT_TRUE(conv2d_supports(test.g, {Conv2dAlgorithm::kDepthwise, layout, {}}));
          }
          check(test, true);
          if (HasFailure()) return;
        }
      }
    }
  }
  check({geometry(1, 3, 30, 33, 3, 3, 3, 2, 1, 1, 3)});
  check({geometry(1, 17, 3, 3, 17, 5, 5, 1, 2, 1, 17)});
  check({geometry(1, 9, 2, 2, 9, 3, 3, 1, 4, 1, 9)});
}

TEST_F(Conv2dTest, EmptyDimensions) {
  for (int dimension = 0; dimension < 5; ++dimension) {
    Conv2dGeometry g = geometry(1, 8, 5, 5, 8, 3, 3, 1, 1);
    if (dimension == 0) g.n = 0;
    if (dimension == 1) g.c = 0;
    if (dimension == 2) g.k = 0;
    if (dimension == 3) g.oh = 0;
    if (dimension == 4) g.ow = 0;
    EXPECT_GT(check({g}), 0);
  }
  Conv2dGeometry g = geometry(1, 8, 0, 0, 8, 3, 3, 1, 2);
  g.oh = g.ow = 2;
  check({g});
}

TEST(Conv2d, SupportsWhatTheHeaderPromises) {
  Conv2dConfig config;
  EXPECT_TRUE(conv2d_supports(geometry(1, 6, 9, 9, 9, 3, 3, 2, 1, 2, 3), config));
  config.tactic.tile = GemmTile::kSkinny;
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 9, 3, 3), config));
  config.tactic = {};
  config.layout = Layout::kNchw8c;
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 9, 3, 3), config));
  config.layout = Layout::kNhwc;
  config.algorithm = Conv2dAlgorithm::kGemm1x1;
  EXPECT_TRUE(conv2d_supports(geometry(1, 6, 9, 9, 9, 1, 1), config));
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 9, 1, 1, 2), config));
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 9, 3, 3), config));
  config.algorithm = Conv2dAlgorithm::kDepthwise;
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 12, 3, 3, 1, 1, 1, 6), config));
  config = {Conv2dAlgorithm::kImplicitGemm, Layout::kNhwc, {GemmTile::k64x64, 1}, ElementType::kF16};
  EXPECT_TRUE(conv2d_supports(geometry(1, 6, 9, 9, 9, 1, 1), config));
  config.tactic = {GemmTile::k64x64, 4, true};
  EXPECT_TRUE(conv2d_supports(geometry(1, 128, 9, 9, 9, 1, 1), config));
  EXPECT_EQ(conv2d_workspace_bytes(geometry(1, 128, 9, 9, 9, 1, 1), config), 0u);
  config.tactic = {GemmTile::k128x128, 1};
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 9, 1, 1), config));
  config = {Conv2dAlgorithm::kGemm1x1, Layout::kNhwc, {GemmTile::k64x64, 1}, ElementType::kF16};
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 9, 1, 1), config));
}

}  // namespace
}  // namespace tenon::cuda
