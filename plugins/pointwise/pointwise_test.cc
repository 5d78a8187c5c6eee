// Expected values by hand and from the standard library.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

const char kOp[] = "tenon.pointwise/1";
const char kCpu[] = "tenon.pointwise.blocked.f32";

class PointwiseTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("pointwise")); }
  OpTester expression(const std::string& text) { return std::move(OpTester(host_, kOp).attr("expression", text)); }
  TestHost host_;
};

TEST_F(PointwiseTest, Values) {
  expression("max(add(x0,x1),0)")
      .input({2, 2}, {1, -5, 3, 4})
      .input({2}, {-2, 2})
      .expect({2, 2}, {0, 0, 1, 6})
      .expect_kernels({kCpu});
  expression("t1=mul(x0,x1);sub(t1,div(t1,4))")
      .input({3}, {4, 8, -2})
      .input({}, {2})
      .expect({3}, {6, 12, -3})
      .expect_kernels({kCpu});
  expression("x0").input({2}, {-0.0f, 7}).expect({2}, {0, 7}).expect_kernels({kCpu});
  expression("3.5").input({2}, {1, 2}).expect({2}, {3.5, 3.5}).expect_kernels({kCpu});
  // An operand that only gives its shape.
  expression("neg(x1)").input({2, 1}, {1, 2}).input({1}, {5}).expect({2, 1}, {-5, -5}).expect_kernels({kCpu});
  expression("add(x0,x1)").input({0, 3}, {}).input({3}, {1, 2, 3}).expect({0, 3}, {}).expect_kernels({kCpu});
}

TEST_F(PointwiseTest, EveryPrimitive) {
  using D = double;
  const auto truth = [](bool value) { return value ? 1.0 : 0.0; };
  struct Case {
    const char* text;
    std::function<D(D, D)> expected;
  };
  const Case cases[] = {
      {"add(x0,x1)", [](D a, D b) { return a + b; }},
      {"sub(x0,x1)", [](D a, D b) { return a - b; }},
      {"mul(x0,x1)", [](D a, D b) { return a * b; }},
      {"div(x0,x1)", [](D a, D b) { return a / b; }},
      {"min(x0,x1)", [](D a, D b) { return std::min(a, b); }},
      {"max(x0,x1)", [](D a, D b) { return std::max(a, b); }},
      {"neg(x0)", [](D a, D) { return -a; }},
      {"abs(x0)", [](D a, D) { return std::fabs(a); }},
      {"exp(x0)", [](D a, D) { return std::exp(a); }},
      {"log(abs(x0))", [](D a, D) { return std::log(std::fabs(a)); }},
      {"tanh(x0)", [](D a, D) { return std::tanh(a); }},
      {"erf(x0)", [](D a, D) { return std::erf(a); }},
      {"sqrt(abs(x0))", [](D a, D) { return std::sqrt(std::fabs(a)); }},
      {"rsqrt(abs(x0))", [](D a, D) { return 1 / std::sqrt(std::fabs(a)); }},
      {"pow(abs(x0),x1)", [](D a, D b) { return std::pow(std::fabs(a), b); }},
      {"pow(x0,2)", [](D a, D) { return a * a; }},
      {"sin(x0)", [](D a, D) { return std::sin(a); }},
      {"cos(x0)", [](D a, D) { return std::cos(a); }},
      {"floor(x0)", [](D a, D) { return std::floor(a); }},
      {"ceil(x0)", [](D a, D) { return std::ceil(a); }},
      {"round_even(x0)", [](D a, D) { return std::nearbyint(a); }},
      {"sign(x0)", [](D a, D) { return a > 0   ? 1.0
                                       : a < 0 ? -1.0
                                               : 0.0; }},
      {"mod(x0,x1)", [](D a, D b) { return std::fmod(a, b); }},
      {"and(x0,less(x1,0))", [&](D a, D b) { return truth(a != 0 && b < 0); }},
      {"or(less(x0,0),less(x1,0))", [&](D a, D b) { return truth(a < 0 || b < 0); }},
      {"xor(less(x0,0),less(x1,0))", [&](D a, D b) { return truth((a < 0) != (b < 0)); }},
      {"not(floor(x0))", [&](D a, D) { return truth(std::floor(a) == 0); }},
      {"less(x0,x1)", [&](D a, D b) { return truth(a < b); }},
      {"less_equal(x0,x1)", [&](D a, D b) { return truth(a <= b); }},
      {"equal(x0,x1)", [&](D a, D b) { return truth(a == b); }},
      {"select(less(x0,x1),x0,x1)", [](D a, D b) { return std::min(a, b); }},
      {"cast.i8(mul(x0,100))", [](D a, D) { return std::trunc(std::min(std::max(a * 100, -128.0), 127.0)); }},
      {"cast.u2(x0)", [](D a, D) { return std::trunc(std::min(std::max(a, 0.0), 3.0)); }},
      {"cast.i64(x0)", [](D a, D) { return std::trunc(a); }},
      {"cast.bool(floor(x0))", [&](D a, D) { return truth(std::floor(a) != 0); }},
      {"cast.f32(cast.f64(x0))", [](D a, D) { return a; }},
      {"add.f16(x0.f16,constant.f16(0.5))", [](D a, D) { return a + 0.5; }},
  };
  std::vector<float> a, b;
  for (int n = 0; n < 63; ++n) {
    a.push_back(static_cast<float>(n - 31) / 8);                      // -3.875 to 3.875, exact in f16 too
    b.push_back(static_cast<float>(n * 29 % 63 - 31) / 8 + 0.0625f);  // not 0
  }
  a[31] = 0.125f;
  for (const Case& item : cases) {
    SCOPED_TRACE(item.text);
    std::vector<double> expected;
    for (size_t n = 0; n < a.size(); ++n) expected.push_back(item.expected(a[n], b[n]));
    expression(item.text).input({9, 7}, a).input({9, 7}, b).expect({9, 7}, expected, 2e-5).expect_kernels({kCpu});
  }
  expression("cast.f16(x0)").input({1}, {0.1f}).expect({1}, {0.0999755859375}, 0).expect_kernels({kCpu});
  expression("cast.bf16(x0)").input({1}, {0.1f}).expect({1}, {0.10009765625}, 0).expect_kernels({kCpu});
}

