#include "core/graph/expression.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tenon/sdk/expression_text.hpp>

namespace tenon {
namespace {

void evaluate(const Expression& expression, const std::vector<const float*>& operands, float* y, std::int64_t count) {
  evaluate_f32(expression, operands, y, count);
}

TnExprInstr input(std::uint32_t operand) { return {TN_EX_INPUT, TN_F32, 0, 0, 0, operand, 0}; }
TnExprInstr constant(double value) { return {TN_EX_CONSTANT, TN_F32, 0, 0, 0, 0, value}; }
TnExprInstr op(std::int32_t primitive, std::int32_t a, std::int32_t b = 0, std::int32_t c = 0,
               std::int32_t dtype = TN_F32) {
  return {primitive, dtype, a, b, c, 0, 0};
}

Expression relu() { return Expression({input(0), constant(0), op(TN_EX_MAX, 0, 1)}); }
Expression leaky() { return Expression({input(0), constant(0.1), op(TN_EX_MUL, 0, 1), op(TN_EX_MAX, 0, 2)}); }

TEST(Expression, Text) {
  EXPECT_EQ(Expression().text(), "x0");
  EXPECT_EQ(leaky().text(), "max(x0,mul(x0,0.1))");
  EXPECT_EQ(Expression({input(0), op(TN_EX_EXP, 0), constant(1), op(TN_EX_ADD, 1, 2), op(TN_EX_DIV, 1, 3)}).text(),
            "t1=exp(x0);div(t1,add(t1,1))");
  EXPECT_EQ(Expression({input(1), op(TN_EX_CAST, 0, 0, 0, TN_I8), op(TN_EX_ADD, 1, 0, 0, TN_F16)}).text(),
            "add.f16(cast.i8(x1),x1)");
  // A step that nothing needs does not show.
  EXPECT_EQ(Expression({input(0), op(TN_EX_EXP, 0), op(TN_EX_NEG, 0)}), Expression({input(0), op(TN_EX_NEG, 0)}));
  // Text stays short although the tree behind it has 2^40 leaves.
  std::vector<TnExprInstr> steps = {input(0)};
  for (int i = 0; i < 40; ++i) steps.push_back(op(TN_EX_ADD, i, i));
  EXPECT_LT(Expression(steps).text().size(), 1000u);
}

/// What plugins read from the text has the same text.
void round_trip(const Expression& expression) {
  const std::string text = expression.text();
  EXPECT_EQ(Expression(sdk::parse_expression(text)).text(), text);
}

TEST(Expression, PluginsReadTheText) {
  round_trip(Expression());
  round_trip(leaky());
  round_trip(relu().then(leaky()).then(leaky()));
  round_trip(Expression({input(0), op(TN_EX_EXP, 0), constant(1), op(TN_EX_ADD, 1, 2), op(TN_EX_DIV, 1, 3)}));
  for (const double value : {0.1, -0.0, 1e-30, 3e38, 1.0 / 3, HUGE_VAL, -HUGE_VAL, double{NAN}, -double{NAN}}) {
    round_trip(Expression({constant(value)}));
    round_trip(Expression({{TN_EX_CONSTANT, TN_F64, 0, 0, 0, 0, value}, input(12), op(TN_EX_MUL, 0, 1)}));
  }
  for (std::int32_t primitive = TN_EX_ADD; primitive_arity(primitive) > 0; ++primitive) {
    for (const std::int32_t dtype : {TN_F32, TN_F16, TN_BF16, TN_I8, TN_BOOL, TN_U2}) {
      round_trip(Expression({{TN_EX_INPUT, dtype, 0, 0, 0, 0, 0},
                             input(1),
                             input(2),
                             op(primitive, 0, 1, 2, dtype),
                             op(TN_EX_SUB, 3, 3)}));
    }
  }
  // The plugins' table of primitives is this one.
  for (std::int32_t primitive = TN_EX_ADD; primitive <= TN_EX_CAST + 1; ++primitive) {
    const sdk::ExprPrimitive* known = sdk::find_primitive(primitive);
    ASSERT_EQ(known != nullptr, primitive_arity(primitive) >= 0);
    if (known == nullptr) continue;
    EXPECT_EQ(known->name, primitive_name(primitive));
    EXPECT_EQ(known->arity, primitive_arity(primitive));
  }
  // A text that is not canonical: its result is not the last step that it names.
  EXPECT_EQ(Expression(sdk::parse_expression("t1=exp(x0);t2=neg(x1);t1")).text(), "exp(x0)");
  EXPECT_EQ(Expression(sdk::parse_expression("t1=exp(x0);x0")).text(), "x0");
}

std::string parse_failure(const std::string& text) {
  try {
    sdk::parse_expression(text);
  } catch (const sdk::Invalid& failure) {
    return failure.what();
  }
  return "none";
}

TEST(Expression, BadTextNamesTheColumn) {
  EXPECT_EQ(parse_failure(""),
            "expression, column 1: expected a primitive, an operand (x0), a name or a number, "
            "found the end");
  EXPECT_EQ(parse_failure("add(x0,)"),
            "expression, column 8: expected a primitive, an operand (x0), a name or a "
            "number, found ')'");
  EXPECT_EQ(parse_failure("add(x0"), "expression, column 7: expected ',', found the end");
  EXPECT_EQ(parse_failure("neg(x0) "), "expression, column 8: expected the end, found ' '");
  EXPECT_EQ(parse_failure("neg(t1)"), "expression, column 5: expected a name that was given before, found 't1)'");
  EXPECT_EQ(parse_failure("t2=neg(x0);t2"), "expression, column 1: expected the name t1, found 't2=neg(x0);t'");
  EXPECT_EQ(parse_failure("t1=neg(x0)"), "expression, column 11: expected ';', found the end");
  EXPECT_EQ(parse_failure("cast(x0)"), "expression, column 5: expected '.' and a dtype, found '(x0)'");
  EXPECT_EQ(parse_failure("add.f99(x0,x1)"), "expression, column 5: expected a dtype, found 'f99(x0,x1)'");
  for (const char* word : {"frob(x0)", "x99999999999", "X0", "x", "t(x0)"}) {
    EXPECT_EQ(parse_failure(word).substr(0, 44), "expression, column 1: expected a primitive, ") << word;
  }
  EXPECT_EQ(parse_failure("add(1e999,x0)"), "expression, column 5: expected a number, found '1e999,x0)'");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "neg(";
  EXPECT_NE(parse_failure(deep).find("expected at most 256 levels of brackets"), std::string::npos);
  std::string wide = "t1=neg(x0);";
  for (int i = 2; i < 5000; ++i) wide += "t" + std::to_string(i) + "=neg(t" + std::to_string(i - 1) + ");";
  EXPECT_NE(parse_failure(wide + "x0").find("expected at most 4096 steps"), std::string::npos);
}

TEST(Expression, Verify) {
  EXPECT_TRUE(leaky().verify(1).ok());
  EXPECT_TRUE(Expression().verify(1).ok());
  EXPECT_FALSE(Expression().verify(0).ok());
  EXPECT_EQ(Expression({input(2)}).verify(2).message(), "expression: step 0 (input): operand 2 of 2");
  EXPECT_EQ(Expression({input(0), op(TN_EX_ADD, 0, 1)}).verify(1).message(),
            "expression: step 1 (add): argument b is step 1; expected an earlier step");
  EXPECT_EQ(Expression({op(TN_EX_NEG, -1)}).verify(1).message(),
            "expression: step 0 (neg): argument a is step -1; expected an earlier step");
  EXPECT_EQ(Expression({op(99, 0)}).verify(1).message(), "expression: step 0: primitive 99 is unknown");
  EXPECT_EQ(Expression({input(0), op(TN_EX_CAST, 0, 0, 0, TN_F8E5M2)}).verify(1).message(),
            "expression: step 1 (cast): a cast to f8e5m2 is not supported");
  EXPECT_FALSE(Expression({input(0), op(TN_EX_NEG, 0, 0, 0, 77)}).verify(1).ok());
}

TEST(Expression, Then) {
  EXPECT_EQ(relu().then(leaky()).text(), "t1=max(x0,0);max(t1,mul(t1,0.1))");
  EXPECT_EQ(Expression().then(relu()), relu());
  EXPECT_EQ(relu().then(Expression()), relu());
  EXPECT_EQ(relu().then(Expression({input(0), input(1), op(TN_EX_ADD, 0, 1)})).text(), "add(max(x0,0),x1)");
  // Outer returns its operand; the steps that it does not need must not become the result.
  EXPECT_EQ(relu().then(Expression({constant(5), input(0)})), relu());
  EXPECT_EQ(relu().then(Expression({constant(5)})).text(), "5");
  EXPECT_TRUE(relu().then(leaky()).verify(1).ok());
}

/// Evaluates over a longer array, so that several blocks and an incomplete one are covered.
void check(std::int32_t primitive, const std::function<float(float, float)>& expected, int arity,
           std::int32_t dtype = TN_F32, float low = -4, float high = 4) {
  constexpr int kCount = 1000;
  std::vector<float> a(kCount), b(kCount), y(kCount, -77);
  for (int i = 0; i < kCount; ++i) {
    a[i] = low + (high - low) * static_cast<float>(i) / (kCount - 1);
    b[i] = low + (high - low) * static_cast<float>((i * 37) % kCount) / (kCount - 1);
  }
  std::vector<TnExprInstr> steps = {input(0), input(1), op(primitive, 0, 1, 0, dtype)};
  if (arity == 1) steps = {input(0), op(primitive, 0, 0, 0, dtype)};
  const Expression expression(steps);
  ASSERT_TRUE(expression.verify(2).ok());
  evaluate(expression, {a.data(), b.data()}, y.data(), kCount);
  for (int i = 0; i < kCount; ++i) {
    const float want = expected(a[i], b[i]);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(y[i])) << primitive_name(primitive) << " at " << a[i];
    } else {
      ASSERT_FLOAT_EQ(y[i], want) << primitive_name(primitive) << " at " << a[i] << ", " << b[i];
    }
  }
}

