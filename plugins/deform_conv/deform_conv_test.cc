// Expected values by hand: interpolation on a slope.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class DeformConvTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("deform_conv")); }
  OpTester conv() { return OpTester(host_, "tenon.deform_conv/1"); }
  // 3 x 3 with the value 10 * row + column.
  const std::vector<float> slope_ = {0, 1, 2, 10, 11, 12, 20, 21, 22};
  TestHost host_;
};

TEST_F(DeformConvTest, OffsetsInterpolate) {
  // One tap at each of 3 x 3: vertical offsets of 0.5 and horizontal ones of -0.25 everywhere.
  std::vector<float> offset(18, 0.5f);
  std::fill(offset.begin() + 9, offset.end(), -0.25f);
  conv()
      .input({1, 1, 3, 3}, slope_)
      .input({1, 1, 1, 1}, {2})
      .input({1, 2, 3, 3}, offset)
      .input({1}, {1})
      .expect({1, 1, 3, 3},
              {1 + 2 * 0.75 * 5, 1 + 2 * 5.75, 1 + 2 * 6.75, 1 + 2 * 0.75 * 15, 1 + 2 * 15.75, 1 + 2 * 16.75,
               1 + 0.75 * 20, 1 + 20.75, 1 + 21.75},
              1e-5);
}

TEST_F(DeformConvTest, MaskAndGroups) {
  // Two channels, each with its own offsets: the first moves down by one, the second not; masks 1 and 0.5.
  std::vector<float> x = slope_;
  x.insert(x.end(), slope_.begin(), slope_.end());
  conv()
      .attr("groups", int64_t{2})
      .attr("offset_groups", int64_t{2})
      .attr("strides", std::vector<int64_t>{3, 3})
      .input({1, 2, 3, 3}, x)
      .input({2, 1, 1, 2}, {1, 10, 1, 10})
      .input({1, 8, 1, 1}, {1, 0, 1, 0, 0, 0, 0, 0})
      .absent()
      .input({1, 4, 1, 1}, {1, 1, 0.5, 0.5})
      .expect({1, 2, 1, 1}, {10 + 110, 5});
}

TEST_F(DeformConvTest, FarAwayIsZero) {
  conv().input({1, 1, 1, 1}, {7}).input({1, 1, 1, 1}, {1}).input({1, 2, 1, 1}, {1e30f, 0}).expect({1, 1, 1, 1}, {0});
}

TEST_F(DeformConvTest, KernelsAgree) {
  const std::vector<std::string> kernels = {"tenon.deform_conv.columns.f32"};
  // 14 x 15 positions: more than a block.
  conv()
      .attr("groups", int64_t{2})
      .attr("offset_groups", int64_t{4})
      .attr("pads", std::vector<int64_t>{1, 0, 1, 2})
      .attr("dilations", std::vector<int64_t>{1, 1})
      .random_input({2, 8, 14, 15})
      .random_input({6, 4, 3, 3})
      .random_input({2, 4 * 9 * 2, 14, 15}, 2.0)
      .random_input({6})
      .random_input({2, 4 * 9, 14, 15})
      .expect_kernels(kernels);
  conv().random_input({1, 2, 5}).random_input({3, 2, 2}).random_input({1, 2, 4}).expect_kernels(kernels);
  conv()
      .random_input({1, 2, 3, 4, 5})
      .random_input({3, 2, 1, 2, 2})
      .random_input({1, 12, 3, 3, 4})
      .expect_kernels(kernels);
}

TEST_F(DeformConvTest, Errors) {
  conv()
      .input({1, 1, 3, 3}, slope_)
      .input({1, 1, 1, 1}, {2})
      .random_input({1, 3, 3, 3})
      .expect_invalid({"offset", "[1,2,3,3]", "[1,3,3,3]"});
  conv()
      .attr("offset_groups", int64_t{2})
      .input({1, 1, 3, 3}, slope_)
      .input({1, 1, 1, 1}, {2})
      .random_input({1, 2, 3, 3})
      .expect_invalid({"offset_groups", "2"});
}

}  // namespace
}  // namespace tenon::testing
