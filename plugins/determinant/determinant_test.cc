// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class DeterminantTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("determinant")); }
  OpTester determinant() { return OpTester(host_, "tenon.determinant/1"); }
  TestHost host_;
};

TEST_F(DeterminantTest, Values) {
  determinant().input({2, 2}, {0, 1, 2, 3}).expect({}, {-2});
  determinant().input({3, 1, 1}, {5, 0, -3}).expect({3}, {5, 0, -3});
  // A zero pivot, a singular matrix, and 2 * 3 * 4 with rows exchanged.
  determinant()
      .input({3, 3, 3}, {0, 1, 2, 1, 0, 3, 4, -3, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 3, 0, 2, 7, 0, 1, 1, 4})
      .expect({3}, {-2, 0, -24}, 1e-5);
  determinant().input({2, 2}, std::vector<double>{1e-3, 1, 1, 1}).expect({}, {1e-3 - 1});
}

TEST_F(DeterminantTest, Empty) {
  determinant().input({2, 0, 0}, std::vector<float>{}).expect({2}, {1, 1});
  determinant().input({0, 2, 2}, std::vector<float>{}).expect({0}, {});
}

TEST_F(DeterminantTest, Errors) {
  determinant().random_input({3}).expect_invalid({"square", "[3]"});
  determinant().random_input({2, 3}).expect_invalid({"square", "[2,3]"});
  determinant().input({1, 1}, std::vector<int64_t>{1}).expect_invalid({"floating", "i64"});
}

}  // namespace
}  // namespace tenon::testing