TEST(Evaluate, EveryPrimitiveAgainstTheStandardLibrary) {
  using F = float;
  check(
      TN_EX_ADD, [](F a, F b) { return a + b; }, 2);
  check(
      TN_EX_SUB, [](F a, F b) { return a - b; }, 2);
  check(
      TN_EX_MUL, [](F a, F b) { return a * b; }, 2);
  check(
      TN_EX_DIV, [](F a, F b) { return a / b; }, 2);
  check(
      TN_EX_MIN, [](F a, F b) { return std::min(a, b); }, 2);
  check(
      TN_EX_MAX, [](F a, F b) { return std::max(a, b); }, 2);
  check(
      TN_EX_NEG, [](F a, F) { return -a; }, 1);
  check(
      TN_EX_ABS, [](F a, F) { return std::abs(a); }, 1);
  check(
      TN_EX_EXP, [](F a, F) { return static_cast<F>(std::exp(static_cast<double>(a))); }, 1);
  check(
      TN_EX_LOG, [](F a, F) { return std::log(a); }, 1);
  check(
      TN_EX_TANH, [](F a, F) { return static_cast<F>(std::tanh(static_cast<double>(a))); }, 1);
  check(
      TN_EX_ERF, [](F a, F) { return static_cast<F>(std::erf(static_cast<double>(a))); }, 1);
  check(
      TN_EX_SQRT, [](F a, F) { return std::sqrt(a); }, 1);
  check(
      TN_EX_RSQRT, [](F a, F) { return 1 / std::sqrt(a); }, 1);
  check(
      TN_EX_POW, [](F a, F b) { return std::pow(a, b); }, 2);
  check(
      TN_EX_SIN, [](F a, F) { return std::sin(a); }, 1);
  check(
      TN_EX_COS, [](F a, F) { return std::cos(a); }, 1);
  check(
      TN_EX_FLOOR, [](F a, F) { return std::floor(a); }, 1);
  check(
      TN_EX_CEIL, [](F a, F) { return std::ceil(a); }, 1);
  check(
      TN_EX_ROUND_EVEN, [](F a, F) { return a - std::remainder(a, 1.0f); }, 1);
  check(
      TN_EX_SIGN, [](F a, F) { return a > 0   ? 1.0f
                                      : a < 0 ? -1.0f
                                              : 0.0f; }, 1);
  check(
      TN_EX_MOD, [](F a, F b) { return std::fmod(a, b); }, 2);
  check(
      TN_EX_AND, [](F a, F b) { return a != 0 && b != 0 ? 1.0f : 0.0f; }, 2);
  check(
      TN_EX_OR, [](F a, F b) { return a != 0 || b != 0 ? 1.0f : 0.0f; }, 2);
  check(
      TN_EX_XOR, [](F a, F b) { return (a != 0) != (b != 0) ? 1.0f : 0.0f; }, 2);
  check(
      TN_EX_NOT, [](F a, F) { return a == 0 ? 1.0f : 0.0f; }, 1);
  check(
      TN_EX_LESS, [](F a, F b) { return a < b ? 1.0f : 0.0f; }, 2);
  check(
      TN_EX_LESS_EQUAL, [](F a, F b) { return a <= b ? 1.0f : 0.0f; }, 2);
  check(
      TN_EX_EQUAL, [](F a, F b) { return a == b ? 1.0f : 0.0f; }, 2);
  check(
      TN_EX_CAST, [](F a, F) { return std::trunc(a) + 0.0f; }, 1, TN_I32);
  check(
      TN_EX_CAST, [](F a, F) { return std::min(std::max(std::trunc(a), 0.0f), 255.0f); }, 1, TN_U8, -300, 300);
  check(
      TN_EX_CAST, [](F a, F) { return std::min(std::max(std::trunc(a), -128.0f), 127.0f); }, 1, TN_I8, -300, 300);
  check(
      TN_EX_CAST, [](F a, F) { return a != 0 ? 1.0f : 0.0f; }, 1, TN_BOOL);
  check(
      TN_EX_CAST, [](F a, F) { return a; }, 1, TN_F64);
}

