// tenon.pointwise/1: an expression of several operands, which graph passes make of chains of elementwise ops.
#include "plugins/pointwise/pointwise.h"

#include <algorithm>
#include <cmath>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/small_float.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

constexpr float truth(bool value) { return value ? 1.0f : 0.0f; }

float cast_to(int32_t dtype, float x) {
  if (dtype == TN_F32 || dtype == TN_F64) return x;
  if (dtype == TN_BOOL) return truth(x != 0.0f);
  if (dtype == TN_F16 || dtype == TN_BF16) return small_float_value(dtype, small_float_bits(dtype, x));
  const IntegerBounds bounds = integer_bounds(dtype);
  return std::isnan(x) ? 0.0f : std::trunc(std::min(std::max(x, bounds.low), bounds.high)) + 0.0f;
}

float evaluate(const TnExprInstr& step, float a, float b, float c) {
  switch (step.primitive) {
    case TN_EX_ADD:
      return a + b;
    case TN_EX_SUB:
      return a - b;
    case TN_EX_MUL:
      return a * b;
    case TN_EX_DIV:
      return a / b;
    case TN_EX_MIN:
      return b < a || std::isnan(b) ? b : a;
    case TN_EX_MAX:
      return b > a || std::isnan(b) ? b : a;
    case TN_EX_NEG:
      return -a;
    case TN_EX_ABS:
      return std::fabs(a);
    case TN_EX_EXP:
      return std::exp(a);
    case TN_EX_LOG:
      return std::log(a);
    case TN_EX_TANH:
      return std::tanh(a);
    case TN_EX_ERF:
      return std::erf(a);
    case TN_EX_SQRT:
      return std::sqrt(a);
    case TN_EX_RSQRT:
      return 1.0f / std::sqrt(a);
    case TN_EX_POW:
      return std::pow(a, b);
    case TN_EX_SIN:
      return std::sin(a);
    case TN_EX_COS:
      return std::cos(a);
    case TN_EX_FLOOR:
      return std::floor(a);
    case TN_EX_CEIL:
      return std::ceil(a);
    case TN_EX_ROUND_EVEN:
      return std::nearbyint(a);
    case TN_EX_SIGN:
      return std::isnan(a) ? a : truth(a > 0.0f) - truth(a < 0.0f);
    case TN_EX_MOD:
      return std::fmod(a, b);
    case TN_EX_AND:
      return truth(a != 0.0f && b != 0.0f);
    case TN_EX_OR:
      return truth(a != 0.0f || b != 0.0f);
    case TN_EX_XOR:
      return truth((a != 0.0f) != (b != 0.0f));
    case TN_EX_NOT:
      return truth(a == 0.0f);
    case TN_EX_LESS:
      return truth(a < b);
    case TN_EX_LESS_EQUAL:
      return truth(a <= b);
    case TN_EX_EQUAL:
      return truth(a == b);
    case TN_EX_SELECT:
      return a != 0.0f ? b : c;
    case TN_EX_CAST:
      return cast_to(step.dtype, a);
    default:
      throw Invalid(text("expression: primitive ", step.primitive, " is unknown"));
  }
}

void pointwise_infer(const Infer& question) {
  infer_broadcast(question);
  const int32_t dtype = question.input(0).dtype();
  if (dtype != TN_F32 && dtype != TN_F16 && dtype != TN_BF16) {
    throw Invalid(text("input x: expected f32, f16 or bf16, found ", dtype_name(dtype)));
  }
  for (const TnExprInstr& step : expression_of(question.attrs(), question.num_inputs())) {
    if (step.primitive == TN_EX_CAST) cast_to(step.dtype, 0.0f);  // throws for what it does not know
  }
}

void pointwise_reference(const Reference& call) {
  const std::vector<TnExprInstr> steps = expression_of(call.attrs(), call.num_inputs());
  const Dims dims = call.output(0).dims();
  struct Operand {
    const float* data;
    int64_t strides[TN_MAX_RANK];
  };
  std::vector<Operand> operands(static_cast<size_t>(call.num_inputs()));
  for (int n = 0; n < call.num_inputs(); ++n) {
    operands[static_cast<size_t>(n)].data = call.input(n).data<float>();
    broadcast_strides(call.input(n).dims(), dims, operands[static_cast<size_t>(n)].strides);
  }
  std::vector<float> values(steps.size());
  const auto value_at = [&](int32_t index) { return index < 0 ? 0.0f : values[static_cast<size_t>(index)]; };
  call.fill<float>(0, [&](const int64_t* index, int64_t) {
    for (size_t n = 0; n < steps.size(); ++n) {
      const TnExprInstr& step = steps[n];
      if (step.primitive == TN_EX_INPUT) {
        const Operand& operand = operands[step.operand];
        values[n] = operand.data[offset_of(index, operand.strides, dims.rank)];
      } else if (step.primitive == TN_EX_CONSTANT) {
        values[n] = static_cast<float>(step.value);
      } else {
        values[n] = evaluate(step, value_at(step.a), value_at(step.b), value_at(step.c));
      }
    }
    return values.back();
  });
}

// Every step rounds; four of them are what single ops are given.
TnTolerance pointwise_op_tolerance(const Attrs& attrs, int32_t dtype) {
  const auto steps = static_cast<double>(parse_expression(attrs.str("expression")).size());
  const TnTolerance one = pointwise_tolerance(dtype);
  const double factor = std::max(steps / 4, 1.0);
  return {one.absolute * factor, one.relative * factor};
}

Definitions pointwise_definitions() {
  Definitions all;
  all.add(op("tenon.pointwise/1")
              .doc("An expression, element by element, of operands with numpy's broadcasting, computed in f32")
              .attr_str("expression", "such as max(add(x0,x1),0) of the inputs x0, x1, ...: sdk/expression_text.hpp")
              .required()
              .input("x", "any shapes, one dtype: f32, f16 or bf16")
              .variadic()
              .output("y", "the shape that all broadcast to")
              .elementwise()
              .infer(pointwise_infer)
              .reference(pointwise_reference)
              .expression([](ExprBuilder& e, const Attrs& attrs) {
                for (const TnExprInstr& step : expression_of(attrs, e.num_inputs())) e.emit(step);
              })
              .tolerance(pointwise_op_tolerance));
  all.add(pointwise_kernels());
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.pointwise", "1", "Apache-2.0", tenon::plugins::pointwise_definitions())