TEST_F(PointwiseTest, Corners) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  expression("max(x0,x1)").input({2}, {nan, 1}).input({2}, {1, nan}).expect({2}, {nan, nan}).expect_kernels({kCpu});
  expression("min(x0,0)").input({3}, {nan, inf, -inf}).expect({3}, {nan, 0, -inf}).expect_kernels({kCpu});
  expression("cast.u8(x0)").input({3}, {nan, inf, -0.5f}).expect({3}, {0, 255, 0}).expect_kernels({kCpu});
  expression("select(x0,inf,-inf)").input({3}, {nan, 0, 1}).expect({3}, {inf, -inf, inf}).expect_kernels({kCpu});
  // log(1 + exp(x)) is infinite where exp is, but not in mish, whose tanh is 1 there.
  expression("mul(x0,tanh(log(add(1,exp(x0)))))")
      .input({4}, {-1, 1, 90, -inf})
      .expect({4}, {-0.30340147, 0.86509842, 90, nan}, 1e-5);
}

TEST_F(PointwiseTest, MixesOfShapes) {
  // Whole, channels, pixels, a single element; in the formats of images where they can be.
  const char text[] = "mul(add(mul(x0,x1),x2),div(1,add(1,exp(neg(x3)))))";
  const struct {
    Dims dims[4];
  } cases[] = {
      {{{2, 16, 5, 3}, {16, 1, 1}, {2, 16, 5, 3}, {}}},
      {{{2, 16, 5, 3}, {1, 16, 1, 1}, {1, 1, 5, 3}, {1, 1, 1, 1}}},
      {{{2, 10, 3, 3}, {2, 10, 3, 3}, {2, 10, 3, 3}, {1}}},
      {{{2, 10, 3, 3}, {2, 10, 1, 1}, {2, 1, 3, 3}, {1, 3}}},
      {{{1, 8, 40, 41}, {8, 1, 1}, {1, 8, 40, 41}, {40, 1}}},
      {{{1, 1, 4, 5}, {1, 1, 4, 5}, {1}, {1, 1, 4, 1}}},
      {{{3, 1, 4}, {2, 1}, {4}, {3, 2, 4}}},
      {{{70, 300}, {300}, {70, 1}, {70, 300}}},
      {{{20011}, {20011}, {1}, {}}},
  };
  for (const auto& item : cases) {
    for (const bool constant : {false, true}) {
      OpTester tester = expression(text);
      for (const Dims& dims : item.dims) tester.random_input(dims);
      if (constant) tester.constant();
      tester.expect_kernels({kCpu});
    }
  }
  OpTester many = expression("add(add(add(x0,x1),add(x2,x3)),add(add(x4,x5),add(x6,x7)))");
  for (int n = 0; n < 8; ++n) many.random_input(n % 2 == 0 ? Dims{2, 24, 3, 3} : Dims{24, 1, 1});
  many.expect_kernels({kCpu});
}

// Where kernels of GPUs are tested these are those of bf16; inputs and results are exact in it.
TEST_F(PointwiseTest, Bf16) {
  std::vector<float> a, b;
  std::vector<double> expected;
  for (int n = 0; n < 40; ++n) {
    a.push_back(static_cast<float>(n - 20) / 4);
    b.push_back(static_cast<float>(n % 4));
    expected.push_back(std::max(a.back() * b.back() + 1, 0.0f));
  }
  expression("max(add(mul(x0,x1),1),0)")
      .input({5, 8}, a)
      .declared_as(TN_BF16)
      .input({5, 8}, b)
      .declared_as(TN_BF16)
      .expect({5, 8}, expected, 0)
      .expect_kernels();
}

TEST_F(PointwiseTest, WhatIsWrongIsNamed) {
  expression("add(x0,y)").input({1}, {1}).expect_invalid({"expression, column 8", "expected a primitive", "'y)'"});
  expression("add(x0,x3)")
      .input({1}, {1})
      .input({1}, {1})
      .expect_invalid({"expected operands below x2", "found x3", "add(x0,x3)"});
  expression("cast.f8e5m2(x0)").input({1}, {1}).expect_invalid({"cast to a number", "cast.f8e5m2"});
  expression("x0").input<int32_t>({1}, {1}).expect_invalid({"expected f32, f16 or bf16", "i32"});
  expression("add(x0,x1)").input({2}, {1, 2}).input({3}, {1, 2, 3}).expect_invalid({"[2]", "[3]", "broadcast"});
  expression("add(x0,x1)").input({2}, {1, 2}).input<double>({2}, {1, 2}).expect_invalid({"expected dtype f32", "f64"});
}

}  // namespace
}  // namespace tenon::testing
