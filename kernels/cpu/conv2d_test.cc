#include "kernels/cpu/conv2d.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

struct Case {
  Conv2dGeometry g;
  Epilogue epilogue = Epilogue::none();
  bool bias = true;
  bool residual = false;
};

// Chained setters; the output size follows from the pads.
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
  if (e.kind == Epilogue::Kind::kLeaky) return x > 0 ? x : e.alpha * x;
  if (e.kind == Epilogue::Kind::kClip) return std::min<double>(std::max<double>(x, e.lo), e.hi);
  if (e.kind == Epilogue::Kind::kLogistic) return 1 / (1 + std::exp(-x));
  if (e.kind == Epilogue::Kind::kSwish) return x / (1 + std::exp(-x));
  return x;
}

int64_t offset(Layout layout, int64_t channels, int64_t h, int64_t w, int64_t n, int64_t c, int64_t y, int64_t x) {
  if (layout == Layout::kNchw) return ((n * channels + c) * h + y) * w + x;
  if (layout == Layout::kNhwc) return ((n * h + y) * w + x) * channels + c;
  const int64_t block = layout_block(layout);
  const int64_t blocks = (channels + block - 1) / block;
  return (((n * blocks + c / block) * h + y) * w + x) * block + c % block;
}

// From NCHW to `layout`, filling channels 0.
template <class T>
std::vector<T> arrange(const std::vector<T>& nchw, Layout layout, int64_t n, int64_t c, int64_t h, int64_t w) {
  std::vector<T> result(layout_elements(layout, n, c, h, w), T{0});
  int64_t i = 0;
  for (int64_t in = 0; in < n; ++in) {
    for (int64_t ic = 0; ic < c; ++ic) {
      for (int64_t y = 0; y < h; ++y) {
        for (int64_t x = 0; x < w; ++x) result[offset(layout, c, h, w, in, ic, y, x)] = nchw[i++];
      }
    }
  }
  return result;
}

struct Problem {
  std::vector<float> input, weights, bias, residual;
  std::vector<double> expected;  // NCHW
};

Problem make_problem(const Case& test) {
  const Conv2dGeometry& g = test.g;
  Problem p;
  p.input = random_floats(g.n * g.c * g.h * g.w, 1);
  p.weights = random_floats(g.k * (g.c / g.groups) * g.r * g.s, 2);
  p.bias = random_floats(g.k, 3);
  p.residual = random_floats(g.n * g.k * g.oh * g.ow, 4);
  const int64_t cg = g.c / g.groups;
  const int64_t kg = g.k / g.groups;
  for (int64_t n = 0; n < g.n; ++n) {
    for (int64_t k = 0; k < g.k; ++k) {
      for (int64_t oh = 0; oh < g.oh; ++oh) {
        for (int64_t ow = 0; ow < g.ow; ++ow) {
          double sum = test.bias ? p.bias[k] : 0.0;
          for (int64_t c = 0; c < cg; ++c) {
            for (int64_t r = 0; r < g.r; ++r) {
              for (int64_t s = 0; s < g.s; ++s) {
                const int64_t y = oh * g.stride_h - g.pad_top + r * g.dilation_h;
                const int64_t x = ow * g.stride_w - g.pad_left + s * g.dilation_w;
                if (y < 0 || y >= g.h || x < 0 || x >= g.w) continue;
                sum += static_cast<double>(p.input[((n * g.c + k / kg * cg + c) * g.h + y) * g.w + x]) *
                       p.weights[((k * cg + c) * g.r + r) * g.s + s];
              }
            }
          }
          if (test.residual) sum += p.residual[p.expected.size()];
          p.expected.push_back(activate(sum, test.epilogue));
        }
      }
    }
  }
  return p;
}

