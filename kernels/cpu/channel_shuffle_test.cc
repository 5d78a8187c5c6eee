#include "kernels/cpu/channel_shuffle.h"

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

// Where channel c of a pixel stands, straight from the description of the format.
int64_t place(const ChannelShuffleShape& s, int64_t n, int64_t c, int64_t pixel) {
  const int64_t blocks = (s.channels + s.block - 1) / s.block;
  return ((n * blocks + c / s.block) * s.pixels + pixel) * s.block + c % s.block;
}

void check(const ChannelShuffleShape& s) {
  const int64_t blocks = (s.channels + s.block - 1) / s.block;
  const auto size = static_cast<size_t>(s.n * blocks * s.block * s.pixels);
  std::vector<float> expected(size, 0.0f);
  Buffer input(size * 4, 4);
  for (int64_t n = 0; n < s.n; ++n) {
    for (int64_t g = 0; g < s.groups; ++g) {
      for (int64_t j = 0; j < s.channels / s.groups; ++j) {
        for (int64_t pixel = 0; pixel < s.pixels; ++pixel) {
          const int64_t c = g * (s.channels / s.groups) + j;
          const auto value = static_cast<float>((n * s.channels + c) * s.pixels + pixel + 1);
          input[place(s, n, c, pixel)] = value;
          expected[static_cast<size_t>(place(s, n, j * s.groups + g, pixel))] = value;
        }
      }
    }
  }
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 3}) {
      Buffer output(size * 4, 4);
      channel_shuffle(s, input.data(), output.data(), make_parallel(threads), isa);
      EXPECT_TRUE(output.intact() && input.intact());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), output.data()))
          << s.channels << " channels, " << s.groups << " groups, blocks of " << s.block << ", isa "
          << static_cast<int>(isa);
    }
  }
}

TEST(ChannelShuffle, Blocks) {
  for (const int64_t block : {8, 16}) {
    for (const int64_t groups : {1, 2, 3, 4, 5, 7, 8, 23, 48}) {
      for (const int64_t of_group : {1, 2, 5, 16, 21}) check({2, groups * of_group, groups, 7, block});
    }
  }
}

TEST(ChannelShuffle, ChannelsLast) {
  for (const int64_t groups : {1, 2, 3, 4, 5, 8, 20}) {
    for (const int64_t of_group : {1, 3, 8, 12, 29}) {
      check({2, groups * of_group, groups, 9, groups * of_group});
    }
  }
}

TEST(ChannelShuffle, ManyPixels) {
  check({1, 24, 3, 700, 24});
  check({1, 24, 3, 700, 16});
  check({0, 24, 3, 7, 16});
  check({1, 24, 3, 0, 16});
}

}  // namespace
}  // namespace tenon::cpu
