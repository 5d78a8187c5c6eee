// The plain f32 evaluator of expressions: one loop over a block per step, so that the compiler vectorises each.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "core/graph/convert.h"
#include "core/graph/expression.h"

namespace tenon {
namespace {

/// Floats per block. 32 steps of it take 32 KiB, which the first-level cache of every current processor holds.
constexpr std::int64_t kBlock = 256;
/// Expressions up to this length need no memory from the heap.
constexpr std::size_t kInlineSteps = 32;

template <class F>
void unary(const float* __restrict a, float* __restrict y, std::int64_t n, F f) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i]);
}

/// Not __restrict on the arguments, which may be one array.
template <class F>
void binary(const float* a, const float* b, float* __restrict y, std::int64_t n, F f) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}

float truth(bool value) { return value ? 1.0f : 0.0f; }

/// The largest float that is not above 2^bits - 1; the bound itself is not a float from 25 bits on.
float largest_below(int bits) {
  return bits <= 24 ? std::ldexp(1.0f, bits) - 1.0f : std::nextafter(std::ldexp(1.0f, bits), 0.0f);
}

void cast_to_integer(const float* a, float* y, std::int64_t n, int bits, bool is_signed) {
  const float high = largest_below(is_signed ? bits - 1 : bits);
  const float low = is_signed ? -std::ldexp(1.0f, bits - 1) : 0.0f;
  unary(a, y, n, [=](float x) {
    const float clamped = std::min(std::max(x, low), high);
    // "+ 0" turns the -0 of a truncated -0.3 into the integer's 0.
    return x != x ? 0.0f : std::trunc(clamped) + 0.0f;
  });
}

void cast(std::int32_t dtype, const float* a, float* y, std::int64_t n) {
  switch (dtype) {
    case TN_F16:
      return unary(a, y, n, [](float x) { return f16_to_f32(f32_to_f16(x)); });
    case TN_BF16:
      return unary(a, y, n, [](float x) { return bf16_to_f32(f32_to_bf16(x)); });
    case TN_BOOL:
      return unary(a, y, n, [](float x) { return truth(x != 0.0f); });
    case TN_U2:
      return cast_to_integer(a, y, n, 2, false);
    case TN_I2:
      return cast_to_integer(a, y, n, 2, true);
    case TN_U4:
      return cast_to_integer(a, y, n, 4, false);
    case TN_I4:
      return cast_to_integer(a, y, n, 4, true);
    case TN_U8:
      return cast_to_integer(a, y, n, 8, false);
    case TN_I8:
      return cast_to_integer(a, y, n, 8, true);
    case TN_U16:
      return cast_to_integer(a, y, n, 16, false);
    case TN_I16:
      return cast_to_integer(a, y, n, 16, true);
    case TN_U32:
      return cast_to_integer(a, y, n, 32, false);
    case TN_I32:
      return cast_to_integer(a, y, n, 32, true);
    case TN_U64:
      return cast_to_integer(a, y, n, 64, false);
    case TN_I64:
      return cast_to_integer(a, y, n, 64, true);
    default:
      std::copy_n(a, n, y);
  }
}