// Runs every algorithm, layout, instruction set and thread count that supports the case; returns how many did.
int check(const Case& test) {
  const Conv2dGeometry& g = test.g;
  const Problem p = make_problem(test);
  const Guarded weights(p.weights);
  const Guarded bias(p.bias);
  int runs = 0;
  for (const Isa isa : available_isas()) {
    for (const auto algorithm :
         {Conv2dAlgorithm::kGemm1x1, Conv2dAlgorithm::kIm2col, Conv2dAlgorithm::kDirect, Conv2dAlgorithm::kFirst,
          Conv2dAlgorithm::kDepthwise, Conv2dAlgorithm::kDepthwiseRows, Conv2dAlgorithm::kWinograd2x2}) {
      for (const Layout in : {Layout::kNchw, Layout::kNhwc, Layout::kNchw8c, Layout::kNchw16c}) {
        for (const Layout out : {Layout::kNchw, Layout::kNhwc, Layout::kNchw8c, Layout::kNchw16c}) {
          Conv2dConfig config;
          config.algorithm = algorithm;
          config.input_layout = in;
          config.output_layout = out;
          config.isa = isa;
          if (!conv2d_supports(g, config)) continue;
          const Guarded input(arrange(p.input, in, g.n, g.c, g.h, g.w));
          const Guarded residual(arrange(p.residual, out, g.n, g.k, g.oh, g.ow));
          const auto expected = arrange(p.expected, out, g.n, g.k, g.oh, g.ow);
          Buffer packed(conv2d_packed_bytes(g, config));
          conv2d_pack_weights(g, config, weights.data(), packed.data());
          std::vector<float> first;
          for (const int threads : {1, 2, 3}) {
            SCOPED_TRACE(testing::Message()
                         << "algorithm " << static_cast<int>(algorithm) << " layouts " << static_cast<int>(in) << " -> "
                         << static_cast<int>(out) << " " << isa_name(isa) << " threads " << threads << " n" << g.n
                         << " c" << g.c << " h" << g.h << " w" << g.w << " k" << g.k << " r" << g.r << " s" << g.s
                         << " stride " << g.stride_h << "," << g.stride_w << " pad " << g.pad_top << "," << g.pad_left
                         << " dilation " << g.dilation_h << "," << g.dilation_w << " groups " << g.groups << " oh "
                         << g.oh << " ow " << g.ow);
            Buffer workspace(conv2d_workspace_bytes(g, config, threads));
            Buffer output(expected.size() * sizeof(float), 4);
            Conv2dBuffers buffers;
            buffers.input = input.data();
            buffers.packed_weights = packed.data();
            buffers.bias = test.bias ? bias.data() : nullptr;
            buffers.residual = test.residual ? residual.data() : nullptr;
            buffers.output = output.data();
            buffers.workspace = workspace.data();
            conv2d(g, config, buffers, test.epilogue, make_parallel(threads));
            EXPECT_TRUE(packed.intact() && workspace.intact() && output.intact());
            const double taps = static_cast<double>(g.c / g.groups * g.r * g.s);
            const double rounding = algorithm == Conv2dAlgorithm::kWinograd2x2 ? 8e-6 : 2e-6;
            EXPECT_EQ(count_mismatches(output.data(), expected, rounding * std::max(1.0, std::sqrt(taps))), 0);
            const std::vector<float> bits(output.data(), output.data() + expected.size());
            if (threads == 1) first = bits;
            EXPECT_TRUE(first.empty() || std::memcmp(first.data(), bits.data(), bits.size() * sizeof(float)) == 0);
            ++runs;
            if (testing::Test::HasFailure()) return runs;
          }
        }
      }
    }
  }
  return runs;
}

TEST(Conv2d, PointwiseKernels) {
  check({geometry(1, 16, 7, 7, 32, 1, 1)});
  check({geometry(2, 5, 9, 13, 7, 1, 1)});
  check({geometry(1, 33, 14, 14, 65, 1, 1), Epilogue::relu(), true, true});
  check({geometry(1, 20, 10, 10, 9, 1, 1, 2)});
  check({geometry(1, 600, 5, 5, 40, 1, 1)});
  check({geometry(1, 24, 6, 6, 48, 1, 1, 1, 0, 1, 3)});
}

