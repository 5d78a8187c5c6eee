// Expected values from the examples of ONNX's operator description (Unique-11) and numpy's unique.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class UniqueTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("unique")); }
  template <class T>
  void expect(const Dims& dims, const std::vector<T>& x, int64_t axis, int64_t sorted, const Dims& y_dims,
              const std::vector<std::vector<double>>& outputs) {
    for (int n = 0; n < 4; ++n) {
      const std::vector<double>& values = outputs[static_cast<size_t>(n)];
      OpTester(host_, "tenon.unique/1")
          .attr("axis", axis)
          .attr("sorted", sorted)
          .template input<T>(dims, x)
          .constant()
          .outputs(4, n)
          .expect(n == 0 ? y_dims : Dims{static_cast<int64_t>(values.size())}, values);
    }
  }
  TestHost host_;
};

TEST_F(UniqueTest, OnnxExamples) {
  expect<int32_t>({6}, {2, 1, 1, 3, 4, 3}, 0, 0, {4}, {{2, 1, 3, 4}, {0, 1, 3, 4}, {0, 1, 1, 2, 3, 2}, {1, 2, 2, 1}});
  expect<float>({4}, {1, 3, 2, 3}, 0, 1, {3}, {{1, 2, 3}, {0, 2, 1}, {0, 2, 1, 2}, {1, 1, 2}});
  expect<int64_t>({3, 3}, {1, 0, 0, 1, 0, 0, 2, 3, 4}, 0, 1, {2, 3}, {{1, 0, 0, 2, 3, 4}, {0, 2}, {0, 0, 1}, {2, 1}});
  expect<double>({2, 4, 2}, {1, 1, 0, 1, 2, 1, 0, 1, 1, 1, 0, 1, 2, 1, 0, 1}, 1, 1, {2, 3, 2},
                 {{0, 1, 1, 1, 2, 1, 0, 1, 1, 1, 2, 1}, {1, 0, 2}, {1, 0, 2, 0}, {2, 1, 1}});
}

TEST_F(UniqueTest, SpecialValues) {
  const float nan = std::nanf("");
  expect<float>({5}, {nan, 1, nan, -0.0f, 0.0f}, 0, 1, {3}, {{0, 1, NAN}, {3, 1, 0}, {2, 1, 2, 0, 0}, {2, 1, 2}});
  expect<int64_t>(
      {3}, {INT64_MAX, INT64_MAX - 1, INT64_MIN}, -1, 1, {3},
      {{-9223372036854775808.0, 9223372036854775806.0, 9223372036854775807.0}, {2, 1, 0}, {2, 1, 0}, {1, 1, 1}});
  expect<float>({0}, {}, 0, 1, {0}, {{}, {}, {}, {}});
}

// As many slices as x has, 0 beyond the different ones; inverse has x's number whatever the contents are.
TEST_F(UniqueTest, Bound) {
  const std::vector<std::vector<double>> list = {
      {2, 1, 3, 4, 0, 0}, {0, 1, 3, 4, 0, 0}, {0, 1, 1, 2, 3, 2}, {1, 2, 2, 1, 0, 0}};
  const std::vector<std::vector<double>> columns = {{0, 1, 0, 3, 4, 0}, {1, 0, 0}, {1, 0, 1}, {1, 2, 0}};
  for (int n = 0; n < 4; ++n) {
    const auto output = static_cast<size_t>(n);
    OpTester(host_, "tenon.unique/1")
        .attr("sorted", int64_t{0})
        .input<int32_t>({6}, {2, 1, 1, 3, 4, 3})
        .outputs(4, n)
        .expect_bound({6}, list[output]);
    OpTester(host_, "tenon.unique/1")
        .attr("axis", int64_t{-1})
        .input({2, 3}, {1, 0, 1, 4, 3, 4})
        .outputs(4, n)
        .expect_bound(n == 0 ? Dims{2, 3} : Dims{3}, columns[output]);
  }
}

TEST_F(UniqueTest, Errors) {
  OpTester(host_, "tenon.unique/1").random_input({2}).outputs(4, 0).expect_invalid({"x", "known"});
  OpTester(host_, "tenon.unique/1")
      .attr("axis", int64_t{1})
      .random_input({2})
      .constant()
      .outputs(4, 0)
      .expect_invalid({"axis", "1"});
}

}  // namespace
}  // namespace tenon::testing
