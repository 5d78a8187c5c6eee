#include "kernels/cpu/upsample.h"

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

int64_t offset(Layout layout, int64_t channels, int64_t h, int64_t w, int64_t n, int64_t c, int64_t y, int64_t x) {
  if (layout == Layout::kNchw) return ((n * channels + c) * h + y) * w + x;
  if (layout == Layout::kNhwc) return ((n * h + y) * w + x) * channels + c;
  const int64_t block = layout_block(layout);
  return (((n * ((channels + block - 1) / block) + c / block) * h + y) * w + x) * block + c % block;
}

TEST(Upsample, LayoutsFactorsScales) {
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc, Layout::kNchw8c, Layout::kNchw16c}) {
    for (const int64_t c : {1, 5, 24}) {
      for (const int64_t fh : {1, 2, 3}) {
        for (const int64_t fw : {1, 2, 4}) {
          for (const float scale : {1.0f, 0.5f}) {
            const int64_t h = 13;
            const int64_t w = 27;
            std::vector<float> input(layout_elements(layout, 2, c, h, w), 0.0f);
            std::vector<double> expected(layout_elements(layout, 2, c, h * fh, w * fw), 0.0);
            float value = 1;
            for (int64_t n = 0; n < 2; ++n) {
              for (int64_t i = 0; i < c; ++i) {
                for (int64_t y = 0; y < h; ++y) {
                  for (int64_t x = 0; x < w; ++x) input[offset(layout, c, h, w, n, i, y, x)] = value++;
                }
                for (int64_t y = 0; y < h * fh; ++y) {
                  for (int64_t x = 0; x < w * fw; ++x) {
                    expected[offset(layout, c, h * fh, w * fw, n, i, y, x)] =
                        scale * input[offset(layout, c, h, w, n, i, y / fh, x / fw)];
                  }
                }
              }
            }
            for (const int threads : {1, 2, 3}) {
              Buffer output(expected.size() * sizeof(float), 4);
              upsample_nearest(layout, 2, c, h, w, fh, fw, scale, input.data(), output.data(), make_parallel(threads));
              EXPECT_TRUE(output.intact());
              EXPECT_EQ(count_mismatches(output.data(), expected, 0), 0);
            }
          }
        }
      }
    }
  }
}

TEST(Upsample, Empty) {
  float output = 7;
  upsample_nearest(Layout::kNchw, 0, 3, 2, 2, 2, 2, 1.0f, nullptr, &output, {});
  upsample_nearest(Layout::kNhwc, 1, 3, 0, 2, 2, 2, 1.0f, nullptr, &output, {});
  EXPECT_EQ(output, 7);
}

}  // namespace
}  // namespace tenon::cpu
