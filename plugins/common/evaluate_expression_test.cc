// ExprEvaluator against the host's evaluator, which the standard library vouches for, and against values by hand.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <tenon/sdk/evaluate_expression.hpp>
#include <vector>

#include "core/graph/expression.h"

namespace tenon {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TnExprInstr input(uint32_t operand) { return {TN_EX_INPUT, TN_F32, 0, 0, 0, operand, 0}; }
TnExprInstr constant(double value) { return {TN_EX_CONSTANT, TN_F32, 0, 0, 0, 0, value}; }
TnExprInstr op(int32_t primitive, int32_t a, int32_t b = 0, int32_t c = 0, int32_t dtype = TN_F32) {
  return {primitive, dtype, a, b, c, 0, 0};
}
ExprEvaluator evaluator(const std::vector<TnExprInstr>& steps, uint32_t operands = 1) {
  const TnExpr expr = {TN_HEADER(TnExpr), static_cast<uint32_t>(steps.size()), steps.data()};
  return {&expr, operands};
}
TnTensor tensor(const std::vector<float>& values) {
  TnTensor result{};
  result.dtype = TN_F32;
  result.data = const_cast<float*>(values.data());
  return result;
}
float cast(int32_t dtype, float x) {
  float y = -77;
  evaluator({input(0), op(TN_EX_CAST, 0, 0, 0, dtype)}).run(&x, nullptr, 0, 1, &y);
  return y;
}
std::string reason(const std::vector<TnExprInstr>& steps) {
  try {
    evaluator(steps);
  } catch (const Declined& declined) {
    return declined.what();
  }
  return "taken";
}

// Numbers of all sizes, with those between that have rules of their own.
std::vector<float> numbers(int count, unsigned seed) {
  const float special[] = {0.0f,   -0.0f,    1.0f,     -1.0f, 0.5f,   -2.5f,   kInf,
                           -kInf,  kNaN,     1e-42f,   3e38f, 7e4f,   6.1e-5f, -129.0f,
                           255.5f, 65519.0f, 65520.0f, 5e9f,  -3e10f, 2e19f,   1.5f * 0x1p-24f};
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> values;
  for (int n = 0; n < count; ++n) {
    values.push_back(random() % 3 == 0 ? special[random() % std::size(special)] : normal(random));
  }
  return values;
}

// Same bits, or NaN both.
void expect_as_host(const std::vector<TnExprInstr>& steps) {
  constexpr int kCount = 1000;  // blocks, and an incomplete one
  const std::vector<float> x = numbers(kCount, 1), p = numbers(kCount + 5, 2), q = numbers(kCount + 5, 3);
  const Expression expression(steps);
  ASSERT_TRUE(expression.verify(3).ok()) << expression.verify(3).message();
  const float* const operands[] = {x.data(), p.data() + 5, q.data() + 5};
  std::vector<float> expected(kCount);
  evaluate_f32(expression, operands, expected.data(), kCount);
  const TnTensor extra[] = {tensor(p), tensor(q)};
  std::vector<float> y = x;
  evaluator(steps, 3).run(y.data(), extra, 5, kCount, y.data());  // in place
  for (size_t n = 0; n < y.size(); ++n) {
    if (std::isnan(expected[n]) && std::isnan(y[n])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(y[n]), std::bit_cast<uint32_t>(expected[n]))
        << expression.text() << " of " << x[n] << ", " << p[n + 5] << ", " << q[n + 5] << ": found " << y[n]
        << ", expected " << expected[n];
  }
}

TEST(ExprEvaluator, EveryPrimitiveAsTheHost) {
  for (int32_t primitive = -1; primitive < 50; ++primitive) {
    ASSERT_EQ(expr_arity(primitive), primitive_arity(primitive)) << primitive;
    if (expr_arity(primitive) < 1 || primitive == TN_EX_CAST) continue;
    expect_as_host({input(0), input(1), input(2), op(primitive, 0, 1, 2)});
    expect_as_host({input(0), input(1), input(2), op(primitive, 1, 0, 0)});
  }
  for (const int32_t dtype : {TN_F32, TN_F64, TN_F16, TN_BF16, TN_BOOL, TN_U2, TN_I2, TN_U4, TN_I4, TN_U8, TN_I8,
                              TN_U16, TN_I16, TN_U32, TN_I32, TN_U64, TN_I64}) {
    expect_as_host({input(0), op(TN_EX_CAST, 0, 0, 0, dtype)});
  }
}

TEST(ExprEvaluator, LongExpressionsAsTheHost) {
  std::mt19937 random(9);
  for (int round = 0; round < 50; ++round) {
    std::vector<TnExprInstr> steps = {input(0), input(1), input(2), constant(0.75)};
    while (steps.size() < ExprEvaluator::kMostSteps) {
      const auto any = [&] { return static_cast<int32_t>(random() % steps.size()); };
      steps.push_back(
          op(TN_EX_ADD + static_cast<int32_t>(random() % (TN_EX_SELECT - TN_EX_ADD + 1)), any(), any(), any()));
    }
    expect_as_host(steps);
  }
}

TEST(ExprEvaluator, ValuesByHand) {
  // x / (1 + |x|) * p - 1
  const ExprEvaluator clip = evaluator({input(0), constant(1), op(TN_EX_ABS, 0), op(TN_EX_ADD, 1, 2),
                                        op(TN_EX_DIV, 0, 3), input(1), op(TN_EX_MUL, 4, 5), op(TN_EX_SUB, 6, 1)},
                                       2);
  const std::vector<float> x = {3, -1, 0}, p = {9, 9, 4, 8, 2};
  const TnTensor extra = tensor(p);
  std::vector<float> y(3);
  clip.run(x.data(), &extra, 2, 3, y.data());
  EXPECT_EQ(y, (std::vector<float>{2, -5, -1}));  // 3/4 * 4 - 1, -1/2 * 8 - 1, -1

  EXPECT_TRUE(ExprEvaluator(nullptr, 1).is_identity());
  ExprEvaluator().run(x.data(), nullptr, 0, 3, y.data());
  EXPECT_EQ(y, x);
}

TEST(ExprEvaluator, CastsByHand) {
  // IEEE 754 binary16: largest number 65504, half a step above it rounds to infinity; smallest one 2^-24; ties to even.
  EXPECT_EQ(cast(TN_F16, 65519), 65504);
  EXPECT_EQ(cast(TN_F16, -65520), -kInf);
  EXPECT_EQ(cast(TN_F16, 0x1p-25f), 0);
  EXPECT_EQ(cast(TN_F16, 1.5f * 0x1p-24f), 0x1p-23f);
  EXPECT_EQ(cast(TN_F16, 2049), 2048);
  EXPECT_EQ(cast(TN_F16, 2051), 2052);
  EXPECT_EQ(cast(TN_BF16, 257), 256);  // 8 bits of mantissa
  EXPECT_EQ(cast(TN_BF16, 259), 260);
  EXPECT_EQ(cast(TN_I8, 200.5f), 127);
  EXPECT_EQ(cast(TN_I8, -2.75f), -2);
  EXPECT_EQ(cast(TN_U4, -3), 0);
  EXPECT_EQ(cast(TN_U8, kNaN), 0);
  EXPECT_FALSE(std::signbit(cast(TN_I32, -0.3f)));
}

TEST(ExprEvaluator, DeclinesWithTheReason) {
  EXPECT_EQ(reason({input(0)}), "taken");
  EXPECT_EQ(reason({input(1)}), "step 0 of the expression reads operand 1 of 1");
  EXPECT_EQ(reason({input(0), op(77, 0)}), "step 1 of the expression is primitive 77, which is unknown");
  EXPECT_EQ(reason({input(0), op(TN_EX_ADD, 0, 1)}), "step 1 of the expression refers to step 1");
  EXPECT_EQ(reason({input(0), op(TN_EX_NEG, -1)}), "step 1 of the expression refers to step -1");
  EXPECT_EQ(reason({input(0), op(TN_EX_NEG, 0, 0, 0, TN_F64)}),
            "step 1 of the expression computes in f64; only f32 is evaluated");
  EXPECT_EQ(reason({input(0), op(TN_EX_CAST, 0, 0, 0, TN_F8E5M2)}), "step 1 of the expression is a cast to f8e5m2");
  EXPECT_EQ(reason(std::vector<TnExprInstr>(129, input(0))), "an expression of 129 steps; at most 128 are evaluated");
}

TEST(EpilogueEvaluator, OperandsMustBeAsTheOutput) {
  // One input, one extra operand, one output.
  const std::vector<TnExprInstr> steps = {input(0), input(1), op(TN_EX_ADD, 0, 1)};
  const TnExpr expr = {TN_HEADER(TnExpr), 3, steps.data()};
  const TnExpr* const epilogue = &expr;
  const auto make = [&](const Dims& operand, int32_t operand_dtype, int32_t output_dtype) -> std::string {
    const TnDims dims[] = {Dims{7}, operand, Dims{2, 3}};
    const int32_t dtypes[] = {TN_F32, operand_dtype, output_dtype};
    TnSite site{};
    site.struct_size = TN_HEADER(TnSite);
    site.num_inputs = site.num_extra = site.num_outputs = 1;
    site.opt_dims = dims;
    site.dtypes = dtypes;
    site.epilogues = &epilogue;
    try {
      return epilogue_evaluator(Site(nullptr, &site)).is_identity() ? "identity" : "taken";
    } catch (const Declined& declined) {
      return declined.what();
    }
  };
  EXPECT_EQ(make({2, 3}, TN_F32, TN_F32), "taken");
  EXPECT_EQ(make({3}, TN_F32, TN_F32), "operand 1 of the epilogue: expected f32 [2,3] as the output, found f32 [3]");
  EXPECT_EQ(make({2, 3}, TN_F16, TN_F32),
            "operand 1 of the epilogue: expected f32 [2,3] as the output, found f16 [2,3]");
  EXPECT_EQ(make({2, 3}, TN_F16, TN_F16), "the epilogue is evaluated in f32, the output is f16");
}

}  // namespace
}  // namespace tenon
