// reformat, upsample and reorg: what moves the elements of images.
#include "kernels/common/layout.h"

#include "kernels/cuda/reformat.h"
#include "kernels/cuda/reorg.h"
#include "kernels/cuda/test_util.h"
#include "kernels/cuda/upsample.h"

namespace tenon::cuda {
namespace {

const Layout kLayouts[] = {Layout::kNchw, Layout::kNhwc, Layout::kNchw8c, Layout::kNchw16c};

int64_t offset(Layout layout, int64_t channels, int64_t h, int64_t w, int64_t n, int64_t c, int64_t y, int64_t x) {
  if (layout == Layout::kNchw) return ((n * channels + c) * h + y) * w + x;
  if (layout == Layout::kNhwc) return ((n * h + y) * w + x) * channels + c;
  const int64_t block = layout_block(layout);
  return (((n * ((channels + block - 1) / block) + c / block) * h + y) * w + x) * block + c % block;
}

// Numbers its elements from 1 in NCHW order; filling channels hold `filling`.
template <class T>
std::vector<T> numbered(Layout layout, int64_t n, int64_t c, int64_t h, int64_t w, T filling) {
  std::vector<T> result(layout_elements(layout, n, c, h, w), filling);
  T next = 1;
  for (int64_t in = 0; in < n; ++in) {
    for (int64_t ic = 0; ic < c; ++ic) {
      for (int64_t y = 0; y < h; ++y) {
        for (int64_t x = 0; x < w; ++x) result[offset(layout, c, h, w, in, ic, y, x)] = next++;
      }
    }
  }
  return result;
}

class LayoutTest : public CudaTest {
 protected:
  template <class T>
  void check_reformat(int64_t n, int64_t c, int64_t h, int64_t w) {
    for (const Layout from : kLayouts) {
      for (const Layout to : kLayouts) {
        SCOPED_TRACE(testing::Message() << "from " << static_cast<int>(from) << " to " << static_cast<int>(to) << " c "
                                        << c << " size " << sizeof(T));
        const Input input(numbered<T>(from, n, c, h, w, 77), sizeof(T));
        const auto expected = numbered<T>(to, n, c, h, w, 0);
        const Output output(expected.size() * sizeof(T), sizeof(T));
        launch([&](cudaStream_t stream) {
          return reformat(from, to, n, c, h, w, sizeof(T), input.data(), output.data(), stream);
        });
        auto got = output.get<T>();
        if (from == to) {  // filling channels of the input: copied or replaced by 0
          for (size_t i = 0; i < got.size(); ++i) got[i] = expected[i] == 0 ? 0 : got[i];
        }
        EXPECT_TRUE(got == expected);
      }
    }
  }
};

TEST_F(LayoutTest, Reformat) {
  for (const int64_t c : {0, 1, 3, 8, 16, 19, 40}) {
    check_reformat<uint32_t>(2, c, 5, 7);
    check_reformat<uint16_t>(2, c, 5, 7);
  }
  check_reformat<uint32_t>(1, 70, 13, 13);
  EXPECT_EQ(reformat(Layout::kNchw, Layout::kNhwc, 1, 1, 1, 1, 8, nullptr, nullptr, stream_), cudaErrorInvalidValue);
}

TEST_F(LayoutTest, Upsample) {
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
    for (const auto& [fh, fw] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 2}, {3, 1}, {1, 4}}) {
      for (const float scale : {1.0f, 0.5f}) {
        const int64_t n = 2, c = 5, h = 3, w = 7;
        const auto x = random_floats(n * c * h * w, 5);
        std::vector<double> expected(x.size() * fh * fw);
        for (int64_t i = 0; i < n * c; ++i) {
          for (int64_t y = 0; y < h * fh; ++y) {
            for (int64_t z = 0; z < w * fw; ++z) {
              expected[offset(layout, c, h * fh, w * fw, i / c, i % c, y, z)] =
                  scale * x[offset(layout, c, h, w, i / c, i % c, y / fh, z / fw)];
            }
          }
        }
        const Input input(x);
        const Input half(to_half(x));
        const Output output(expected.size() * sizeof(float), 4);
        const Output half_output(expected.size() * sizeof(__half), 2);
        launch([&](cudaStream_t stream) {
          return upsample_nearest(ElementType::kF32, layout, n, c, h, w, fh, fw, scale, input.data(), output.data(),
                                  stream);
        });
        launch([&](cudaStream_t stream) {
          return upsample_nearest(ElementType::kF16, layout, n, c, h, w, fh, fw, scale, half.data(), half_output.data(),
                                  stream);
        });
        EXPECT_EQ(count_mismatches(output.get(), expected, 0), 0);
        EXPECT_EQ(count_mismatches(to_floats(half_output.get<__half>()), expected, 1e-3), 0);
      }
    }
  }
  launch([&](cudaStream_t stream) {
    return upsample_nearest(ElementType::kF32, Layout::kNchw, 1, 0, 3, 3, 2, 2, 1, nullptr, nullptr, stream);
  });
}

// Darknet's reorg_cpu, forward = 0, with the dimensions that its layer passes.
std::vector<uint32_t> darknet(const std::vector<uint32_t>& x, int64_t n, int64_t c, int64_t h, int64_t w,
                              int64_t stride) {
  std::vector<uint32_t> y(x.size());
  const int64_t depth = c / (stride * stride);
  for (int64_t b = 0; b < n; ++b) {
    for (int64_t k = 0; k < c; ++k) {
      for (int64_t j = 0; j < h; ++j) {
        for (int64_t i = 0; i < w; ++i) {
          const int64_t place = k / depth;
          const int64_t from_w = i * stride + place % stride;
          const int64_t from_h = j * stride + place / stride;
          const int64_t from = from_w + w * stride * (from_h + h * stride * (k % depth + depth * b));
          y[i + w * (j + h * (k + c * b))] = x[from];
        }
      }
    }
  }
  return y;
}

TEST_F(LayoutTest, Reorg) {
  struct {
    int64_t n, c, h, w, stride;
  } const cases[] = {{1, 4, 2, 2, 2}, {2, 8, 6, 4, 2},    {1, 18, 3, 6, 3},
                     {2, 3, 5, 7, 1}, {1, 64, 26, 26, 2}, {2, 0, 2, 2, 2}};
  for (const auto& c : cases) {
    ASSERT_TRUE(reorg_supports(c.c, c.h, c.w, c.stride));
    const auto x = numbered<uint32_t>(Layout::kNchw, c.n, c.c, c.h, c.w, 0);
    const Input input(x);
    const Output output(x.size() * 4, 4);
    launch([&](cudaStream_t stream) {
      return reorg_darknet(c.n, c.c, c.h, c.w, c.stride, 4, input.data(), output.data(), stream);
    });
    EXPECT_TRUE(output.get<uint32_t>() == darknet(x, c.n, c.c, c.h, c.w, c.stride));
  }
}

TEST(Reorg, Supports) {
  EXPECT_FALSE(reorg_supports(6, 4, 4, 2));
  EXPECT_FALSE(reorg_supports(8, 5, 4, 2));
  EXPECT_FALSE(reorg_supports(8, 4, 4, 0));
}

}  // namespace
}  // namespace tenon::cuda
