// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

using Ints = std::vector<int64_t>;
const std::vector<std::string> kKernels = {"tenon.conv.im2col.f32"};

class ConvOpTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("conv")); }
  OpTester conv(const Ints& strides, const Ints& pads, const Ints& dilations, int64_t groups = 1) {
    OpTester tester(host_, "tenon.conv/1");
    tester.attr("strides", strides).attr("pads", pads).attr("dilations", dilations).attr("groups", groups);
    return tester;
  }
  TestHost host_;
};

TEST_F(ConvOpTest, Line) {
  conv({2}, {1, 0}, {1})
      .input({1, 1, 4}, {1, 2, 3, 4})
      .input({1, 1, 3}, {1, 10, 100})
      .input({1}, {0.5})
      .expect({1, 1, 2}, {210.5, 432.5})
      .expect_kernels(kKernels);
}

// A cube of 2 x 2 x 2 that sums 1, 2, ..., 18 of [1,1,2,3,3]; the first cube holds 1, 2, 4, 5 and 10, 11, 13, 14.
TEST_F(ConvOpTest, Volume) {
  std::vector<float> x(18), ones(8, 1);
  for (size_t n = 0; n < x.size(); ++n) x[n] = static_cast<float>(n + 1);
  OpTester(host_, "tenon.conv/1")
      .input({1, 1, 2, 3, 3}, x)
      .input({1, 1, 2, 2, 2}, ones)
      .expect({1, 1, 1, 2, 2}, {60, 68, 84, 92})
      .expect_kernels(kKernels);
}

TEST_F(ConvOpTest, KernelsAgree) {
  conv({1, 2, 1}, {1, 0, 1, 1, 2, 1}, {1, 1, 2}, 2)
      .random_input({2, 4, 5, 6, 7})
      .random_input({6, 2, 3, 2, 3})
      .random_input({6})
      .expect_kernels(kKernels);
  conv({1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, 8)
      .random_input({1, 8, 4, 4, 5})
      .random_input({8, 1, 3, 3, 3})
      .expect_kernels(kKernels);
}

// Convolutions of images whose weights are computed.
TEST_F(ConvOpTest, ServesConv2d) {
  ASSERT_TRUE(host_.load("conv2d"));
  OpTester tester(host_, "tenon.conv2d/1");
  tester.attr("strides", Ints{2, 1}).attr("pads", Ints{1, 0, 1, 2}).attr("dilations", Ints{1, 2});
  tester.attr("groups", int64_t{2}).random_input({2, 4, 7, 8}).random_input({6, 2, 3, 2}).random_input({6});
  tester.expect_kernels({"tenon.conv2d.unpacked.f32"});
}

TEST_F(ConvOpTest, Errors) {
  conv({1}, {0, 0}, {1})
      .random_input({1, 2, 5})
      .random_input({1, 3, 2})
      .expect_invalid({"weights", "[1,2,", "[1,3,2]"});
  conv({1}, {0, 0}, {1}).random_input({1, 2, 5}).random_input({1, 2, 6}).expect_invalid({"6 pixels", "5"});
  conv({1, 1}, {0, 0}, {1}).random_input({1, 2, 5}).random_input({1, 2, 2}).expect_invalid({"strides", "1", "2"});
  conv({1}, {0, 0}, {1}, 3).random_input({1, 2, 5}).random_input({3, 1, 2}).expect_invalid({"groups", "3"});
  conv({1}, {0, 0}, {1}).random_input({1, 2}).random_input({1, 2}).expect_invalid({"rank", "[1,2]"});
}

}  // namespace
}  // namespace tenon::testing