TEST(Conv2d, GradedKernelsStridesPads) {
  for (const int64_t kernel : {1, 2, 3, 5, 7}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t pad : {0, 1, 3}) {
        check({geometry(1, 6, 11, 17, 10, kernel, kernel, stride, pad), Epilogue::leaky(0.1f)});
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Conv2d, FirstConvolutionOfNetworks) {
  check({geometry(1, 3, 23, 29, 18, 3, 3, 2, 1), Epilogue::relu()});
  check({geometry(2, 3, 31, 31, 64, 7, 7, 2, 3), Epilogue::relu()});
  check({geometry(1, 1, 28, 28, 20, 5, 5)});
  check({geometry(1, 4, 16, 16, 5, 3, 3, 1, 1, 2)});
}

TEST(Conv2d, UnevenPadsSizesStridesDilations) {
  Conv2dGeometry g = geometry(2, 17, 9, 12, 19, 3, 2);
  g.stride_h = 2;
  g.pad_top = 0;
  g.pad_bottom = 1;
  g.pad_left = 2;
  g.oh = 4;
  g.ow = 13;
  check({g, Epilogue::clip(-0.5f, 0.5f), true, true});
  g.dilation_h = 2;
  g.dilation_w = 3;
  check({g});
  g.oh = 7;  // windows wholly below and right of the image
  g.ow = 20;
  check({g, Epilogue::none(), false});
}

TEST(Conv2d, SamePaddingExamples) {
  for (const auto& [pad, expected] : std::vector<std::pair<int64_t, std::vector<float>>>{{0, {6, 7}}, {1, {3, 9}}}) {
    Conv2dGeometry g = geometry(1, 1, 1, 4, 1, 1, 3);
    g.stride_w = 2;
    g.pad_left = pad;
    g.ow = 2;
    const float input[] = {1, 2, 3, 4};
    const float weights[] = {1, 1, 1};
    for (const Isa isa : available_isas()) {
      for (const auto algorithm : {Conv2dAlgorithm::kIm2col, Conv2dAlgorithm::kDepthwise}) {
        Conv2dConfig config;
        config.algorithm = algorithm;
        config.isa = isa;
        Buffer packed(conv2d_packed_bytes(g, config));
        Buffer workspace(conv2d_workspace_bytes(g, config, 1));
        conv2d_pack_weights(g, config, weights, packed.data());
        float output[2];
        conv2d(g, config, {input, packed.data(), nullptr, nullptr, output, workspace.data()}, Epilogue::none(), {});
        EXPECT_EQ(output[0], expected[0]);
        EXPECT_EQ(output[1], expected[1]);
      }
    }
  }
}

TEST(Conv2d, Groups) {
  check({geometry(1, 6, 8, 9, 9, 3, 3, 1, 1, 1, 3)});
  check({geometry(2, 32, 7, 10, 64, 3, 3, 2, 1, 1, 2), Epilogue::relu(), true, true});
  check({geometry(1, 48, 6, 5, 48, 3, 3, 1, 2, 2, 3)});
  check({geometry(1, 4, 5, 5, 8, 3, 3, 1, 1, 1, 4)});
}

TEST(Conv2d, ManyChannels) {
  check({geometry(1, 130, 7, 7, 70, 3, 3, 1, 1), Epilogue::relu()});
  check({geometry(1, 64, 10, 30, 33, 3, 3, 1, 1)});
  check({geometry(1, 128, 8, 8, 40, 3, 3, 2, 1)});
  check({geometry(1, 32, 3, 70, 16, 3, 3, 1, 1)});
}

TEST(Conv2d, Depthwise) {
  for (const int64_t kernel : {1, 2, 3, 5, 7}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t dilation : {1, 2}) {
        for (const int64_t channels : {1, 8, 19, 32}) {
          const Epilogue epilogue = channels == 8 ? Epilogue::clip(0.25f, 6.0f) : Epilogue::leaky(0.2f);
          check({geometry(2, channels, 13, 22, channels, kernel, kernel, stride, kernel / 2 * dilation, dilation,
                          channels),
                 epilogue, channels != 19, channels == 19});
          if (HasFailure()) return;
        }
      }
    }
  }
  check({geometry(1, 3, 5, 100, 3, 3, 3, 1, 1, 1, 3)});
  check({geometry(2, 150, 12, 12, 150, 3, 3, 1, 1, 1, 150)});  // several blocks of channels a task
  check({geometry(1, 3, 150, 130, 3, 3, 3, 2, 1, 1, 3)});
  check({geometry(1, 17, 3, 3, 17, 5, 5, 1, 2, 1, 17)});
  check({geometry(1, 9, 2, 2, 9, 3, 3, 1, 4, 1, 9)});
}

