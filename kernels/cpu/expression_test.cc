#include "kernels/cpu/expression.h"

#include <functional>
#include <limits>

#include "kernels/cpu/cast.h"
#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

ExprArg operand(int n) { return {ExprArg::Source::kOperand, n, 0}; }
ExprArg constant(float value) { return {ExprArg::Source::kConstant, 0, value}; }

// Puts steps together.
class Builder {
 public:
  ExprArg step(ExprKind kind, ExprArg a, ExprArg b = {}, ExprArg c = {}) {
    ExprStep step;
    step.kind = kind;
    return add(step, a, b, c);
  }
  ExprArg unary(UnaryKind kind, ExprArg a, float alpha = 0, float beta = 0) {
    ExprStep step;
    step.unary = kind;
    step.alpha = alpha;
    step.beta = beta;
    return add(step, a, {}, {});
  }
  ExprArg binary(BinaryKind kind, ExprArg a, ExprArg b) {
    ExprStep step;
    step.kind = ExprKind::kBinary;
    step.binary = kind;
    return add(step, a, b, {});
  }
  ExprArg integer(ExprArg a, float low, float high) {
    ExprStep step;
    step.kind = ExprKind::kInteger;
    step.alpha = low;
    step.beta = high;
    return add(step, a, {}, {});
  }
  Expr finish(int num_operands) {
    expr_.num_operands = num_operands;
    finish_expr(&expr_);
    return expr_;
  }

 private:
  ExprArg add(ExprStep step, ExprArg a, ExprArg b, ExprArg c) {
    step.args[0] = a;
    step.args[1] = b;
    step.args[2] = c;
    expr_.steps[expr_.num_steps] = step;
    return {ExprArg::Source::kStep, expr_.num_steps++, 0};
  }
  Expr expr_;
};

using Dims = std::vector<int64_t>;
using Expected = std::function<double(const std::vector<double>&)>;

int64_t volume(const Dims& dims) {
  int64_t result = 1;
  for (const int64_t d : dims) result *= d;
  return result;
}

// Where an operand is read for output number n: numpy's rule, axis by axis.
int64_t read_at(const Dims& dims, const Dims& out, int64_t n) {
  int64_t offset = 0;
  int64_t step = 1;
  for (size_t i = 1; i <= out.size(); ++i) {
    const int64_t index = n % out[out.size() - i];
    n /= out[out.size() - i];
    if (i > dims.size()) continue;
    if (dims[dims.size() - i] != 1) offset += index * step;
    step *= dims[dims.size() - i];
  }
  return offset;
}

// With operands of the output's dims and the output in bf16: the same as in f32, of the same numbers, rounded at the
// end.
void check_bf16(const Expr& expr, const ExprShape& shape, const std::vector<Dims>& dims, const Dims& out,
                const std::vector<std::vector<float>>& data, Isa isa) {
  std::vector<std::vector<uint16_t>> halves(dims.size());
  std::vector<std::vector<float>> rounded = data;
  std::vector<const void*> narrow_pointers;
  std::vector<const float*> pointers;
  uint32_t narrow = 0;
  for (size_t k = 0; k < dims.size(); ++k) {
    const auto count = static_cast<int64_t>(data[k].size());
    halves[k].resize(data[k].size());
    if (dims[k] == out) {
      narrow |= 1u << k;
      cast(ElementType::kF32, ElementType::kBf16, count, data[k].data(), halves[k].data(), Parallel(), isa);
      cast(ElementType::kBf16, ElementType::kF32, count, halves[k].data(), rounded[k].data(), Parallel(), isa);
    }
    narrow_pointers.push_back(dims[k] == out ? static_cast<const void*>(halves[k].data()) : data[k].data());
    pointers.push_back(rounded[k].data());
  }
  const int64_t count = volume(out);
  std::vector<float> want(static_cast<size_t>(count));
  std::vector<uint16_t> want_bits(static_cast<size_t>(count));
  evaluate_expr(expr, shape, pointers.data(), want.data(), Parallel(), isa);
  cast(ElementType::kF32, ElementType::kBf16, count, want.data(), want_bits.data(), Parallel(), isa);
  for (const int threads : {1, 3}) {
    Buffer y(static_cast<size_t>(count) * sizeof(uint16_t));
    evaluate_expr_bf16(expr, shape, narrow_pointers.data(), narrow, y.data<uint16_t>(), make_parallel(threads), isa);
    ASSERT_TRUE(y.intact());
    ASSERT_EQ(std::memcmp(want_bits.data(), y.data<uint16_t>(), static_cast<size_t>(count) * sizeof(uint16_t)), 0)
        << isa_name(isa) << " " << threads;
  }
  if (dims[0] != out) return;
  std::vector<uint16_t> in_place = halves[0];
  narrow_pointers[0] = in_place.data();
  evaluate_expr_bf16(expr, shape, narrow_pointers.data(), narrow, in_place.data(), make_parallel(2), isa);
  ASSERT_EQ(in_place, want_bits) << "in place";
}

