// tenon.pointwise.blocked.f32 and .bf16 on kernels/cpu.
#include <memory>
#include <optional>

#include "kernels/cpu/expression.h"
#include "plugins/common/activation_kind.h"
#include "plugins/common/bf16.h"
#include "plugins/common/layout.h"
#include "plugins/common/parallel.h"
#include "plugins/pointwise/pointwise.h"

namespace tenon::plugins {
namespace {

using cpu::BinaryKind;
using cpu::ExprArg;
using cpu::ExprKind;
using cpu::UnaryKind;

// From steps of the ABI to those of the kernel, where usual activations are one step.
class Translator {
 public:
  explicit Translator(const std::vector<TnExprInstr>& steps) : steps_(steps), values_(steps.size()) {}

  // Declined for what the kernel cannot do.
  cpu::Expr translate(int num_operands) {
    if (num_operands > cpu::kExprMaxOperands) {
      throw Declined(text("it takes at most ", cpu::kExprMaxOperands, " operands, found ", num_operands));
    }
    expr_.num_operands = num_operands;
    const ExprArg result = value(static_cast<int32_t>(steps_.size()) - 1);
    const bool last = result.source == ExprArg::Source::kStep && result.index == expr_.num_steps - 1;
    if (!last) binary(BinaryKind::kMul, result, constant(1.0f));
    cpu::finish_expr(&expr_);
    return expr_;
  }

 private:
  static ExprArg constant(float number) { return {ExprArg::Source::kConstant, 0, number}; }
  ExprArg add(const cpu::ExprStep& step) {
    if (expr_.num_steps == cpu::kExprMaxSteps) throw Declined(text("it takes at most ", cpu::kExprMaxSteps, " steps"));
    expr_.steps[expr_.num_steps] = step;
    return {ExprArg::Source::kStep, expr_.num_steps++, 0};
  }
  ExprArg unary(UnaryKind kind, ExprArg a, double alpha = 0.0, double beta = 0.0) {
    cpu::ExprStep step;
    step.unary = kind;
    step.alpha = static_cast<float>(alpha);
    step.beta = static_cast<float>(beta);
    step.args[0] = a;
    return add(step);
  }
  ExprArg binary(BinaryKind kind, ExprArg a, ExprArg b) {
    cpu::ExprStep step;
    step.kind = ExprKind::kBinary;
    step.binary = kind;
    step.args[0] = a;
    step.args[1] = b;
    return add(step);
  }
  ExprArg other(ExprKind kind, ExprArg a, ExprArg b = {}, ExprArg c = {}, IntegerBounds bounds = {}) {
    cpu::ExprStep step;
    step.kind = kind;
    step.alpha = bounds.low;
    step.beta = bounds.high;
    step.args[0] = a;
    step.args[1] = b;
    step.args[2] = c;
    return add(step);
  }

  ExprArg value(int32_t at) {
    std::optional<ExprArg>& known = values_[static_cast<size_t>(at)];
    if (!known) known = compute(at);
    return *known;
  }

  ExprArg compute(int32_t at) {
    const TnExprInstr& step = steps_[static_cast<size_t>(at)];
    if (step.primitive == TN_EX_INPUT) return {ExprArg::Source::kOperand, static_cast<int>(step.operand), 0};
    if (step.primitive == TN_EX_CONSTANT) return constant(static_cast<float>(step.value));
    const TnExpr all = {TN_HEADER(TnExpr), static_cast<uint32_t>(steps_.size()), steps_.data()};
    Activation activation;
    const int32_t x = EpilogueMatcher::match_activation_at(all, at, &activation);
    if (x >= 0) return unary(unary_kind(activation.kind), value(x), activation.alpha, activation.beta);
    const int arity = find_primitive(step.primitive)->arity;
    const ExprArg a = value(step.a);
    const ExprArg b = arity > 1 ? value(step.b) : ExprArg{};
    const ExprArg c = arity > 2 ? value(step.c) : ExprArg{};
    switch (step.primitive) {
      case TN_EX_ADD:
        return binary(BinaryKind::kAdd, a, b);
      case TN_EX_SUB:
        return binary(BinaryKind::kSub, a, b);
      case TN_EX_MUL:
        return binary(BinaryKind::kMul, a, b);
      case TN_EX_DIV:
        return binary(BinaryKind::kDiv, a, b);
      case TN_EX_MIN:
        return binary(BinaryKind::kMin, a, b);
      case TN_EX_MAX:
        return binary(BinaryKind::kMax, a, b);
      case TN_EX_NEG:
        return unary(UnaryKind::kNeg, a);
      case TN_EX_ABS:
        return unary(UnaryKind::kAbs, a);
      case TN_EX_EXP:
        return unary(UnaryKind::kExp, a);
      case TN_EX_LOG:
        return unary(UnaryKind::kLog, a);
      case TN_EX_TANH:
        return unary(UnaryKind::kTanh, a);
      case TN_EX_ERF:
        return unary(UnaryKind::kErf, a);
      case TN_EX_SQRT:
        return unary(UnaryKind::kSqrt, a);
      case TN_EX_RSQRT:
        return unary(UnaryKind::kReciprocal, unary(UnaryKind::kSqrt, a));
      case TN_EX_POW:
        return other(ExprKind::kPow, a, b);
      case TN_EX_SIN:
        return unary(UnaryKind::kSin, a);
      case TN_EX_COS:
        return unary(UnaryKind::kCos, a);
      case TN_EX_FLOOR:
        return unary(UnaryKind::kFloor, a);
      case TN_EX_CEIL:
        return unary(UnaryKind::kCeil, a);
      case TN_EX_ROUND_EVEN:
        return unary(UnaryKind::kRoundEven, a);
      case TN_EX_SIGN:
        return unary(UnaryKind::kSign, a);
      case TN_EX_MOD:
        return other(ExprKind::kMod, a, b);
      case TN_EX_AND:
        return other(ExprKind::kAnd, a, b);
      case TN_EX_OR:
        return other(ExprKind::kOr, a, b);
      case TN_EX_XOR:
        return other(ExprKind::kXor, a, b);
      case TN_EX_NOT:
        return other(ExprKind::kEqual, a, constant(0.0f));
      case TN_EX_LESS:
        return other(ExprKind::kLess, a, b);
      case TN_EX_LESS_EQUAL:
        return other(ExprKind::kLessEqual, a, b);
      case TN_EX_EQUAL:
        return other(ExprKind::kEqual, a, b);
      case TN_EX_SELECT:
        return other(ExprKind::kSelect, a, b, c);
      default:
        return cast(step.dtype, a);
    }
  }