void run_step(const TnExprInstr& step, const float* a, const float* b, const float* c, float* y, std::int64_t n) {
  switch (step.primitive) {
    case TN_EX_ADD:
      return binary(a, b, y, n, [](float p, float q) { return p + q; });
    case TN_EX_SUB:
      return binary(a, b, y, n, [](float p, float q) { return p - q; });
    case TN_EX_MUL:
      return binary(a, b, y, n, [](float p, float q) { return p * q; });
    case TN_EX_DIV:
      return binary(a, b, y, n, [](float p, float q) { return p / q; });
    case TN_EX_MIN:
      return binary(a, b, y, n, [](float p, float q) { return q < p || q != q ? q : p; });
    case TN_EX_MAX:
      return binary(a, b, y, n, [](float p, float q) { return q > p || q != q ? q : p; });
    case TN_EX_NEG:
      return unary(a, y, n, [](float x) { return -x; });
    case TN_EX_ABS:
      return unary(a, y, n, [](float x) { return std::fabs(x); });
    case TN_EX_EXP:
      return unary(a, y, n, [](float x) { return std::exp(x); });
    case TN_EX_LOG:
      return unary(a, y, n, [](float x) { return std::log(x); });
    case TN_EX_TANH:
      return unary(a, y, n, [](float x) { return std::tanh(x); });
    case TN_EX_ERF:
      return unary(a, y, n, [](float x) { return std::erf(x); });
    case TN_EX_SQRT:
      return unary(a, y, n, [](float x) { return std::sqrt(x); });
    case TN_EX_RSQRT:
      return unary(a, y, n, [](float x) { return 1.0f / std::sqrt(x); });
    case TN_EX_POW:
      return binary(a, b, y, n, [](float p, float q) { return std::pow(p, q); });
    case TN_EX_SIN:
      return unary(a, y, n, [](float x) { return std::sin(x); });
    case TN_EX_COS:
      return unary(a, y, n, [](float x) { return std::cos(x); });
    case TN_EX_FLOOR:
      return unary(a, y, n, [](float x) { return std::floor(x); });
    case TN_EX_CEIL:
      return unary(a, y, n, [](float x) { return std::ceil(x); });
    case TN_EX_ROUND_EVEN:
      return unary(a, y, n, [](float x) { return std::nearbyint(x); });
    case TN_EX_SIGN:
      return unary(a, y, n, [](float x) { return x != x ? x : truth(x > 0.0f) - truth(x < 0.0f); });
    case TN_EX_MOD:
      return binary(a, b, y, n, [](float p, float q) { return std::fmod(p, q); });
    case TN_EX_AND:
      return binary(a, b, y, n, [](float p, float q) { return truth((p != 0.0f) & (q != 0.0f)); });
    case TN_EX_OR:
      return binary(a, b, y, n, [](float p, float q) { return truth((p != 0.0f) | (q != 0.0f)); });
    case TN_EX_XOR:
      return binary(a, b, y, n, [](float p, float q) { return truth((p != 0.0f) != (q != 0.0f)); });
    case TN_EX_NOT:
      return unary(a, y, n, [](float x) { return truth(x == 0.0f); });
    case TN_EX_LESS:
      return binary(a, b, y, n, [](float p, float q) { return truth(p < q); });
    case TN_EX_LESS_EQUAL:
      return binary(a, b, y, n, [](float p, float q) { return truth(p <= q); });
    case TN_EX_EQUAL:
      return binary(a, b, y, n, [](float p, float q) { return truth(p == q); });
    case TN_EX_SELECT:
      for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] != 0.0f ? b[i] : c[i];
      return;
    case TN_EX_CAST:
      return cast(step.dtype, a, y, n);
    default:
      std::fill_n(y, n, 0.0f);
  }
}

}  // namespace

void evaluate_f32(const Expression& expression, std::span<const float* const> operands, float* y, std::int64_t count) {
  const std::vector<TnExprInstr>& steps = expression.instrs();
  if (steps.empty()) {
    if (operands[0] != y) std::copy_n(operands[0], count, y);
    return;
  }
  std::array<float, kInlineSteps * kBlock> inline_blocks;
  std::array<const float*, kInlineSteps> inline_results;
  std::unique_ptr<float[]> more_blocks;
  std::unique_ptr<const float*[]> more_results;
  float* blocks = inline_blocks.data();
  const float** results = inline_results.data();
  if (steps.size() > kInlineSteps) {
    more_blocks = std::make_unique<float[]>(steps.size() * static_cast<std::size_t>(kBlock));
    more_results = std::make_unique<const float*[]>(steps.size());
    blocks = more_blocks.get();
    results = more_results.get();
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].primitive != TN_EX_CONSTANT) continue;
    float* block = blocks + i * static_cast<std::size_t>(kBlock);
    std::fill_n(block, std::min(kBlock, count), static_cast<float>(steps[i].value));
    results[i] = block;
  }
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const std::int64_t n = std::min(kBlock, count - start);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const TnExprInstr& step = steps[i];
      if (step.primitive == TN_EX_CONSTANT) continue;
      if (step.primitive == TN_EX_INPUT) {
        results[i] = operands[step.operand] + start;
        continue;
      }
      const int arity = primitive_arity(step.primitive);
      float* block = blocks + i * static_cast<std::size_t>(kBlock);
      run_step(step, results[step.a], arity > 1 ? results[step.b] : nullptr, arity > 2 ? results[step.c] : nullptr,
               block, n);
      results[i] = block;
    }
    // Only now, because y may be an operand that a later step still reads.
    std::copy_n(results[steps.size() - 1], n, y + start);
  }
}

}  // namespace tenon
