/// The usual activations as expressions, both ways: emit_activation writes the canonical form, match_epilogue
/// recognises it in what a kernel is asked to apply before it stores its result.
#ifndef TENON_SDK_EXPRESSIONS_HPP
#define TENON_SDK_EXPRESSIONS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "expr_builder.hpp"

namespace tenon {
inline namespace sdk {

enum class ActivationKind {
  kIdentity,   // x
  kRelu,       // max(x, 0)
  kClip,       // min(max(x, alpha), beta)
  kLeaky,      // x > 0 ? x : alpha * x
  kLogistic,   // 1 / (1 + exp(-x))
  kTanh,       // tanh(x)
  kSwish,      // x / (1 + exp(-x))
  kElu,        // x > 0 ? x : alpha * (exp(x) - 1)
  kMish,       // x * tanh(log(1 + exp(x)))
  kHardSwish,  // x * min(max(x + 3, 0), 6) / 6
  kGelu,       // x / 2 * (1 + erf(x / sqrt(2)))
  kGeluTanh,   // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
};

struct Activation {
  ActivationKind kind = ActivationKind::kIdentity;
  double alpha = 0.0;
  double beta = 0.0;
};

/// Appends the canonical form of `activation` over value x and returns the result's number.
inline int32_t emit_activation(ExprBuilder& e, const Activation& activation, int32_t x) {
  switch (activation.kind) {
    case ActivationKind::kIdentity:
      return x;
    case ActivationKind::kRelu:
      return e.max(x, e.constant(0.0));
    case ActivationKind::kClip: {
      const int32_t low = e.max(x, e.constant(activation.alpha));
      return e.min(low, e.constant(activation.beta));
    }
    case ActivationKind::kLeaky: {
      const int32_t positive = e.less(e.constant(0.0), x);
      return e.select(positive, x, e.mul(x, e.constant(activation.alpha)));
    }
    case ActivationKind::kLogistic: {
      const int32_t one = e.constant(1.0);
      return e.div(one, e.add(one, e.exp(e.neg(x))));
    }
    case ActivationKind::kTanh:
      return e.tanh(x);
    case ActivationKind::kSwish:
      return e.div(x, e.add(e.constant(1.0), e.exp(e.neg(x))));
    case ActivationKind::kElu: {
      const int32_t positive = e.less(e.constant(0.0), x);
      const int32_t below = e.sub(e.exp(x), e.constant(1.0));
      return e.select(positive, x, e.mul(e.constant(activation.alpha), below));
    }
    case ActivationKind::kMish:
      return e.mul(x, e.tanh(e.log(e.add(e.constant(1.0), e.exp(x)))));
    case ActivationKind::kHardSwish: {
      const int32_t low = e.max(e.add(x, e.constant(3.0)), e.constant(0.0));
      const int32_t gate = e.min(low, e.constant(6.0));
      return e.div(e.mul(x, gate), e.constant(6.0));
    }
    case ActivationKind::kGelu: {
      const int32_t gate = e.add(e.constant(1.0), e.unary(TN_EX_ERF, e.mul(x, e.constant(0.70710678118654752))));
      return e.mul(e.mul(x, e.constant(0.5)), gate);
    }
    case ActivationKind::kGeluTanh: {
      const int32_t cube = e.mul(e.mul(x, x), e.mul(x, e.constant(0.044715)));
      const int32_t gate = e.add(e.constant(1.0), e.tanh(e.mul(e.add(x, cube), e.constant(0.79788456080286536))));
      return e.mul(e.mul(x, e.constant(0.5)), gate);
    }
  }
  return x;
}

/// Its value, in double.
inline double apply_activation(const Activation& activation, double x) {
  const double a = activation.alpha;
  switch (activation.kind) {
    case ActivationKind::kIdentity:
      return x;
    case ActivationKind::kRelu:
      return x < 0 ? 0.0 : x;
    case ActivationKind::kClip:
      return x < a ? a : x > activation.beta ? activation.beta : x;
    case ActivationKind::kLeaky:
      return x > 0 ? x : a * x;
    case ActivationKind::kLogistic:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::kTanh:
      return std::tanh(x);
    case ActivationKind::kSwish:
      return x / (1 + std::exp(-x));
    case ActivationKind::kElu:
      return x > 0 ? x : a * std::expm1(x);
    case ActivationKind::kMish:
      return x * std::tanh(x > 30 ? x : std::log1p(std::exp(x)));
    case ActivationKind::kHardSwish:
      return x * std::min(std::max(x + 3, 0.0), 6.0) / 6;
    case ActivationKind::kGelu: {  // gates of 0 give 0, the limit at -inf
      const double gate = 0.5 * std::erfc(-x * 0.70710678118654752);
      return gate == 0 ? 0.0 : x * gate;
    }
    case ActivationKind::kGeluTanh: {
      // (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), without its cancellation below 0
      const double gate = 1 / (1 + std::exp(-2 * 0.79788456080286536 * (x + 0.044715 * x * x * x)));
      return gate == 0 ? 0.0 : x * gate;
    }
  }
  return x;
}

/// One step of an epilogue, in the order in which they are applied to the result.
struct EpilogueStep {
  enum class Kind { kActivation, kAdd, kSub, kMul, kDiv } kind = Kind::kActivation;
  Activation activation;  ///< of kActivation
  uint32_t operand = 0;   ///< of the others: result op operand; a number of at least 1
};

/// Recognises chains of activations and of binary steps with one operand. Empty result: a plain store.
class EpilogueMatcher {
 public:
  /// Steps, or nothing if the expression has some other form. NULL is a plain store.
  static std::optional<std::vector<EpilogueStep>> match(const TnExpr* expr) {
    std::vector<EpilogueStep> steps;
    if (!expr || expr->num_instrs == 0) return steps;
    int32_t at = static_cast<int32_t>(expr->num_instrs) - 1;
    while (!is_operand(*expr, at, 0)) {
      EpilogueStep step;
      const int32_t inner = match_binary(*expr, at, &step);
      at = inner >= 0 ? inner : match_activation(*expr, at, &step);
      if (at < 0) return std::nullopt;
      steps.push_back(step);
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }
  /// The activation that instruction `at` is the result of, if it is one: the number of the value that it is applied
  /// to. -1: it is none of the canonical forms.
  static int32_t match_activation_at(const TnExpr& expr, int32_t at, Activation* activation) {
    EpilogueStep step;
    const int32_t x = match_activation(expr, at, &step);
    if (x >= 0) *activation = step.activation;
    return x;
  }

 private:
  /// Stand-ins in a pattern for the constants that differ from use to use.
  static constexpr double kAlpha = 1.0e300;
  static constexpr double kBeta = 2.0e300;
  struct Found {
    int32_t x = -1;
    double alpha = 0.0;
    double beta = 0.0;
  };

  static bool is_operand(const TnExpr& e, int32_t at, uint32_t operand) {
    return e.instrs[at].primitive == TN_EX_INPUT && e.instrs[at].operand == operand;
  }
  static int32_t argument(const TnExprInstr& instr, int n) { return n == 0 ? instr.a : n == 1 ? instr.b : instr.c; }

  /// Same value, whatever the numbering.
  static bool same(const TnExpr& e, int32_t p, int32_t q) {
    if (p == q) return true;
    const TnExprInstr& a = e.instrs[p];
    const TnExprInstr& b = e.instrs[q];
    if (a.primitive != b.primitive || a.dtype != b.dtype || expr_arity(a.primitive) < 0) return false;
    if (a.primitive == TN_EX_INPUT) return a.operand == b.operand;
    if (a.primitive == TN_EX_CONSTANT) return a.value == b.value;
    for (int n = 0; n < expr_arity(a.primitive); ++n) {
      if (!same(e, argument(a, n), argument(b, n))) return false;
    }
    return true;
  }
  /// Pattern node p fits node q; the pattern's INPUT takes any value, the same at each occurrence.
  static bool fits(const TnExpr& pattern, int32_t p, const TnExpr& e, int32_t q, Found* found) {
    const TnExprInstr& want = pattern.instrs[p];
    const TnExprInstr& have = e.instrs[q];
    if (want.primitive == TN_EX_INPUT) {
      if (found->x >= 0) return same(e, found->x, q);
      found->x = q;
      return true;
    }
    if (want.primitive != have.primitive || want.dtype != have.dtype) return false;
    if (want.primitive == TN_EX_CONSTANT) {
      if (want.value == kAlpha) return found->alpha = have.value, true;
      if (want.value == kBeta) return found->beta = have.value, true;
      return want.value == have.value;
    }
    for (int n = 0; n < expr_arity(want.primitive); ++n) {
      if (!fits(pattern, argument(want, n), e, argument(have, n), found)) return false;
    }
    return true;
  }
  static int32_t match_activation(const TnExpr& e, int32_t at, EpilogueStep* step) {
    for (ActivationKind kind :
         {ActivationKind::kRelu, ActivationKind::kClip, ActivationKind::kLeaky, ActivationKind::kLogistic,
          ActivationKind::kTanh, ActivationKind::kSwish, ActivationKind::kElu, ActivationKind::kMish,
          ActivationKind::kHardSwish, ActivationKind::kGelu, ActivationKind::kGeluTanh}) {
      const ExprText pattern([&](ExprBuilder& b) { emit_activation(b, {kind, kAlpha, kBeta}, b.input()); });
      const TnExpr p = pattern.expr();
      Found found;
      if (fits(p, static_cast<int32_t>(p.num_instrs) - 1, e, at, &found)) {
        step->kind = EpilogueStep::Kind::kActivation;
        step->activation = {kind, found.alpha, found.beta};
        return found.x;
      }
    }
    return -1;
  }
  /// x op operand or, where the op commutes, operand op x. The number of x; -1 if it is something else.
  static int32_t match_binary(const TnExpr& e, int32_t at, EpilogueStep* step) {
    const TnExprInstr& instr = e.instrs[at];
    switch (instr.primitive) {
      case TN_EX_ADD:
        step->kind = EpilogueStep::Kind::kAdd;
        break;
      case TN_EX_SUB:
        step->kind = EpilogueStep::Kind::kSub;
        break;
      case TN_EX_MUL:
        step->kind = EpilogueStep::Kind::kMul;
        break;
      case TN_EX_DIV:
        step->kind = EpilogueStep::Kind::kDiv;
        break;
      default:
        return -1;
    }
    const bool commutes = instr.primitive == TN_EX_ADD || instr.primitive == TN_EX_MUL;
    for (int side = 1; side >= (commutes ? 0 : 1); --side) {
      const TnExprInstr& other = e.instrs[argument(instr, side)];
      if (other.primitive == TN_EX_INPUT && other.operand > 0) {
        step->operand = other.operand;
        return argument(instr, 1 - side);
      }
    }
    return -1;
  }
};

/// The steps of an epilogue, or nothing if it has another form than chains of the above. NULL: no steps.
inline std::optional<std::vector<EpilogueStep>> match_epilogue(const TnExpr* expr) {
  return EpilogueMatcher::match(expr);
}

/// The epilogue as one activation; nothing if it is more than that.
inline std::optional<Activation> match_activation(const TnExpr* expr) {
  const auto steps = match_epilogue(expr);
  if (!steps || steps->size() > 1) return std::nullopt;
  if (steps->empty()) return Activation{};
  if (steps->front().kind != EpilogueStep::Kind::kActivation) return std::nullopt;
  return steps->front().activation;
}

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_EXPRESSIONS_HPP
