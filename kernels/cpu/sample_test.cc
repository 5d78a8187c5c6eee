// Expected values by hand.
#include "kernels/cpu/sample.h"

#include <gtest/gtest.h>

#include <vector>

namespace tenon::cpu {
namespace {

TEST(Sample, WeightedSumsOfAllChannels) {
  const std::vector<float> x = {1, 2, 3, 10, 20, 30};
  for (const int taps : {3, 4}) {
    std::vector<int64_t> index(static_cast<size_t>(2 * taps), 1);
    std::vector<float> weight(static_cast<size_t>(2 * taps), 0);
    const size_t second = static_cast<size_t>(taps);
    index[0] = 0, weight[0] = 2;
    index[1] = 2, weight[1] = -1;
    index[second] = 2, weight[second] = 1;
    std::vector<float> y(6, -7);
    sample(2, 2, taps, index.data(), weight.data(), x.data(), 3, y.data(), 3);
    EXPECT_EQ(y, (std::vector<float>{-1, 3, -7, -10, 30, -7}));
  }
}

}  // namespace
}  // namespace tenon::cpu
