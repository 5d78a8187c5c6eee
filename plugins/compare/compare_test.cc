// Expected values by hand.
#include <gtest/gtest.h>

#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

class CompareTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("compare")); }
  TestHost host_;
};

TEST_F(CompareTest, Floats) {
  const std::vector<float> a = {1, 2, 3, kNan, -0.0f}, b = {2, 2, 2, kNan, 0};
  OpTester(host_, "tenon.equal/1").input({5}, a).input({5}, b).expect({5}, {0, 1, 0, 0, 1}).expect_kernels();
  OpTester(host_, "tenon.less/1").input({5}, a).input({5}, b).expect({5}, {1, 0, 0, 0, 0}).expect_kernels();
  OpTester(host_, "tenon.less_equal/1").input({5}, a).input({5}, b).expect({5}, {1, 1, 0, 0, 1}).expect_kernels();
}

TEST_F(CompareTest, Broadcasting) {
  OpTester(host_, "tenon.less/1")
      .input({2, 1}, {1, 3})
      .input({3}, {0, 2, 4})
      .expect({2, 3}, {0, 1, 1, 0, 0, 1})
      .expect_kernels({"tenon.less.vector"});
  OpTester(host_, "tenon.equal/1").input({}, {1}).input({2}, {1, 2}).expect({2}, {1, 0}).expect_kernels();
  OpTester(host_, "tenon.equal/1").input({0, 2}, std::vector<float>{}).input({2}, {1, 2}).expect({0, 2}, {});
}

// Neighbours above 2^53 are equal as doubles.
TEST_F(CompareTest, IntegersAreComparedExactly) {
  const int64_t large = (int64_t{1} << 60) + 1;
  OpTester(host_, "tenon.equal/1")
      .input({2}, std::vector<int64_t>{large, large})
      .input({2}, std::vector<int64_t>{large, large - 1})
      .expect({2}, {1, 0})
      .expect_kernels({"tenon.equal.vector"});
  OpTester(host_, "tenon.less/1")
      .input({2}, std::vector<uint64_t>{~uint64_t{0}, 1})
      .input({2}, std::vector<uint64_t>{1, ~uint64_t{0}})
      .expect({2}, {0, 1});
  OpTester(host_, "tenon.less_equal/1")
      .input({3}, std::vector<int8_t>{-128, 5, 6})
      .input({}, std::vector<int8_t>{5})
      .expect({3}, {1, 1, 0})
      .expect_kernels();
}

TEST_F(CompareTest, Bools) {
  OpTester(host_, "tenon.equal/1")
      .bools({4}, {0, 0, 1, 1})
      .bools({4}, {0, 1, 0, 1})
      .expect({4}, {1, 0, 0, 1})
      .expect_kernels({"tenon.equal.vector"});
  OpTester(host_, "tenon.less/1").bools({1}, {0}).bools({1}, {1}).expect_invalid({"bool"});
}

TEST_F(CompareTest, RefusedDtypes) {
  OpTester(host_, "tenon.equal/1")
      .input({1}, std::vector<float>{1})
      .input({1}, std::vector<int32_t>{1})
      .expect_invalid({"f32", "i32"});
  OpTester(host_, "tenon.is_nan/1").input({1}, std::vector<int32_t>{1}).expect_invalid({"floating", "i32"});
}

TEST_F(CompareTest, NanAndInfinity) {
  const std::vector<float> x = {1, kNan, kInf, -kInf};
  OpTester(host_, "tenon.is_nan/1").input({4}, x).expect({4}, {0, 1, 0, 0}).expect_kernels({"tenon.is_nan.vector"});
  OpTester(host_, "tenon.is_inf/1").input({4}, x).expect({4}, {0, 0, 1, 1});
  OpTester(host_, "tenon.is_inf/1").attr("negative", int64_t{0}).input({4}, x).expect({4}, {0, 0, 1, 0});
  OpTester(host_, "tenon.is_inf/1").attr("positive", int64_t{0}).input({4}, x).expect({4}, {0, 0, 0, 1});
}

}  // namespace
}  // namespace tenon::testing
