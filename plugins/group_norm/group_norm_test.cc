// Expected values by hand: groups whose deviation is a whole number.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class GroupNormTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("group_norm")); }
  OpTester norm(int64_t groups, double epsilon = 0) {
    OpTester tester(host_, "tenon.group_norm/1");
    tester.attr("groups", groups).attr("epsilon", epsilon);
    return tester;
  }
  TestHost host_;
};

const std::vector<std::string> kKernel = {"tenon.group_norm.vector.f32"};

TEST_F(GroupNormTest, Values) {
  // One channel a group: means 3 and 7, deviations 2 and 4.
  norm(2)
      .input({1, 2, 2}, {1, 5, 3, 11})
      .input({2}, {1, 2})
      .input({2}, {0, 10})
      .expect({1, 2, 2}, {-1, 1, 8, 12})
      .expect_kernels(kKernel);
  // Two channels a group: means 3 and 7, each channel with its own scale.
  norm(2)
      .input({1, 4}, {1, 5, 3, 11})
      .input({4}, {1, 2, 3, 4})
      .input({4}, {0, 0, 0, 1})
      .expect({1, 4}, {-1, 2, -3, 5})
      .expect_kernels(kKernel);
  // The same with one scale a group.
  norm(2)
      .input({1, 4}, {1, 5, 3, 11})
      .input({2}, {1, 2})
      .input({2}, {0, 10})
      .expect({1, 4}, {-1, 1, 8, 12})
      .expect_kernels(kKernel);
  norm(1, 12)
      .input({1, 2}, {1, 5})
      .input({2}, {1, 1})
      .input({2}, {0, 0})
      .expect({1, 2}, {-0.5, 0.5})
      .expect_kernels(kKernel);
}

TEST_F(GroupNormTest, KernelsAgree) {
  for (const int64_t groups : {1, 2, 3, 6}) {
    norm(groups, 1e-5).random_input({2, 6, 17, 9}, 3).random_input({6}).random_input({6}).expect_kernels(kKernel);
    norm(groups, 1e-5).random_input({2, 6}).random_input({6}).random_input({6}).expect_kernels(kKernel);
    norm(groups, 1e-5).random_input({1, 6, 5}).random_input({groups}).random_input({groups}).expect_kernels(kKernel);
  }
}

TEST_F(GroupNormTest, WrongInputs) {
  norm(4).random_input({1, 6, 2}).random_input({6}).random_input({6}).expect_invalid({"groups", "6", "4"});
  norm(2).random_input({1, 6, 2}).random_input({3}).random_input({3}).expect_invalid({"scale", "[6]", "[2]", "[3]"});
  norm(2).random_input({1, 6, 2}).random_input({6}).random_input({2}).expect_invalid({"bias", "[2]"});
  norm(2).random_input({6}).random_input({6}).random_input({6}).expect_invalid({"rank", "[6]"});
}

}  // namespace
}  // namespace tenon::testing
