// Expected values from ONNX's operator description (Range-27) and by hand.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class RangeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("range")); }
  template <class T>
  OpTester range(T start, T limit, T delta) {
    OpTester tester(host_, "tenon.range/1");
    for (const T value : {start, limit, delta}) tester.input<T>({}, {value}).constant();
    return tester;
  }
  TestHost host_;
};

TEST_F(RangeTest, Values) {
  range<int64_t>(3, 9, 3).expect({2}, {3, 6});
  range<int32_t>(10, 4, -2).expect({3}, {10, 8, 6});
  range<int16_t>(0, 5, 2).expect({3}, {0, 2, 4});
  range<int64_t>(0, -5, -2).expect({3}, {0, -2, -4});
  range<int64_t>(5, 5, 1).expect({0}, {});
  range<int64_t>(5, 4, 1).expect({0}, {});
  range<float>(1, 5, 2).expect({2}, {1, 3});
  range<double>(0, 1, 0.25).expect({4}, {0, 0.25, 0.5, 0.75});
  range<float>(10, 6, -1.5f).expect({3}, {10, 8.5, 7});
}

TEST_F(RangeTest, Extremes) {
  range<int64_t>(INT64_MIN, INT64_MAX, INT64_MAX).expect({3}, {-9223372036854775808.0, -1, 9223372036854775806.0});
  range<int64_t>(INT64_MAX, INT64_MIN, INT64_MIN).expect({2}, {9223372036854775807.0, -1});
}

TEST_F(RangeTest, Errors) {
  range<int64_t>(0, 1, 0).expect_invalid({"delta", "0"});
  range<float>(0, 1, 0).expect_invalid({"delta", "0"});
  range<int64_t>(0, INT64_MAX, 1).expect_invalid({"at most"});
  range<float>(0, 1, std::numeric_limits<float>::quiet_NaN()).expect_invalid({"at most"});
  range<float>(0, std::numeric_limits<float>::infinity(), 1).expect_invalid({"at most"});
  OpTester(host_, "tenon.range/1")
      .input<int64_t>({}, {0})
      .input<int64_t>({}, {1})
      .input<int64_t>({}, {1})
      .expect_invalid({"start", "known"});
  OpTester(host_, "tenon.range/1")
      .input<int64_t>({}, {0})
      .constant()
      .input<int32_t>({}, {1})
      .constant()
      .input<int64_t>({}, {1})
      .constant()
      .expect_invalid({"limit", "i64", "i32"});
}

}  // namespace
}  // namespace tenon::testing
