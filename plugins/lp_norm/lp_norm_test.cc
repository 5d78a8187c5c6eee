// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class LpNormTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("lp_norm")); }
  OpTester norm(int64_t axis, int64_t p) {
    OpTester tester(host_, "tenon.lp_norm/1");
    tester.attr("axis", axis).attr("p", p);
    return tester;
  }
  TestHost host_;
};

const std::vector<std::string> kKernel = {"tenon.lp_norm.vector.f32"};

TEST_F(LpNormTest, Values) {
  norm(-1, 2).input({2, 2}, {3, 4, -6, 8}).expect({2, 2}, {0.6, 0.8, -0.6, 0.8}).expect_kernels(kKernel);
  norm(0, 1).input({2, 2}, {3, 4, -6, 12}).expect({2, 2}, {1 / 3.0, 0.25, -2 / 3.0, 0.75}).expect_kernels(kKernel);
  norm(0, 1).input<double>({2}, {1, 3}).expect({2}, {0.25, 0.75});
}

TEST_F(LpNormTest, ZerosStayZeros) {
  norm(1, 2).input({2, 2}, {0, 0, 0, 5}).expect({2, 2}, {0, 0, 0, 1}).expect_kernels(kKernel);
  norm(0, 1).input({2, 2}, {0, 0, 0, 5}).expect({2, 2}, {0, 0, 0, 1}).expect_kernels(kKernel);
}

TEST_F(LpNormTest, KernelsAgree) {
  for (int64_t axis = 0; axis < 3; ++axis) {
    for (const int64_t p : {1, 2}) norm(axis, p).random_input({5, 33, 70}, 3).expect_kernels(kKernel);
  }
}

TEST_F(LpNormTest, WrongInputs) {
  norm(2, 2).random_input({2, 3}).expect_invalid({"axis", "-2 to 1"});
  norm(0, 2).input<int32_t>({2}, {1, 2}).expect_invalid({"floating", "i32"});
}

}  // namespace
}  // namespace tenon::testing