// Against `expected` in double, on every instruction set and with several threads, and in place where the first operand
// has the output's dims.
void check(const Expr& expr, const std::vector<Dims>& dims, const Dims& out, const Expected& expected, double low = -3,
           double high = 3, double tolerance = 2e-6) {
  std::vector<std::vector<float>> data;
  std::vector<const float*> pointers;
  std::vector<int> ranks;
  std::vector<const int64_t*> shapes;
  for (const Dims& one : dims) {
    std::vector<float> values(static_cast<size_t>(volume(one)));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto k = static_cast<double>((i * 37 + data.size() * 11) % 101) / 100;
      values[i] = static_cast<float>(low + (high - low) * k);
    }
    data.push_back(values);
    ranks.push_back(static_cast<int>(one.size()));
    shapes.push_back(one.data());
  }
  for (const auto& values : data) pointers.push_back(values.data());
  ExprShape shape;
  ASSERT_TRUE(expr_shape(static_cast<int>(dims.size()), ranks.data(), shapes.data(), &shape));
  const int64_t count = volume(out);
  std::vector<double> want;
  for (int64_t n = 0; n < count; ++n) {
    std::vector<double> x;
    for (size_t k = 0; k < dims.size(); ++k) {
      x.push_back(data[k][static_cast<size_t>(read_at(dims[k], out, n))]);
    }
    want.push_back(expected(x));
  }
  for (const Isa isa : available_isas()) {
    Buffer first(static_cast<size_t>(count) * sizeof(float));
    for (const int threads : {1, 2, 3}) {
      Buffer y(static_cast<size_t>(count) * sizeof(float));
      evaluate_expr(expr, shape, pointers.data(), y.data(), make_parallel(threads), isa);
      ASSERT_TRUE(y.intact());
      if (threads == 1) std::copy_n(y.data(), count, first.data());
      ASSERT_EQ(std::memcmp(first.data(), y.data(), static_cast<size_t>(count) * sizeof(float)), 0) << threads;
    }
    for (int64_t n = 0; n < count; ++n) {
      const double limit = tolerance * std::max(1.0, std::fabs(want[static_cast<size_t>(n)]));
      ASSERT_NEAR(first[n], want[static_cast<size_t>(n)], limit) << n << " " << isa_name(isa);
    }
    check_bf16(expr, shape, dims, out, data, isa);
    if (dims[0] != out) continue;
    std::vector<const float*> in_place = pointers;
    std::vector<float> y = data[0];
    in_place[0] = y.data();
    evaluate_expr(expr, shape, in_place.data(), y.data(), make_parallel(2), isa);
    ASSERT_EQ(std::memcmp(first.data(), y.data(), y.size() * sizeof(float)), 0) << "in place";
  }
}

// (x0 * x1 + x2) * logistic(x3) - 0.5, over operands of four shapes.
Expr gate() {
  Builder b;
  const ExprArg sum = b.binary(BinaryKind::kAdd, b.binary(BinaryKind::kMul, operand(0), operand(1)), operand(2));
  const ExprArg open = b.unary(UnaryKind::kLogistic, operand(3));
  b.binary(BinaryKind::kSub, b.binary(BinaryKind::kMul, sum, open), constant(0.5f));
  return b.finish(4);
}
double expected_gate(const std::vector<double>& x) { return (x[0] * x[1] + x[2]) / (1 + std::exp(-x[3])) - 0.5; }

