// Expected values from numpy's nonzero.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class NonZeroTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("non_zero")); }
  template <class T>
  OpTester non_zero(const Dims& dims, const std::vector<T>& x) {
    return std::move(OpTester(host_, "tenon.non_zero/1").input<T>(dims, x).constant());
  }
  TestHost host_;
};

TEST_F(NonZeroTest, Values) {
  non_zero<uint8_t>({2, 2}, {1, 0, 1, 1}).expect({2, 3}, {0, 1, 1, 0, 0, 1});
  non_zero<float>({5}, {0.0f, -0.0f, 1e-45f, std::nanf(""), -2}).expect({1, 3}, {2, 3, 4});
  non_zero<int64_t>({1, 2, 2}, {0, INT64_MIN, 0, 1}).expect({3, 2}, {0, 0, 0, 1, 1, 1});
  non_zero<float>({3}, {0, 0, 0}).expect({1, 0}, {});
  non_zero<float>({2, 0}, {}).expect({2, 0}, {});
  non_zero<float>({}, {5}).expect({0, 1}, {});
}

TEST_F(NonZeroTest, Bound) {
  OpTester(host_, "tenon.non_zero/1").bools({2, 2}, {1, 0, 1, 1}).expect_bound({2, 4}, {0, 1, 1, 0, 0, 0, 1, 0});
  OpTester(host_, "tenon.non_zero/1").input({3}, {0, 0, 0}).expect_bound({1, 3}, {0, 0, 0});
  OpTester(host_, "tenon.non_zero/1").input({}, {5}).expect_bound({0, 1}, {});
  OpTester(host_, "tenon.non_zero/1").input({2, 0}, {}).expect_bound({2, 0}, {});
}

TEST_F(NonZeroTest, Errors) { OpTester(host_, "tenon.non_zero/1").random_input({2}).expect_invalid({"x", "known"}); }

}  // namespace
}  // namespace tenon::testing