  ExprArg cast(int32_t dtype, ExprArg a) {
    if (dtype == TN_F32 || dtype == TN_F64) return a;
    if (dtype == TN_F16) return other(ExprKind::kRoundF16, a);
    if (dtype == TN_BF16) return other(ExprKind::kRoundBf16, a);
    if (dtype == TN_BOOL) return other(ExprKind::kEqual, other(ExprKind::kEqual, a, constant(0)), constant(0));
    return other(ExprKind::kInteger, a, {}, {}, integer_bounds(dtype));
  }

  const std::vector<TnExprInstr>& steps_;
  std::vector<std::optional<ExprArg>> values_;
  cpu::Expr expr_;
};

cpu::Expr expr_of(const Site& site) {
  const std::vector<TnExprInstr> steps = expression_of(site.attrs(), site.num_inputs());
  return Translator(steps).translate(site.num_inputs());
}

class PointwiseKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    expr_ = expr_of(config.site());
    format_ = config.combo().output(0).format;
    bf16_ = config.combo().output(0).dtype == TN_BF16;
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    Dims dims[cpu::kExprMaxOperands];
    int ranks[cpu::kExprMaxOperands];
    const int64_t* extents[cpu::kExprMaxOperands];
    const void* data[cpu::kExprMaxOperands];
    uint32_t narrow = 0;
    for (int n = 0; n < expr_.num_operands; ++n) {
      dims[n] = operand_dims(format_, inputs[n].dims);
      ranks[n] = dims[n].rank;
      extents[n] = dims[n].d;
      data[n] = inputs[n].data;
      if (inputs[n].dtype == TN_BF16) narrow |= 1u << n;
    }
    cpu::ExprShape shape;
    if (!cpu::expr_shape(expr_.num_operands, ranks, extents, &shape)) {
      throw Invalid(text("the shapes of the inputs do not broadcast to ", to_text(outputs[0].dims)));
    }
    if (bf16_) {
      auto* y = static_cast<uint16_t*>(outputs[0].data);
      cpu::evaluate_expr_bf16(expr_, shape, data, narrow, y, to_parallel(exec), cpu::detect_isa());
      zero_filling(format_, outputs[0].dims, y);
    } else {
      auto* y = static_cast<float*>(outputs[0].data);
      const float* wide[cpu::kExprMaxOperands];
      for (int n = 0; n < expr_.num_operands; ++n) wide[n] = static_cast<const float*>(data[n]);
      cpu::evaluate_expr(expr_, shape, wide, y, to_parallel(exec), cpu::detect_isa());
      zero_filling(format_, outputs[0].dims, y);
    }
  }

 private:
  cpu::Expr expr_;
  TnFormat format_ = row_format();
  bool bf16_ = false;
};

}  // namespace

Definitions pointwise_kernels() {
  Definitions all;
  for (const int32_t dtype : {TN_F32, TN_BF16}) {
    all.add(kernel<PointwiseKernel>("tenon.pointwise/1", std::string("tenon.pointwise.blocked.") + dtype_name(dtype))
                .supports([dtype](const Site& site) {
                  if (site.output_dtype(0) != TN_F32) throw Declined("it computes f32 alone");
                  if (dtype == TN_BF16) bf16_supports(site);
                  expr_of(site);
                })
                .more_combos([dtype](const Site& site, Combos& combos) {
                  add_pointwise_combos(site, dtype, image_ports(dtype), combos);
                })
                .deterministic());
  }
  return all;
}

}  // namespace tenon::plugins
