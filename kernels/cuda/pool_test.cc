#include "kernels/cuda/pool.h"

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

int64_t offset(Layout layout, int64_t channels, int64_t h, int64_t w, int64_t n, int64_t c, int64_t y, int64_t x) {
  return layout == Layout::kNchw ? ((n * channels + c) * h + y) * w + x : ((n * h + y) * w + x) * channels + c;
}

PoolGeometry geometry(int64_t c, int64_t h, int64_t w, int64_t kernel, int64_t stride, int64_t pad, int64_t oh,
                      int64_t ow) {
  PoolGeometry g;
  g.n = 2;
  g.c = c;
  g.h = h;
  g.w = w;
  g.kernel_h = g.kernel_w = kernel;
  g.stride_h = g.stride_w = stride;
  g.pad_top = g.pad_left = g.pad_bottom = g.pad_right = pad;
  g.oh = oh;
  g.ow = ow;
  return g;
}

double window(PoolKind kind, const PoolGeometry& g, const float* plane, int64_t oh, int64_t ow) {
  double most = -INFINITY;
  double sum = 0;
  int64_t inside = 0;
  int64_t padded = 0;
  for (int64_t r = 0; r < g.kernel_h; ++r) {
    for (int64_t s = 0; s < g.kernel_w; ++s) {
      const int64_t y = oh * g.stride_h - g.pad_top + r * g.dilation_h;
      const int64_t x = ow * g.stride_w - g.pad_left + s * g.dilation_w;
      padded += y >= -g.pad_top && y < g.h + g.pad_bottom && x >= -g.pad_left && x < g.w + g.pad_right;
      if (y < 0 || y >= g.h || x < 0 || x >= g.w) continue;
      ++inside;
      sum += plane[y * g.w + x];
      most = std::max<double>(most, plane[y * g.w + x]);
    }
  }
  if (kind == PoolKind::kMax) return most;
  const int64_t divisor = kind == PoolKind::kAverage ? inside : padded;
  return divisor == 0 ? 0 : sum / static_cast<double>(divisor);
}

class PoolTest : public CudaTest {
 protected:
  void check(const PoolGeometry& g) {
    const auto nchw = random_floats(g.n * g.c * g.h * g.w, 8);
    for (const PoolKind kind : {PoolKind::kMax, PoolKind::kAverage, PoolKind::kAverageIncludePad}) {
      for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
        SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << " layout " << static_cast<int>(layout)
                                        << " kernel " << g.kernel_h << " stride " << g.stride_h << " pad "
                                        << g.pad_top);
        std::vector<float> input(nchw.size());
        std::vector<double> expected(g.n * g.c * g.oh * g.ow);
        for (int64_t n = 0; n < g.n; ++n) {
          for (int64_t c = 0; c < g.c; ++c) {
            const float* plane = nchw.data() + (n * g.c + c) * g.h * g.w;
            for (int64_t y = 0; y < g.h; ++y) {
              for (int64_t x = 0; x < g.w; ++x) input[offset(layout, g.c, g.h, g.w, n, c, y, x)] = plane[y * g.w + x];
            }
            for (int64_t y = 0; y < g.oh; ++y) {
              for (int64_t x = 0; x < g.ow; ++x) {
                expected[offset(layout, g.c, g.oh, g.ow, n, c, y, x)] = window(kind, g, plane, y, x);
              }
            }
          }
        }
        const Input device(input);
        const Input half(to_half(input));
        const Output output(expected.size() * sizeof(float), 4);
        const Output half_output(expected.size() * sizeof(__half), 2);
        launch([&](cudaStream_t stream) {
          return pool(ElementType::kF32, kind, g, layout, device.data(), output.data(), stream);
        });
        launch([&](cudaStream_t stream) {
          return pool(ElementType::kF16, kind, g, layout, half.data(), half_output.data(), stream);
        });
        EXPECT_EQ(count_mismatches(output.get(), expected, kind == PoolKind::kMax ? 0 : 2e-6), 0);
        EXPECT_EQ(count_mismatches(to_floats(half_output.get<__half>()), expected, 1e-3), 0);
        if (HasFailure()) return;
      }
    }
  }
};

