#include "kernels/cpu/pool.h"

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

const Layout kLayouts[] = {Layout::kNchw, Layout::kNhwc, Layout::kNchw8c, Layout::kNchw16c};

int64_t offset(Layout layout, int64_t channels, int64_t h, int64_t w, int64_t n, int64_t c, int64_t y, int64_t x) {
  if (layout == Layout::kNchw) return ((n * channels + c) * h + y) * w + x;
  if (layout == Layout::kNhwc) return ((n * h + y) * w + x) * channels + c;
  const int64_t block = layout_block(layout);
  return (((n * ((channels + block - 1) / block) + c / block) * h + y) * w + x) * block + c % block;
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

void check(const PoolGeometry& g) {
  const auto nchw = random_floats(g.n * g.c * g.h * g.w, 8);
  for (const PoolKind kind : {PoolKind::kMax, PoolKind::kAverage, PoolKind::kAverageIncludePad}) {
    for (const Layout layout : kLayouts) {
      std::vector<float> input(layout_elements(layout, g.n, g.c, g.h, g.w), 0.0f);
      std::vector<double> expected(layout_elements(layout, g.n, g.c, g.oh, g.ow), 0.0);
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
      const Guarded guarded(input);
      for (const Isa isa : available_isas()) {
        for (const int threads : {1, 2, 3}) {
          SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << " layout " << static_cast<int>(layout)
                                          << " " << isa_name(isa) << " kernel " << g.kernel_h << " stride "
                                          << g.stride_h << " pad " << g.pad_top);
          Buffer workspace(pool_workspace_bytes(g, layout, threads, isa));
          Buffer output(expected.size() * sizeof(float), 4);
          pool(kind, g, layout, guarded.data(), output.data(), workspace.data(), make_parallel(threads), isa);
          EXPECT_TRUE(workspace.intact() && output.intact());
          EXPECT_EQ(count_mismatches(output.data(), expected, kind == PoolKind::kMax ? 0 : 2e-6), 0);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(Pool, GradedGeometries) {
  for (const int64_t kernel : {1, 2, 3, 5}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t pad : {0, 1, 2}) {
        for (const int64_t c : {1, 19}) check(geometry(c, 11, 23, kernel, stride, pad, 12 / stride, 25 / stride));
        if (HasFailure()) return;
      }
    }
  }
  check(geometry(70, 8, 8, 3, 2, 1, 4, 4));
  check(geometry(3, 100, 90, 2, 2, 0, 50, 45));
  check(geometry(150, 12, 12, 3, 1, 1, 12, 12));  // several blocks of channels a task
}

TEST(Pool, UnevenDilatedAndOutside) {
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

TEST(Pool, EveryWidthAndHeight) {
  for (const int64_t kernel : {2, 3}) {
    for (const int64_t stride : {1, 2}) {
      for (int64_t size = 1; size <= 36; ++size) {
        PoolGeometry g = geometry(2, 37 - size, size, kernel, stride, size % 3, 0, 0);
        g.pad_left = size % 4;
        g.pad_right = size % 2;
        g.oh = (g.h + g.pad_top) / stride + 1;  // the last windows lie below and right of the image
        g.ow = (g.w + g.pad_left) / stride + 1;
        check(g);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Pool, OneWindowOverAll) {
  for (int64_t size = 1; size <= 70; size += 3) {
    check(geometry(3, 1, size, size, 1, 0, 1, 1));
    check(geometry(3, 5, size, std::max<int64_t>(size, 5) + 2, 1, 1, 1, 1));
    check(geometry(3, size, size, std::max<int64_t>(size - 2, 1), 1, 1, 1, 1));  // over all but the last columns
    if (HasFailure()) return;
  }
}

TEST(Pool, DarknetGeometry) {
  const float input[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
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
    for (const Isa isa : available_isas()) {
      Buffer workspace(pool_workspace_bytes(g, Layout::kNchw, 1, isa));
      std::vector<float> output(c.expected.size());
      pool(PoolKind::kMax, g, Layout::kNchw, input, output.data(), workspace.data(), {}, isa);
      EXPECT_EQ(output, c.expected);
    }
  }
}

TEST(Pool, MaxKeepsNan) {
  std::vector<float> input(5 * 5, 1.0f);
  input[12] = NAN;
  const PoolGeometry g = [] {
    PoolGeometry one = geometry(1, 5, 5, 3, 1, 1, 5, 5);
    one.n = 1;
    return one;
  }();
  for (const Isa isa : available_isas()) {
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
      Buffer workspace(pool_workspace_bytes(g, layout, 1, isa));
      std::vector<float> output(25);
      pool(PoolKind::kMax, g, layout, input.data(), output.data(), workspace.data(), {}, isa);
      for (int i = 0; i < 25; ++i) {
        const bool near = i / 5 >= 1 && i / 5 <= 3 && i % 5 >= 1 && i % 5 <= 3;
        EXPECT_EQ(std::isnan(output[i]), near);
      }
    }
  }
}

TEST(Pool, MaxOfOneWindowKeepsNan) {
  for (const int64_t w : {1, 7, 23, 81}) {
    PoolGeometry g = geometry(1, 1, w, w, 1, 0, 1, 1);
    g.n = 1;
    for (int64_t at = 0; at < w; ++at) {
      std::vector<float> input(w, 1.0f);
      input[at] = NAN;
      const Guarded guarded(input);
      for (const Isa isa : available_isas()) {
        Buffer workspace(pool_workspace_bytes(g, Layout::kNchw, 1, isa));
        float output = 0;
        pool(PoolKind::kMax, g, Layout::kNchw, guarded.data(), &output, workspace.data(), {}, isa);
        EXPECT_TRUE(std::isnan(output)) << w << " " << at << " " << isa_name(isa);
      }
    }
  }
}

TEST(Pool, GlobalAverage) {
  for (const int64_t c : {1, 5, 16, 100}) {
    for (const int64_t size : {1, 7, 13}) {
      for (const Layout layout : kLayouts) {
        const Guarded input(random_floats(layout_elements(layout, 2, c, size, size + 1), 9));
        std::vector<double> expected(layout_elements(layout, 2, c, 1, 1), 0.0);
        for (int64_t n = 0; n < 2; ++n) {
          for (int64_t i = 0; i < c; ++i) {
            double sum = 0;
            for (int64_t y = 0; y < size; ++y) {
              for (int64_t x = 0; x < size + 1; ++x) sum += input[offset(layout, c, size, size + 1, n, i, y, x)];
            }
            expected[offset(layout, c, 1, 1, n, i, 0, 0)] = sum / static_cast<double>(size * (size + 1));
          }
        }
        for (const Isa isa : available_isas()) {
          for (const int threads : {1, 3}) {
            Buffer output(expected.size() * sizeof(float), 4);
            pool_global_average(layout, 2, c, size, size + 1, input.data(), output.data(), make_parallel(threads), isa);
            EXPECT_TRUE(output.intact());
            EXPECT_EQ(count_mismatches(output.data(), expected, 2e-6), 0);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
