#include "kernels/cpu/conv_integer.h"

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

template <class T>
std::vector<T> random_bytes(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(generator());
  return values;
}

void check(const IntegerConvGeometry& g, Isa isa, int threads) {
  const int64_t group_in = g.c / g.groups, group_out = g.m / g.groups;
  const auto x = random_bytes<uint8_t>(g.n * g.c * g.h * g.w, 1);
  const auto weights = random_bytes<int8_t>(g.m * g.k(), 2), zeros = random_bytes<int8_t>(g.m, 3);
  std::vector<int32_t> bias(g.m);
  for (int64_t i = 0; i < g.m; ++i) bias[i] = static_cast<int32_t>(1000 - 77 * i);
  std::vector<int16_t> packed(conv_integer_weights(g));
  conv_integer_pack(g, weights.data(), zeros.data(), g.m, packed.data());
  Buffer scratch(conv_integer_scratch(threads)), y(g.n * g.m * g.oh * g.ow * sizeof(int32_t));
  conv_integer(g, x.data(), 97, packed.data(), bias.data(), y.data<int32_t>(), scratch.data<void>(),
               make_parallel(threads), isa);
  EXPECT_TRUE(scratch.intact() && y.intact());
  const int32_t* found = y.data<int32_t>();
  for (int64_t n = 0; n < g.n; ++n) {
    for (int64_t m = 0; m < g.m; ++m) {
      for (int64_t oh = 0; oh < g.oh; ++oh) {
        for (int64_t ow = 0; ow < g.ow; ++ow) {
          int32_t sum = bias[m];
          for (int64_t c = 0; c < group_in; ++c) {
            for (int64_t r = 0; r < g.r; ++r) {
              for (int64_t s = 0; s < g.s; ++s) {
                const int64_t h = oh * g.stride_h - g.pad_top + r * g.dilation_h;
                const int64_t w = ow * g.stride_w - g.pad_left + s * g.dilation_w;
                if (h < 0 || h >= g.h || w < 0 || w >= g.w) continue;
                sum += (x[((n * g.c + m / group_out * group_in + c) * g.h + h) * g.w + w] - 97) *
                       (weights[((m * group_in + c) * g.r + r) * g.s + s] - zeros[m]);
              }
            }
          }
          ASSERT_EQ(*found++, sum) << n << "," << m << "," << oh << "," << ow;
        }
      }
    }
  }
}

IntegerConvGeometry geometry(int64_t c, int64_t h, int64_t w, int64_t m, int64_t r, int64_t s, int64_t stride,
                             int64_t pad, int64_t dilation, int64_t groups) {
  IntegerConvGeometry g;
  g.n = 2;
  g.c = c, g.h = h, g.w = w, g.m = m, g.r = r, g.s = s, g.groups = groups;
  g.stride_h = g.stride_w = stride;
  g.pad_top = g.pad_left = pad;
  g.dilation_h = g.dilation_w = dilation;
  g.oh = (h + 2 * pad - (r - 1) * dilation - 1) / stride + 1;
  g.ow = (w + 2 * pad - (s - 1) * dilation - 1) / stride + 1;
  return g;
}

TEST(ConvInteger, IsExact) {
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 3}) {
      check(geometry(3, 9, 11, 5, 3, 3, 1, 1, 1, 1), isa, threads);
      check(geometry(6, 12, 7, 4, 3, 2, 2, 2, 2, 2), isa, threads);
      check(geometry(17, 5, 9, 33, 1, 1, 1, 0, 1, 1), isa, threads);  // reads the image as it lies
      check(geometry(4, 6, 6, 9, 1, 1, 2, 0, 1, 1), isa, threads);    // 1x1 with a stride
      check(geometry(60, 5, 6, 7, 5, 4, 1, 2, 1, 1), isa, threads);   // k in several blocks
      check(geometry(8, 10, 13, 8, 3, 5, 2, 1, 1, 8), isa, threads);  // depthwise
      check(geometry(4, 7, 7, 4, 3, 3, 1, 5, 2, 4), isa, threads);    // depthwise, taps that never meet the image
      check(geometry(4, 7, 7, 8, 3, 3, 1, 1, 1, 4), isa, threads);    // two outputs for each input
      check(geometry(2, 1, 30, 3, 1, 7, 3, 0, 2, 1), isa, threads);   // one spatial axis
    }
  }
}

TEST(ConvInteger, OneZeroPointOrNone) {
  IntegerConvGeometry g;
  g.m = 2;
  const uint8_t weights[] = {3, 5}, zero[] = {1};
  int16_t packed[4];
  conv_integer_pack<uint8_t>(g, weights, nullptr, 0, packed);
  EXPECT_EQ(packed[0], 3);
  EXPECT_EQ(packed[1], 0);
  conv_integer_pack<uint8_t>(g, weights, zero, 1, packed);
  EXPECT_EQ(packed[0], 2);
  EXPECT_EQ(packed[2], 4);
}

}  // namespace
}  // namespace tenon::cpu