TEST_F(PoolTest, GradedGeometries) {
  for (const int64_t kernel : {1, 2, 3, 5}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t pad : {0, 1, 2}) {
        check(geometry(kernel == 3 ? 19 : 2, 11, 13, kernel, stride, pad, 12 / stride, 15 / stride));
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(PoolTest, UnevenDilatedAndOutside) {
  PoolGeometry g = geometry(5, 7, 9, 3, 2, 1, 6, 8);  // the last windows lie wholly outside
  g.kernel_w = 2;
  g.pad_left = 3;
  g.pad_right = 0;
  g.dilation_h = 2;
  check(g);
  g.dilation_w = 3;
  g.stride_w = 4;
  check(g);
  check(geometry(2, 1, 1, 2, 1, 5, 12, 12));
  check(geometry(2, 0, 0, 2, 1, 1, 1, 1));
  check(geometry(0, 3, 3, 2, 1, 1, 1, 1));
  check(geometry(2, 3, 3, 2, 1, 1, 0, 2));
}

TEST_F(PoolTest, DarknetGeometry) {
  const Input input(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  struct {
    int64_t kernel, stride, pad, out;
    std::vector<float> expected;
  } const cases[] = {
      {2, 1, 0, 3, {5, 6, 6, 8, 9, 9, 8, 9, 9}},
      {2, 2, 0, 2, {5, 6, 8, 9}},
      {3, 1, 1, 3, {5, 6, 6, 8, 9, 9, 8, 9, 9}},
  };
  for (const auto& c : cases) {
    PoolGeometry g = geometry(1, 3, 3, c.kernel, c.stride, c.pad, c.out, c.out);
    g.n = 1;
    const Output output(c.expected.size() * sizeof(float));
    launch([&](cudaStream_t stream) {
      return pool(ElementType::kF32, PoolKind::kMax, g, Layout::kNchw, input.data(), output.data(), stream);
    });
    EXPECT_EQ(output.get(), c.expected);
  }
}

TEST_F(PoolTest, MaxKeepsNan) {
  std::vector<float> image(5 * 5, 1.0f);
  image[12] = NAN;
  const Input input(image);
  PoolGeometry g = geometry(1, 5, 5, 3, 1, 1, 5, 5);
  g.n = 1;
  const Output output(25 * sizeof(float));
  launch([&](cudaStream_t stream) {
    return pool(ElementType::kF32, PoolKind::kMax, g, Layout::kNchw, input.data(), output.data(), stream);
  });
  const auto got = output.get();
  for (int i = 0; i < 25; ++i) {
    const bool near = i / 5 >= 1 && i / 5 <= 3 && i % 5 >= 1 && i % 5 <= 3;
    EXPECT_EQ(std::isnan(got[i]), near);
  }
}

TEST_F(PoolTest, GlobalAverage) {
  for (const int64_t c : {0, 1, 5, 16, 100}) {
    for (const int64_t size : {1, 7, 13}) {
      for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
        const auto x = random_floats(2 * c * size * (size + 1), 9);
        const Input input(x);
        const Input half(to_half(x));
        std::vector<double> expected;
        for (int64_t n = 0; n < 2; ++n) {
          for (int64_t i = 0; i < c; ++i) {
            double sum = 0;
            for (int64_t y = 0; y < size; ++y) {
              for (int64_t z = 0; z < size + 1; ++z) sum += x[offset(layout, c, size, size + 1, n, i, y, z)];
            }
            expected.push_back(sum / static_cast<double>(size * (size + 1)));
          }
        }
        const Output output(expected.size() * sizeof(float), 4);
        const Output half_output(expected.size() * sizeof(__half), 2);
        launch([&](cudaStream_t s) {
          return pool_global_average(ElementType::kF32, layout, 2, c, size, size + 1, input.data(), output.data(), s);
        });
        launch([&](cudaStream_t s) {
          return pool_global_average(ElementType::kF16, layout, 2, c, size, size + 1, half.data(), half_output.data(),
                                     s);
        });
        EXPECT_EQ(count_mismatches(output.get(), expected, 2e-6), 0);
        EXPECT_EQ(count_mismatches(to_floats(half_output.get<__half>()), expected, 1e-3), 0);
      }
    }
  }
}

TEST(Pool, Supports) {
  EXPECT_FALSE(pool_supports(geometry(1, 3, 3, 2, 1, 0, 2, 2), Layout::kNchw8c));
  EXPECT_FALSE(pool_supports(geometry(1, int64_t{1} << 31, 3, 2, 1, 0, 2, 2), Layout::kNchw));
  EXPECT_TRUE(pool_supports(geometry(1, 3, 3, 2, 1, 0, 2, 2), Layout::kNhwc));
}

}  // namespace
}  // namespace tenon::cuda
