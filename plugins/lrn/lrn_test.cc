// Expected values by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class LrnTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("lrn")); }
  OpTester lrn(int64_t size, double alpha, double beta, double bias) {
    OpTester tester(host_, "tenon.lrn/1");
    tester.attr("size", size).attr("alpha", alpha).attr("beta", beta).attr("bias", bias);
    return tester;
  }
  TestHost host_;
};

const std::vector<std::string> kKernel = {"tenon.lrn.vector.f32"};

TEST_F(LrnTest, Values) {
  // Sums of squares with one neighbour to either side: 5, 14, 13.
  lrn(3, 3, 1, 1).input({1, 3}, {1, 2, 3}).expect({1, 3}, {1 / 6.0, 2 / 15.0, 3 / 14.0}).expect_kernels(kKernel);
  // An even size reaches further ahead than back: 5, 13, 9.
  lrn(2, 2, 0.5, 3)
      .input({1, 3, 1}, {1, 2, 3})
      .expect({1, 3, 1}, {1 / std::sqrt(8.0), 2 / 4.0, 3 / std::sqrt(12.0)})
      .expect_kernels(kKernel);
  lrn(1, 1, 1, 1).input({1, 1, 2}, {1, -2}).expect({1, 1, 2}, {0.5, -0.4}).expect_kernels(kKernel);
  lrn(INT64_MAX, 0, 1, 2).input({1, 2}, {1, 2}).expect({1, 2}, {0.5, 1}).expect_kernels(kKernel);
}

TEST_F(LrnTest, KernelsAgree) {
  for (const int64_t size : {2, 3, 5}) {
    for (const double beta : {0.5, 0.75, 0.9, 1.0}) {
      lrn(size, 1e-2, beta, 1).random_input({2, 37, 13, 13}, 5).expect_kernels(kKernel);
    }
  }
}

TEST_F(LrnTest, WrongInputs) {
  lrn(3, 1, 1, 1).random_input({3}).expect_invalid({"rank", "[3]"});
  lrn(3, 1, 1, 1).input<int32_t>({1, 1}, {1}).expect_invalid({"floating", "i32"});
}

}  // namespace
}  // namespace tenon::testing
