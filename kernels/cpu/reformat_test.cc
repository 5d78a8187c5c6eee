#include "kernels/cpu/reformat.h"

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

int64_t offset(Layout layout, int64_t channels, int64_t h, int64_t w, int64_t n, int64_t c, int64_t y, int64_t x) {
  if (layout == Layout::kNchw) return ((n * channels + c) * h + y) * w + x;
  if (layout == Layout::kNhwc) return ((n * h + y) * w + x) * channels + c;
  const int64_t block = layout_block(layout);
  return (((n * ((channels + block - 1) / block) + c / block) * h + y) * w + x) * block + c % block;
}

std::vector<uint32_t> make(Layout layout, int64_t n, int64_t c, int64_t h, int64_t w, uint32_t filling) {
  std::vector<uint32_t> data(layout_elements(layout, n, c, h, w), filling);
  uint32_t value = 1;
  for (int64_t in = 0; in < n; ++in) {
    for (int64_t ic = 0; ic < c; ++ic) {
      for (int64_t y = 0; y < h; ++y) {
        for (int64_t x = 0; x < w; ++x) data[offset(layout, c, h, w, in, ic, y, x)] = value++;
      }
    }
  }
  return data;
}

TEST(Reformat, EveryPairOfLayouts) {
  const Layout layouts[] = {Layout::kNchw, Layout::kNhwc, Layout::kNchw8c, Layout::kNchw16c};
  for (const int64_t c : {0, 1, 3, 8, 9, 16, 17, 40, 70}) {
    for (const int64_t h : {0, 1, 7, 20}) {
      for (const Layout from : layouts) {
        for (const Layout to : layouts) {
          const auto input = make(from, 2, c, h, h + 3, 0x7fc12345);
          const auto expected = make(to, 2, c, h, h + 3, 0);
          for (const int threads : {1, 2, 3}) {
            Buffer output(expected.size() * 4, 4);
            reformat(from, to, 2, c, h, h + 3, input.data(), output.data(), make_parallel(threads));
            EXPECT_TRUE(output.intact());
            EXPECT_TRUE(std::equal(expected.begin(), expected.end(), output.data<uint32_t>()))
                << static_cast<int>(from) << " -> " << static_cast<int>(to) << " c " << c << " h " << h;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
