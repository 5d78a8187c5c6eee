#include "kernels/cpu/reorg.h"

#include <numeric>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

TEST(Reorg, DarknetNumbers) {
  std::vector<float> input(64);
  std::iota(input.begin(), input.end(), 0.0f);
  const std::vector<double> expected = {0, 2,  4,  6,  16, 18, 20, 22, 32, 34, 36, 38, 48, 50, 52, 54,
                                        1, 3,  5,  7,  17, 19, 21, 23, 33, 35, 37, 39, 49, 51, 53, 55,
                                        8, 10, 12, 14, 24, 26, 28, 30, 40, 42, 44, 46, 56, 58, 60, 62,
                                        9, 11, 13, 15, 25, 27, 29, 31, 41, 43, 45, 47, 57, 59, 61, 63};
  Buffer output(64 * sizeof(float), 4);
  ASSERT_TRUE(reorg_supports(4, 4, 4, 2));
  reorg_darknet(1, 4, 4, 4, 2, input.data(), output.data(), {});
  EXPECT_EQ(count_mismatches(output.data(), expected, 0), 0);
  EXPECT_TRUE(output.intact());
}

// Every input is used once, images stay apart, and thread counts agree.
TEST(Reorg, PermutationOfYoloV2Size) {
  const int64_t image = 64 * 26 * 26;
  std::vector<float> input(2 * image);
  std::iota(input.begin(), input.end(), 0.0f);
  std::vector<float> first(input.size());
  reorg_darknet(2, 64, 26, 26, 2, input.data(), first.data(), {});
  for (const int threads : {2, 3}) {
    Buffer output(input.size() * sizeof(float), 4);
    reorg_darknet(2, 64, 26, 26, 2, input.data(), output.data(), make_parallel(threads));
    EXPECT_TRUE(output.intact());
    EXPECT_EQ(std::memcmp(first.data(), output.data(), first.size() * sizeof(float)), 0);
  }
  std::sort(first.begin(), first.begin() + image);
  std::sort(first.begin() + image, first.end());
  EXPECT_EQ(first, input);
}

TEST(Reorg, Supports) {
  EXPECT_FALSE(reorg_supports(3, 4, 4, 2));
  EXPECT_FALSE(reorg_supports(4, 5, 4, 2));
  EXPECT_FALSE(reorg_supports(4, 4, 4, 0));
  EXPECT_TRUE(reorg_supports(9, 3, 6, 3));
}

}  // namespace
}  // namespace tenon::cpu
