/// ExprEvaluator: computes any pointwise expression in f32, so that a kernel can store through whatever epilogue it
/// gets.
///   tenon::kernel<Conv>(...).epilogue([](const tenon::Site& site) { tenon::epilogue_evaluator(site); })
///   configure:  epilogue_ = tenon::epilogue_evaluator(config.site()), num_inputs_ = config.site().num_inputs();
///   enqueue:    epilogue_.run(sums, inputs + num_inputs_, first, count, y + first);
#ifndef TENON_SDK_EVALUATE_EXPRESSION_HPP
#define TENON_SDK_EVALUATE_EXPRESSION_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "expr_builder.hpp"
#include "site.hpp"

namespace tenon {
inline namespace sdk {

/// Immutable after construction; run never allocates and may be called from several threads at once.
class ExprEvaluator {
 public:
  static constexpr size_t kMostSteps = 128;

  /// y = x.
  ExprEvaluator() = default;
  /// A copy of `expr`; NULL: y = x. Declined, with the reason, if it is longer than kMostSteps, has operands beyond
  /// num_operands or primitives that this header does not know, or computes in another dtype than f32.
  ExprEvaluator(const TnExpr* expr, uint32_t num_operands) {
    if (!expr) return;
    if (expr->num_instrs > kMostSteps) {
      throw Declined(text("an expression of ", expr->num_instrs, " steps; at most ", kMostSteps, " are evaluated"));
    }
    steps_.assign(expr->instrs, expr->instrs + expr->num_instrs);
    for (size_t n = 0; n < steps_.size(); ++n) check(n, num_operands);
  }

  bool is_identity() const { return steps_.empty(); }

  /// y[i] = expression of x[i] (operand 0) and of element first + i of extra[0], extra[1], ... (operands 1, 2, ...),
  /// for i in [0, count). y may be x. Comparisons and logic give 0 or 1 and take any value but 0 for true, min and max
  /// pass NaN on, mod is C's fmod, casts to integers truncate and saturate, casts to f16 and bf16 round.
  /// REQUIRES: f32 data that lie in memory alike.
  void run(const float* x, const TnTensor* extra, int64_t first, int64_t count, float* y) const {
    if (steps_.empty()) {
      if (x != y) std::copy_n(x, count, y);
      return;
    }
    float blocks[kMostSteps][kBlock];
    const float* results[kMostSteps] = {};
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int n = static_cast<int>(std::min<int64_t>(kBlock, count - begin));
      for (size_t s = 0; s < steps_.size(); ++s) {
        const TnExprInstr& step = steps_[s];
        if (step.primitive == TN_EX_INPUT) {
          results[s] =
              step.operand == 0 ? x + begin : static_cast<const float*>(extra[step.operand - 1].data) + first + begin;
          continue;
        }
        const int arity = expr_arity(step.primitive);
        run_step(step, arity > 0 ? results[step.a] : nullptr, arity > 1 ? results[step.b] : nullptr,
                 arity > 2 ? results[step.c] : nullptr, blocks[s], n);
        results[s] = blocks[s];
      }
      std::copy_n(results[steps_.size() - 1], n, y + begin);  // only now: y may be an operand of a later step
    }
  }

 private:
  static constexpr int kBlock = 64;  // of 128 steps: 32 KiB of stack

  void check(size_t n, uint32_t num_operands) const {
    const TnExprInstr& step = steps_[n];
    const int arity = expr_arity(step.primitive);
    const auto refuse = [&](const auto&... reason) {
      throw Declined(text("step ", n, " of the expression ", reason...));
    };
    if (arity < 0) refuse("is primitive ", step.primitive, ", which is unknown");
    const int32_t arguments[] = {step.a, step.b, step.c};
    for (int a = 0; a < arity; ++a) {
      if (arguments[a] < 0 || static_cast<size_t>(arguments[a]) >= n) refuse("refers to step ", arguments[a]);
    }
    if (step.primitive == TN_EX_INPUT && step.operand >= num_operands) {
      refuse("reads operand ", step.operand, " of ", num_operands);
    }
    if (step.primitive == TN_EX_CAST) {
      const bool float_type = step.dtype == TN_F32 || step.dtype == TN_F64 || step.dtype == TN_F16 ||
                              step.dtype == TN_BF16 || step.dtype == TN_BOOL;
      if (!float_type && !integer_range(step.dtype).bits) refuse("is a cast to ", dtype_name(step.dtype));
    } else if (step.dtype != TN_F32 && step.dtype != TN_DTYPE_NONE) {
      refuse("computes in ", dtype_name(step.dtype), "; only f32 is evaluated");
    }
  }

  template <class F>
  static void unary(const float* a, float* y, int n, F f) {
    for (int i = 0; i < n; ++i) y[i] = f(a[i]);
  }
  template <class F>
  static void binary(const float* a, const float* b, float* y, int n, F f) {
    for (int i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  }
  static float truth(bool value) { return value ? 1.0f : 0.0f; }

  struct IntegerRange {
    int bits = 0;  // 0: no integer type
    bool is_signed = false;
  };
  static IntegerRange integer_range(int32_t dtype) {
    switch (dtype) {
      case TN_U2:
        return {2, false};
      case TN_I2:
        return {2, true};
      case TN_U4:
        return {4, false};
      case TN_I4:
        return {4, true};
      case TN_U8:
      case TN_U16:
      case TN_U32:
      case TN_U64:
        return {8 * dtype_size(dtype), false};
      case TN_I8:
      case TN_I16:
      case TN_I32:
      case TN_I64:
        return {8 * dtype_size(dtype), true};
      default:
        return {};
    }
  }
  static void cast_to_integer(const float* a, float* y, int n, IntegerRange range) {
    const int bits = range.is_signed ? range.bits - 1 : range.bits;
    const float end = std::ldexp(1.0f, bits);
    const float high = bits <= 24 ? end - 1.0f : std::nextafter(end, 0.0f);  // 2^bits - 1 or the float below it
    const float low = range.is_signed ? -end : 0.0f;
    unary(a, y, n, [=](float x) {
      return std::isnan(x) ? 0.0f : std::trunc(std::min(std::max(x, low), high)) + 0.0f;  // + 0: no -0 from -0.3
    });
  }
  /// Drops `bits` low bits of the mantissa, to the nearest even.
  static float round_mantissa(float x, int bits) {
    uint32_t pattern;
    std::memcpy(&pattern, &x, sizeof pattern);
    pattern += ((uint32_t{1} << (bits - 1)) - 1) + ((pattern >> bits) & 1);
    pattern &= ~uint32_t{0} << bits;
    std::memcpy(&x, &pattern, sizeof x);
    return x;
  }
  static float round_to_bf16(float x) { return std::isfinite(x) ? round_mantissa(x, 16) : x; }
  static float round_to_f16(float x) {
    if (!std::isfinite(x)) return x;
    const float size = std::fabs(x);
    if (size < std::ldexp(1.0f, -14)) {  // subnormal: multiples of 2^-24, which is the last place of floats around 0.75
      return std::copysign((size + 0.75f) - 0.75f, x);
    }
    const float rounded = round_mantissa(size, 13);
    return std::copysign(rounded < 65536.0f ? rounded : HUGE_VALF, x);
  }

  static void cast(int32_t dtype, const float* a, float* y, int n) {
    if (dtype == TN_F16) return unary(a, y, n, round_to_f16);
    if (dtype == TN_BF16) return unary(a, y, n, round_to_bf16);
    if (dtype == TN_BOOL) return unary(a, y, n, [](float x) { return truth(x != 0.0f); });
    const IntegerRange range = integer_range(dtype);
    if (range.bits) return cast_to_integer(a, y, n, range);
    std::copy_n(a, n, y);
  }

  static void run_step(const TnExprInstr& step, const float* a, const float* b, const float* c, float* y, int n) {
    switch (step.primitive) {
      case TN_EX_CONSTANT:
        std::fill_n(y, n, static_cast<float>(step.value));
        return;
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
        return unary(a, y, n, [](float x) { return std::isnan(x) ? x : truth(x > 0.0f) - truth(x < 0.0f); });
      case TN_EX_MOD:
        return binary(a, b, y, n, [](float p, float q) { return std::fmod(p, q); });
      case TN_EX_AND:
        return binary(a, b, y, n, [](float p, float q) { return truth(p != 0.0f && q != 0.0f); });
      case TN_EX_OR:
        return binary(a, b, y, n, [](float p, float q) { return truth(p != 0.0f || q != 0.0f); });
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
        for (int i = 0; i < n; ++i) y[i] = a[i] != 0.0f ? b[i] : c[i];
        return;
      case TN_EX_CAST:
        return cast(step.dtype, a, y, n);
      default:  // check lets no other through
        return;
    }
  }

  std::vector<TnExprInstr> steps_;
};

/// The epilogue of an output, with the site's extra operands. Declined where the output is not f32, an operand is not
/// of the output's dtype and dims, or ExprEvaluator declines.
inline ExprEvaluator epilogue_evaluator(const Site& site, int output = 0) {
  if (site.output_dtype(output) != TN_F32) {
    throw Declined(text("the epilogue is evaluated in f32, the output is ", dtype_name(site.output_dtype(output))));
  }
  for (int n = 0; n < site.num_extra(); ++n) {
    if (site.extra_dtype(n) == TN_F32 && site.extra_dims(n) == site.output_dims(output)) continue;
    throw Declined(text("operand ", n + 1, " of the epilogue: expected f32 ", to_text(site.output_dims(output)),
                        " as the output, found ", dtype_name(site.extra_dtype(n)), " ", to_text(site.extra_dims(n))));
  }
  return ExprEvaluator(site.epilogue(output), 1 + static_cast<uint32_t>(site.num_extra()));
}

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_EVALUATE_EXPRESSION_HPP
