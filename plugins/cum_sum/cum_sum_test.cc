// Expected values from ONNX's operator descriptions (CumSum-14, CumProd-26), numpy's cumsum, and by hand.
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class CumSumTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("cum_sum")); }
  OpTester cumulate(const std::string& name, int64_t exclusive, int64_t reverse) {
    return std::move(OpTester(host_, "tenon." + name + "/1").attr("exclusive", exclusive).attr("reverse", reverse));
  }
  void expect_row(const std::string& name, int64_t exclusive, int64_t reverse, const std::vector<double>& y) {
    cumulate(name, exclusive, reverse)
        .input({3}, {1, 2, 3})
        .input<int32_t>({}, {0})
        .constant()
        .expect({3}, y)
        .expect_kernels({"tenon." + name + ".scalar"});
    cumulate(name, exclusive, reverse)
        .input<int16_t>({3}, {1, 2, 3})
        .input<int64_t>({1}, {-1})
        .constant()
        .expect({3}, y)
        .expect_kernels({"tenon." + name + ".scalar"});
  }
  TestHost host_;
};

TEST_F(CumSumTest, OnnxExamples) {
  expect_row("cum_sum", 0, 0, {1, 3, 6});
  expect_row("cum_sum", 1, 0, {0, 1, 3});
  expect_row("cum_sum", 0, 1, {6, 5, 3});
  expect_row("cum_sum", 1, 1, {5, 3, 0});
  expect_row("cum_prod", 0, 0, {1, 2, 6});
  expect_row("cum_prod", 1, 0, {1, 1, 2});
  expect_row("cum_prod", 0, 1, {6, 6, 3});
  expect_row("cum_prod", 1, 1, {6, 3, 1});
}

TEST_F(CumSumTest, Axes) {
  cumulate("cum_sum", 0, 0)
      .input<double>({2, 3}, {1, 2, 3, 4, 5, 6})
      .input<int64_t>({}, {0})
      .constant()
      .expect({2, 3}, {1, 2, 3, 5, 7, 9})
      .expect_kernels({"tenon.cum_sum.scalar"});
  cumulate("cum_sum", 0, 0)
      .input<double>({2, 3}, {1, 2, 3, 4, 5, 6})
      .input<int64_t>({}, {1})
      .constant()
      .expect({2, 3}, {1, 3, 6, 4, 9, 15})
      .expect_kernels({"tenon.cum_sum.scalar"});
  for (const int64_t axis : {0, 1, 2}) {
    cumulate("cum_sum", 1, 1)
        .random_input({20, 30, 70})
        .input<int64_t>({}, {axis})
        .constant()
        .expect_kernels({"tenon.cum_sum.scalar"});
  }
  cumulate("cum_sum", 0, 1).input({0, 2}, {}).input<int64_t>({}, {0}).constant().expect({0, 2}, {}).expect_kernels();
}

TEST_F(CumSumTest, Integers) {
  for (const std::string name : {"cum_sum", "cum_prod"}) {
    const std::vector<double> expected =
        name == "cum_sum" ? std::vector<double>{2, -1, 3} : std::vector<double>{2, -6, -24};
    const auto check = [&](OpTester tester) {
      tester.input<int64_t>({}, {0}).constant().expect({3}, expected).expect_kernels({"tenon." + name + ".scalar"});
    };
    check(cumulate(name, 0, 0).input<int32_t>({3}, {2, -3, 4}));
    check(cumulate(name, 0, 0).input<int64_t>({3}, {2, -3, 4}));
  }
}

TEST_F(CumSumTest, IntegersWrapAround) {
  cumulate("cum_sum", 0, 0)
      .input<int8_t>({2}, {127, 1})
      .input<int64_t>({}, {0})
      .constant()
      .expect({2}, {127, -128})
      .expect_kernels({"tenon.cum_sum.scalar"});
  cumulate("cum_prod", 0, 0)
      .input<int64_t>({3}, {INT64_C(1) << 62, 4, 1})
      .input<int64_t>({}, {0})
      .constant()
      .expect({3}, {4611686018427387904.0, 0, 0})
      .expect_kernels({"tenon.cum_prod.scalar"});
}

TEST_F(CumSumTest, Errors) {
  cumulate("cum_sum", 0, 0).random_input({3}).input<int64_t>({}, {1}).constant().expect_invalid({"axis", "1"});
  cumulate("cum_sum", 0, 0).random_input({}).input<int64_t>({}, {0}).constant().expect_invalid({"axis", "0"});
  cumulate("cum_sum", 0, 0).random_input({3}).input<int64_t>({2}, {0, 0}).constant().expect_invalid({"axis", "[2]"});
  cumulate("cum_sum", 0, 0).random_input({3}).random_input({}).expect_invalid({"axis", "f32"});
}

}  // namespace
}  // namespace tenon::testing