TEST(Evaluate, Corners) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float huge = 1e30f;
  const float a[] = {nan, 1, 2.5f, 1e30f, 0.1f};
  const float b[] = {1, nan, 3.5f, -1e30f, 0};
  float y[5];
  evaluate(Expression({input(0), input(1), op(TN_EX_MAX, 0, 1)}), {a, b}, y, 5);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[3], huge);
  evaluate(Expression({input(0), input(1), constant(7), op(TN_EX_SELECT, 1, 0, 2)}), {a, b}, y, 5);
  EXPECT_EQ(y[2], 2.5f);
  EXPECT_EQ(y[4], 7);
  evaluate(Expression({input(0), op(TN_EX_CAST, 0, 0, 0, TN_I64)}), {a}, y, 5);
  EXPECT_EQ(y[0], 0);
  EXPECT_LE(y[3], 9223372036854775807.0f);
  EXPECT_LT(static_cast<double>(y[3]), 9223372036854775807.0);
  evaluate(Expression({input(0), op(TN_EX_CAST, 0, 0, 0, TN_F16)}), {a}, y, 5);
  EXPECT_EQ(y[4], 0.0999755859375f);  // 0x2E66
  evaluate(Expression({input(0), op(TN_EX_CAST, 0, 0, 0, TN_BF16)}), {a}, y, 5);
  EXPECT_EQ(y[4], 0.10009765625f);  // 0x3DCD
  evaluate(Expression({input(0), op(TN_EX_ROUND_EVEN, 0)}), {b}, y, 3);
  EXPECT_EQ(y[2], 4);
}

TEST(Evaluate, InPlaceAndLong) {
  std::vector<float> x(777);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 300;
  std::vector<float> same = x;
  evaluate(leaky(), {same.data()}, same.data(), 777);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_FLOAT_EQ(same[i], x[i] > 0 ? x[i] : x[i] * 0.1f);
  same = x;
  evaluate(Expression(), {x.data()}, same.data(), 777);
  EXPECT_EQ(same, x);
  std::vector<TnExprInstr> steps = {input(0), constant(1)};
  for (int i = 0; i < 60; ++i) steps.push_back(op(TN_EX_ADD, static_cast<int>(steps.size()) - (i == 0 ? 2 : 1), 1));
  evaluate(Expression(steps), {x.data()}, same.data(), 777);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(same[i], x[i] + 60);
  evaluate(relu(), {x.data()}, same.data(), 0);
}

}  // namespace
}  // namespace tenon