TEST(Expression, EveryMixOfShapes) {
  struct Case {
    Dims out;
    std::vector<Dims> dims;
  };
  const Case cases[] = {
      {{2, 5, 3, 7}, {{2, 5, 3, 7}, {2, 5, 3, 7}, {2, 5, 3, 7}, {2, 5, 3, 7}}},
      {{40000}, {{40000}, {1}, {}, {40000}}},  // flat, with single elements, on several threads
      {{3, 4, 20, 20}, {{3, 4, 20, 20}, {4, 1, 1}, {1, 4, 1, 1}, {}}},   // channels of long rows
      {{3, 64, 7, 7}, {{3, 64, 7, 7}, {64, 1, 1}, {3, 64, 1, 1}, {1}}},  // channels of short rows
      {{9, 5, 80}, {{9, 5, 80}, {80}, {9, 1, 1}, {5, 80}}},              // rows of a length between, read in every way
      {{9, 5, 80}, {{9, 5, 80}, {9, 5, 1}, {9, 1, 80}, {5, 1}}},
      {{50, 33}, {{50, 33}, {33}, {50, 1}, {1, 1}}},                    // suffix and prefix, short rows
      {{50, 700}, {{50, 700}, {700}, {50, 1}, {50, 700}}},              // and long ones
      {{6, 1, 300}, {{300}, {6, 1, 1}, {1, 1, 300}, {6, 1, 300}}},      // no operand first that is whole
      {{4, 3, 5, 2}, {{4, 1, 5, 1}, {3, 1, 2}, {4, 3, 1, 1}, {5, 1}}},  // all of them repeated in part
      {{1}, {{1}, {1}, {}, {1, 1}}},
      {{3, 0, 4}, {{3, 0, 4}, {4}, {3, 1, 1}, {}}},
  };
  for (const Case& one : cases) {
    Dims out = one.out;
    if (volume(out) == 1) out = {1, 1};
    check(gate(), one.dims, out, expected_gate);
  }
  ExprShape shape;
  const int64_t two[] = {2}, three[] = {3};
  const int ranks[] = {1, 1};
  const int64_t* const dims[] = {two, three};
  EXPECT_FALSE(expr_shape(2, ranks, dims, &shape));
}

double truth(bool value) { return value ? 1 : 0; }

TEST(Expression, EveryKindWithEveryMixOfStrides) {
  struct Case {
    ExprKind kind;
    std::function<double(double, double)> expected;
  };
  const Case cases[] = {
      {ExprKind::kPow, [](double a, double b) { return std::pow(std::fabs(a), b); }},
      {ExprKind::kMod, [](double a, double b) { return std::fmod(a, b); }},
      {ExprKind::kAnd, [](double a, double b) { return truth(a != 0 && b != 0); }},
      {ExprKind::kOr, [](double a, double b) { return truth(a != 0 || b != 0); }},
      {ExprKind::kXor, [](double a, double b) { return truth((a != 0) != (b != 0)); }},
      {ExprKind::kLess, [](double a, double b) { return truth(a < b); }},
      {ExprKind::kLessEqual, [](double a, double b) { return truth(a <= b); }},
      {ExprKind::kEqual, [](double a, double b) { return truth(a == b); }},
  };
  const Dims whole = {5, 100}, one = {};
  for (const Case& item : cases) {
    for (const auto& [a, b] : {std::pair{whole, whole}, {whole, one}, {one, whole}, {one, one}}) {
      Builder builder;
      ExprArg first = operand(0);
      if (item.kind == ExprKind::kPow) first = builder.unary(UnaryKind::kAbs, first);
      builder.step(item.kind, first, operand(1));
      // Zeros and equal elements are among the integers.
      const double end = item.kind == ExprKind::kMod || item.kind == ExprKind::kPow ? 2.9 : 101 - 50;
      const double start = item.kind == ExprKind::kMod || item.kind == ExprKind::kPow ? -3 : -49;
      check(
          builder.finish(2), {a, b}, a.empty() ? b : a,
          [&](const std::vector<double>& x) { return item.expected(x[0], x[1]); }, start, end, 1e-5);
    }
  }
  for (int mask = 0; mask < 8; ++mask) {
    Builder builder;
    builder.step(ExprKind::kSelect, builder.step(ExprKind::kLess, operand(0), constant(0)), operand(1), operand(2));
    const std::vector<Dims> dims = {mask & 1 ? whole : one, mask & 2 ? whole : one, mask & 4 ? whole : one};
    check(builder.finish(3), dims, mask == 0 ? one : whole,
          [](const std::vector<double>& x) { return x[0] < 0 ? x[1] : x[2]; });
    Builder direct;  // a condition that is no step
    direct.step(ExprKind::kSelect, operand(0), operand(1), operand(2));
    check(direct.finish(3), dims, mask == 0 ? one : whole,
          [](const std::vector<double>& x) { return x[0] != 0 ? x[1] : x[2]; });
  }
  Builder integers;
  integers.integer(operand(0), -128, 127);
  check(
      integers.finish(1), {whole}, whole,
      [](const std::vector<double>& x) { return std::min(std::max(std::trunc(x[0]), -128.0), 127.0); }, -300, 300);
}

