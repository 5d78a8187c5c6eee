// Expected values by hand, from the definition of each op; those of empty sets and of NaN from ONNX and numpy.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class ReduceTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("reduce")); }
  OpTester reduce(const std::string& kind, int64_t keepdims = 1) {
    OpTester tester(host_, "tenon.reduce_" + kind + "/1");
    tester.attr("keepdims", keepdims);
    return tester;
  }
  static std::vector<std::string> kernel(const std::string& kind) { return {"tenon.reduce_" + kind + ".vector.f32"}; }
  TestHost host_;
};

const char* const kKinds[] = {"sum", "mean", "max", "min", "prod", "l1", "l2", "log_sum", "log_sum_exp", "sum_square"};

TEST_F(ReduceTest, Values) {
  const std::vector<float> x = {1, 2, 3, 4};
  const std::vector<std::pair<const char*, std::vector<double>>> expected = {
      {"sum", {3, 7}},
      {"mean", {1.5, 3.5}},
      {"max", {2, 4}},
      {"min", {1, 3}},
      {"prod", {2, 12}},
      {"l1", {3, 7}},
      {"l2", {std::sqrt(5.0), 5}},
      {"log_sum", {std::log(3.0), std::log(7.0)}},
      {"log_sum_exp", {1 + std::log(1 + std::exp(1.0)), 3 + std::log(1 + std::exp(1.0))}},
      {"sum_square", {5, 25}}};
  for (const auto& [kind, values] : expected) {
    reduce(kind)
        .input({2, 2}, x)
        .input<int64_t>({1}, {-1})
        .constant()
        .expect({2, 1}, values)
        .expect_kernels(kernel(kind));
    reduce(kind, 0)
        .input({2, 2}, x)
        .input<int64_t>({1}, {1})
        .constant()
        .expect({2}, values)
        .expect_kernels(kernel(kind));
  }
  reduce("l1").input({3}, {-1, 2, -4}).expect({1}, {7}).expect_kernels(kernel("l1"));
}

TEST_F(ReduceTest, WithoutAxes) {
  const std::vector<float> x = {1, -2, 3, 4};
  reduce("sum").input({2, 2}, x).expect({1, 1}, {6}).expect_kernels(kernel("sum"));
  reduce("sum", 0).input({2, 2}, x).absent().expect({}, {6}).expect_kernels(kernel("sum"));
  reduce("sum", 0).input({2, 2}, x).input<int64_t>({0}, {}).constant().expect({}, {6}).expect_kernels(kernel("sum"));
  reduce("sum").input({}, {5}).expect({}, {5}).expect_kernels(kernel("sum"));
  // No axis: what is done to each element stays.
  reduce("sum").attr("noop_with_empty_axes", int64_t{1}).input({2, 2}, x).expect({2, 2}, {1, -2, 3, 4});
  reduce("sum_square")
      .attr("noop_with_empty_axes", int64_t{1})
      .input({2, 2}, x)
      .expect({2, 2}, {1, 4, 9, 16})
      .expect_kernels(kernel("sum_square"));
}

TEST_F(ReduceTest, EmptySets) {
  const std::pair<const char*, double> expected[] = {
      {"sum", 0}, {"mean", kNan}, {"max", -kInf},     {"min", kInf},          {"prod", 1},
      {"l1", 0},  {"l2", 0},      {"log_sum", -kInf}, {"log_sum_exp", -kInf}, {"sum_square", 0}};
  for (const auto& [kind, value] : expected) {
    reduce(kind)
        .input({2, 0, 2}, std::vector<float>{})
        .input<int64_t>({1}, {1})
        .constant()
        .expect({2, 1, 2}, std::vector<double>(4, value))
        .expect_kernels(kernel(kind));
    reduce(kind).input({2, 0}, std::vector<float>{}).input<int64_t>({1}, {0}).constant().expect({1, 0}, {});
  }
  reduce("max").input<int8_t>({0}, {}).expect({1}, {-128});
  reduce("min").input<uint8_t>({0}, {}).expect({1}, {255});
  reduce("mean").input<int32_t>({0}, {}).expect_invalid({"mean", "at least 1"});
}

TEST_F(ReduceTest, Integers) {
  reduce("sum").input<int8_t>({3}, {100, 27, 1}).expect({1}, {-128});
  reduce("prod").input<uint16_t>({3}, {256, 128, 3}).expect({1}, {32768});
  reduce("sum").input<int64_t>({2}, {int64_t{1} << 53, 1}).expect({1}, {9007199254740993.0}, 0);
  reduce("mean").input<int32_t>({2}, {-1, -2}).expect({1}, {-1});
  reduce("l1").input<int32_t>({3}, {-3, 4, INT32_MIN}).expect({1}, {7.0 - 2147483648.0});
  reduce("max").input<uint8_t>({3}, {3, 200, 100}).expect({1}, {200});
}

TEST_F(ReduceTest, NanWins) {
  const auto nan = static_cast<float>(kNan);
  for (const char* kind : {"max", "min", "sum", "log_sum_exp"}) {
    for (size_t place : {0, 1, 2}) {
      std::vector<float> x = {1, 2, 3};
      x[place] = nan;
      reduce(kind).input({3}, x).expect({1}, {kNan}).expect_kernels(kernel(kind));
    }
  }
}

// Rows (3, -5, 4) and (-1, 2, -2).
TEST_F(ReduceTest, IntegerTypes) {
  const std::pair<const char*, std::vector<double>> cases[] = {
      {"sum", {2, -1}},   {"mean", {0, 0}}, {"max", {4, 2}},        {"min", {-5, -2}},
      {"prod", {-60, 4}}, {"l1", {12, 5}},  {"sum_square", {50, 9}}};
  for (const auto& [kind, expected] : cases) {
    const auto check = [&](OpTester tester) {
      tester.input<int64_t>({1}, {1}).constant().expect({2, 1}, expected, 0).expect_kernels();
    };
    check(reduce(kind).input<int32_t>({2, 3}, {3, -5, 4, -1, 2, -2}));
    check(reduce(kind).input<int64_t>({2, 3}, {3, -5, 4, -1, 2, -2}));
  }
}

TEST_F(ReduceTest, KernelsAgree) {
  const std::vector<std::vector<int64_t>> axes = {{0}, {1}, {2}, {3}, {2, 3}, {0, 2, 3}, {0, 2}, {1, 3}, {0, 1, 2, 3}};
  for (const char* kind : kKinds) {
    if (std::string(kind) == "log_sum") continue;  // of sums below 0
    for (const std::vector<int64_t>& list : axes) {
      reduce(kind)
          .random_input({2, 5, 9, 35})
          .input<int64_t>({static_cast<int64_t>(list.size())}, list)
          .constant()
          .expect_kernels(kernel(kind));
    }
  }
}

TEST_F(ReduceTest, WrongAxes) {
  reduce("sum").random_input({2, 3}).input<int64_t>({1}, {2}).constant().expect_invalid({"axes", "-2 to 1", "2"});
  reduce("sum").random_input({2, 3}).input<int64_t>({1}, {INT64_MIN}).constant().expect_invalid({"axes", "-2 to 1"});
  reduce("sum").random_input({2, 3}).input<int64_t>({2}, {1, -1}).constant().expect_invalid({"axes", "twice"});
  reduce("sum").random_input({2, 3}).input<int64_t>({1}, {1}).expect_invalid({"axes", "known"});
  reduce("sum").random_input({2, 3}).input({1}, {1}).constant().expect_invalid({"axes", "i64", "f32"});
}

}  // namespace
}  // namespace tenon::testing