TEST(Conv2d, DepthwiseRowsOfEveryWidthAndHeight) {
  for (const int64_t kernel : {3, 5}) {
    for (const int64_t stride : {1, 2}) {
      for (int64_t size = 1; size <= 36; ++size) {
        Conv2dGeometry g = geometry(1, 2, 37 - size, size, 2, kernel, kernel, stride, 1, 1, 2);
        g.pad_left = size % 3;
        g.pad_top = size % 4;
        g.oh = (g.h + g.pad_top) / stride + 1;  // the last windows lie below and right of the image
        g.ow = (g.w + g.pad_left) / stride + 1;
        check({g, size % 2 == 0 ? Epilogue::clip(-0.5f, 0.5f) : Epilogue::none(), size % 3 != 0, size % 5 == 0});
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Conv2d, WinogradTilesAtTheEdges) {
  for (const int64_t size : {1, 2, 3, 4, 5, 8, 13}) {
    for (const int64_t pad : {0, 1, 2}) {
      const Conv2dGeometry g = geometry(2, 12, size, size + 3, 21, 3, 3, 1, pad);
      check({g, Epilogue::relu(), true, true});
    }
  }
  check({geometry(1, 40, 60, 62, 37, 3, 3, 1, 1), Epilogue::leaky(0.1f)});
}

TEST(Conv2d, LogisticAndSwish) {
  for (const auto kind : {Epilogue::Kind::kLogistic, Epilogue::Kind::kSwish}) {
    check({geometry(1, 33, 14, 14, 65, 1, 1), Epilogue::of(kind), true, true});
    check({geometry(1, 3, 23, 29, 18, 3, 3, 2, 1), Epilogue::of(kind)});
    check({geometry(1, 40, 20, 22, 37, 3, 3, 1, 1), Epilogue::of(kind)});
    check({geometry(2, 19, 9, 21, 19, 3, 3, 1, 1, 1, 19), Epilogue::of(kind)});
    check({geometry(1, 16, 40, 40, 16, 5, 5, 2, 2, 1, 16), Epilogue::of(kind), true, true});
  }
}

TEST(Conv2d, FillingChannelsAreZeroWhateverTheEpilogue) {
  check({geometry(1, 3, 6, 6, 5, 3, 3, 1, 1), Epilogue::clip(1.0f, 2.0f)});
  check({geometry(1, 5, 6, 6, 5, 3, 3, 1, 1, 1, 5), Epilogue::clip(1.0f, 2.0f)});
}

TEST(Conv2d, LittleWorkStaysOnTheCallingThread) {
  const Conv2dGeometry g = geometry(1, 16, 30, 30, 32, 3, 3, 1, 1);
  const Problem p = make_problem({g});
  Conv2dConfig config;
  config.isa = detect_isa();
  Buffer packed(conv2d_packed_bytes(g, config));
  conv2d_pack_weights(g, config, p.weights.data(), packed.data());
  Buffer workspace(conv2d_workspace_bytes(g, config, 2));
  int calls = 0;
  Parallel counting;
  counting.threads = 2;
  counting.context = &calls;
  counting.run = [](void* context, int64_t count, void (*body)(void*, int64_t), void* arg) {
    ++*static_cast<int*>(context);
    for (int64_t i = 0; i < count; ++i) body(arg, i);
  };
  const int64_t work = 32 * 30 * 30 * 16 * 3 * 3;
  for (const int64_t serial_below : {work + 1, work}) {
    counting.serial_below = serial_below;
    std::vector<float> output(p.expected.size());
    conv2d(g, config, {p.input.data(), packed.data(), p.bias.data(), nullptr, output.data(), workspace.data()},
           Epilogue::none(), counting);
    EXPECT_EQ(count_mismatches(output.data(), p.expected, 5e-5), 0);
    EXPECT_EQ(calls > 0, serial_below <= work);
  }
}

TEST(Conv2d, EmptyDimensions) {
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
  config.isa = detect_isa();
  EXPECT_TRUE(conv2d_supports(geometry(1, 6, 9, 9, 9, 3, 3, 2, 1, 2, 3), config));
  config.algorithm = Conv2dAlgorithm::kGemm1x1;
  EXPECT_TRUE(conv2d_supports(geometry(1, 6, 9, 9, 9, 1, 1), config));
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 9, 1, 1, 2), config));
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 9, 3, 3), config));
  config.algorithm = Conv2dAlgorithm::kDepthwise;
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 12, 3, 3, 1, 1, 1, 6), config));
  config.algorithm = Conv2dAlgorithm::kDepthwiseRows;
  EXPECT_EQ(conv2d_supports(geometry(1, 6, 9, 9, 6, 3, 3, 2, 1, 1, 6), config), config.isa >= Isa::kAvx2);
  EXPECT_EQ(conv2d_supports(geometry(1, 6, 9, 9, 6, 5, 5, 1, 2, 1, 6), config), config.isa >= Isa::kAvx2);
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 6, 3, 3, 1, 1, 2, 6), config));
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 6, 3, 3, 3, 1, 1, 6), config));
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 6, 5, 3, 1, 1, 1, 6), config));
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 12, 3, 3, 1, 1, 1, 6), config));
  config.algorithm = Conv2dAlgorithm::kDirect;
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 12, 3, 3), config));
  config.input_layout = config.output_layout = Layout::kNchw16c;
  EXPECT_TRUE(conv2d_supports(geometry(1, 6, 9, 9, 12, 3, 3), config));
  EXPECT_FALSE(conv2d_supports(geometry(1, 6, 9, 9, 12, 3, 3, 1, 1, 1, 3), config));
}

}  // namespace
}  // namespace tenon::cpu