TEST(Expression, Corners) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const float x[] = {nan, inf, -inf, -0.25f, 0.1f, 3.5f};
  const auto run = [&](const std::function<void(Builder&)>& build, Isa isa) {
    Builder builder;
    build(builder);
    const Expr expr = builder.finish(1);
    const int rank = 1;
    const int64_t dims[] = {6};
    const int64_t* const shapes[] = {dims};
    ExprShape shape;
    EXPECT_TRUE(expr_shape(1, &rank, shapes, &shape));
    const float* const operands[] = {x};
    std::vector<float> y(6);
    evaluate_expr(expr, shape, operands, y.data(), Parallel(), isa);
    return y;
  };
  for (const Isa isa : available_isas()) {
    std::vector<float> y = run([](Builder& b) { b.integer(operand(0), -8, 7); }, isa);
    EXPECT_EQ(y, (std::vector<float>{0, 7, -8, 0, 0, 3}));
    EXPECT_FALSE(std::signbit(y[3]));
    y = run([](Builder& b) { b.step(ExprKind::kRoundF16, operand(0)); }, isa);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[4], 0.0999755859375f);  // 0x2E66
    y = run([](Builder& b) { b.step(ExprKind::kRoundBf16, operand(0)); }, isa);
    EXPECT_EQ(y[4], 0.10009765625f);  // 0x3DCD
    EXPECT_EQ(y[1], inf);
    y = run([](Builder& b) { b.step(ExprKind::kLessEqual, operand(0), operand(0)); }, isa);
    EXPECT_EQ(y, (std::vector<float>{0, 1, 1, 1, 1, 1}));
    y = run([](Builder& b) { b.step(ExprKind::kRoundF16, constant(0.1f)); }, isa);
    EXPECT_EQ(y[5], 0.0999755859375f);
  }
}

TEST(Expression, SlotsAreUsedAgainAndMayBeMany) {
  Builder chain;
  ExprArg last = operand(0);
  for (int n = 0; n < kExprMaxSteps; ++n) last = chain.binary(BinaryKind::kAdd, last, constant(1));
  EXPECT_EQ(chain.finish(1).num_slots, 1);
  check(chain.finish(1), {{3000}}, {3000}, [](const std::vector<double>& x) { return x[0] + kExprMaxSteps; });

  // 32 results that live at once, then their sum, in short rows with operands that are repeated.
  Builder wide;
  std::vector<ExprArg> parts;
  for (int n = 0; n < 32; ++n) {
    const BinaryKind kind = n % 2 == 0 ? BinaryKind::kMul : BinaryKind::kAdd;
    parts.push_back(wide.binary(kind, operand(n % kExprMaxOperands), constant(static_cast<float>(n))));
  }
  ExprArg sum = parts[0];
  for (int n = 1; n < 32; ++n) sum = wide.binary(BinaryKind::kAdd, sum, parts[static_cast<size_t>(n)]);
  const Expr expr = wide.finish(kExprMaxOperands);
  EXPECT_EQ(expr.num_steps, 63);
  EXPECT_EQ(expr.num_slots, 32);
  std::vector<Dims> dims;
  for (int n = 0; n < kExprMaxOperands; ++n) dims.push_back(n % 2 == 0 ? Dims{40, 1, 9} : Dims{1, 7, 1});
  check(expr, dims, {40, 7, 9}, [](const std::vector<double>& x) {
    double result = 0;
    for (int n = 0; n < 32; ++n) {
      const double v = x[static_cast<size_t>(n % kExprMaxOperands)];
      result += n % 2 == 0 ? v * n : v + n;
    }
    return result;
  });
}

}  // namespace
}  // namespace tenon::cpu
