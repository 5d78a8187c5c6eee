// Expected values by hand, from the definition of each form.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class BatchNormTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("batch_norm")); }
  OpTester norm(double epsilon, const std::string& place) {
    OpTester tester(host_, "tenon.batch_norm/1");
    tester.attr("epsilon", epsilon).attr("epsilon_place", place);
    return tester;
  }
  TestHost host_;
};

TEST_F(BatchNormTest, EpsilonInsideAndOutsideTheRoot) {
  // variance 3, epsilon 1: sqrt(4) = 2 inside; variance 4, epsilon 1: 2 + 1 = 3 outside.
  norm(1, "inside")
      .input({1, 1, 1, 2}, {7, 9})
      .input({1}, {4})
      .constant()
      .input({1}, {0.5})
      .constant()
      .input({1}, {5})
      .constant()
      .input({1}, {3})
      .constant()
      .expect({1, 1, 1, 2}, {4.5, 8.5})
      .expect_kernels({"tenon.batch_norm.affine.f32"});
  norm(1, "outside")
      .input({1, 1, 1, 2}, {7, 11})
      .input({1}, {3})
      .constant()
      .input({1}, {0.5})
      .constant()
      .input({1}, {5})
      .constant()
      .input({1}, {4})
      .constant()
      .expect({1, 1, 1, 2}, {2.5, 6.5})
      .expect_kernels({"tenon.batch_norm.affine.f32"});
}

TEST_F(BatchNormTest, EachChannelHasItsOwn) {
  norm(0, "inside")
      .input({1, 2, 1, 1}, {1, 1})
      .input({2}, {1, 2})
      .constant()
      .input({2}, {0, 10})
      .constant()
      .input({2}, {0, 0})
      .constant()
      .input({2}, {1, 4})
      .constant()
      .expect({1, 2, 1, 1}, {1, 11})
      .expect_kernels({"tenon.batch_norm.affine.f32"});
}

TEST_F(BatchNormTest, WrongChannelCount) {
  norm(0, "inside")
      .random_input({1, 3, 2, 2})
      .random_input({2})
      .random_input({3})
      .random_input({3})
      .random_input({3})
      .expect_invalid({"scale", "[3]", "[2]"});
}

}  // namespace
}  // namespace tenon::testing
