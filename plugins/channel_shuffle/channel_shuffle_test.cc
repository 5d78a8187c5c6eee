// Expected values by hand, and from numpy: x.reshape(n, g, c // g, h, w).transpose(0, 2, 1, 3, 4).reshape(x.shape).
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class ChannelShuffleTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("channel_shuffle")); }
  OpTester shuffle(int64_t groups) {
    OpTester tester(host_, "tenon.channel_shuffle/1");
    tester.attr("groups", groups);
    return tester;
  }
  TestHost host_;
};

const std::vector<std::string> kKernel = {"tenon.channel_shuffle.permute"};

TEST_F(ChannelShuffleTest, Values) {
  const std::vector<float> x = {0, 1, 2, 3, 4, 5};
  shuffle(2).input({1, 6}, x).expect({1, 6}, {0, 3, 1, 4, 2, 5}).expect_kernels(kKernel);
  shuffle(3).input({1, 6, 1, 1}, x).expect({1, 6, 1, 1}, {0, 2, 4, 1, 3, 5}).expect_kernels(kKernel);
  shuffle(1).input({1, 6, 1}, x).expect({1, 6, 1}, {0, 1, 2, 3, 4, 5}).expect_kernels(kKernel);
  shuffle(6).input({1, 6, 1}, x).expect({1, 6, 1}, {0, 1, 2, 3, 4, 5}).expect_kernels(kKernel);
  // Two pictures of four channels and two pixels.
  shuffle(2)
      .input<int64_t>({2, 4, 1, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
      .expect({2, 4, 1, 2}, {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15})
      .expect_kernels(kKernel);
}

TEST_F(ChannelShuffleTest, EveryFormatAgrees) {
  for (const int64_t groups : {2, 3, 4, 8}) {
    for (const int64_t of_group : {1, 7, 24}) {
      shuffle(groups).random_input({2, groups * of_group, 5, 3}).expect_kernels(kKernel);
    }
  }
}

TEST_F(ChannelShuffleTest, Errors) {
  shuffle(4).random_input({1, 6, 2, 2}).expect_invalid({"groups", "divisor of 6", "found 4"});
  shuffle(0).random_input({1, 6, 2, 2}).expect_invalid({"groups", "0"});
  shuffle(1).random_input({6}).expect_invalid({"rank", "[6]"});
}

}  // namespace
}  // namespace tenon::testing
