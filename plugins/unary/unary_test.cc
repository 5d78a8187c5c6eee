// Expected values: by hand, and from tables of the functions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

constexpr double kPi = 3.14159265358979324;
const double kInf = std::numeric_limits<double>::infinity();

class UnaryTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("unary")); }
  void check(const char* op, const std::vector<float>& x, const std::vector<double>& y) {
    const Dims dims = {static_cast<int64_t>(x.size())};
    OpTester(host_, std::string("tenon.") + op + "/1").input(dims, x).expect(dims, y).expect_kernels();
  }
  TestHost host_;
};

TEST_F(UnaryTest, Pieces) {
  check("abs", {-2, -0.0f, 3}, {2, 0, 3});
  check("neg", {-2, 0, 3}, {2, 0, -3});
  check("sign", {-2, 0, 3}, {-1, 0, 1});
  check("floor", {-1.5f, -0.5f, 0.5f, 2}, {-2, -1, 0, 2});
  check("ceil", {-1.5f, -0.5f, 0.5f, 2}, {-1, 0, 1, 2});
  check("round_even", {-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f, 2.6f}, {-2, -2, 0, 0, 2, 2, 3});
  check("reciprocal", {-2, 0.25f}, {-0.5, 4});
}

TEST_F(UnaryTest, Functions) {
  check("sqrt", {0, 2.25f, 9}, {0, 1.5, 3});
  check("exp", {-1, 0, 2}, {0.36787944117, 1, 7.38905609893});
  check("log", {0.5f, 1, 10}, {-0.69314718056, 0, 2.30258509299});
  check("erf", {-2, 0, 0.5f, 1}, {-0.9953222650, 0, 0.5204998778, 0.8427007929});
  const auto pi = static_cast<float>(kPi);
  check("sin", {pi / 6, pi / 2}, {0.5, 1});
  check("cos", {0, pi / 3}, {1, 0.5});
  check("tan", {0, pi / 4}, {0, 1});
  check("asin", {0.5f, 1}, {kPi / 6, kPi / 2});
  check("acos", {0.5f, 1}, {kPi / 3, 0});
  check("atan", {0, 1}, {0, kPi / 4});
  check("sinh", {0, 1}, {0, 1.17520119364});
  check("cosh", {0, 1}, {1, 1.54308063482});
  check("asinh", {0, 1}, {0, 0.88137358702});
  check("acosh", {1, 2}, {0, 1.31695789692});
  check("atanh", {0, 0.5f}, {0, 0.54930614433});
}

TEST_F(UnaryTest, Limits) {
  check("reciprocal", {0}, {kInf});
  check("log", {0}, {-kInf});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto inf = static_cast<float>(kInf);
  for (const char* op : {"abs", "neg", "sign", "floor", "ceil", "round_even", "reciprocal", "sqrt", "exp", "log", "erf",
                         "sin", "acos", "atan", "acosh"}) {
    const std::string id = std::string("tenon.") + op + "/1";
    OpTester(host_, id).input({5}, std::vector<float>{-inf, -1e30f, nan, 1e30f, inf}).expect_kernels();
  }
}

TEST_F(UnaryTest, Integers) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  OpTester(host_, "tenon.abs/1")
      .input({3}, std::vector<int64_t>{-3, least, 5})
      .expect({3}, {3, static_cast<double>(least), 5});
  OpTester(host_, "tenon.abs/1").input({2}, std::vector<uint8_t>{200, 0}).expect({2}, {200, 0});
  OpTester(host_, "tenon.neg/1").input({3}, std::vector<int8_t>{-128, 5, 0}).expect({3}, {-128, -5, 0});
  OpTester(host_, "tenon.sign/1").input({3}, std::vector<int16_t>{-300, 0, 7}).expect({3}, {-1, 0, 1});
  OpTester(host_, "tenon.sign/1").input({2}, std::vector<uint64_t>{~uint64_t{0}, 0}).expect({2}, {1, 0});
  OpTester(host_, "tenon.floor/1").input({1}, std::vector<int32_t>{1}).expect_invalid({"floating", "i32"});
  OpTester(host_, "tenon.abs/1").input({1}, std::vector<uint8_t>{1}).expect({1}, {1});
}

TEST_F(UnaryTest, F64KeepsItsDigits) {
  OpTester(host_, "tenon.exp/1").input({1}, std::vector<double>{1}).expect({1}, {2.718281828459045}, 1e-14);
  OpTester(host_, "tenon.abs/1").input({1}, std::vector<double>{-1 - 1e-12}).expect({1}, {1 + 1e-12}, 1e-15);
}

// 21 channels leave the last block of a blocked format half empty.
TEST_F(UnaryTest, EveryFormatAgrees) {
  for (const char* op :
       {"abs", "neg", "sign", "floor", "ceil", "round_even", "reciprocal", "sqrt", "exp",   "log",   "erf",
        "sin", "cos", "tan",  "asin",  "acos", "atan",       "sinh",       "cosh", "asinh", "acosh", "atanh"}) {
    const std::string id = std::string("tenon.") + op + "/1";
    for (const Dims& dims : {Dims{2, 3, 5, 7}, Dims{1, 21, 3, 2}})
      OpTester(host_, id).random_input(dims).expect_kernels();
    OpTester(host_, id).input({0, 3}, std::vector<float>{}).expect({0, 3}, {});
  }
}

}  // namespace
}  // namespace tenon::testing
