// tenon.relu/1 and the other unary activations.
#include "plugins/activation/activation.h"

#include <string>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/tolerance.h"

namespace tenon::plugins {

const std::array<ActivationOp, 10>& activation_ops() {
  static constexpr std::array<ActivationOp, 10> ops = {{
      {"linear", ActivationKind::kIdentity, 0, 0, nullptr, "The identity. y = x"},
      {"relu", ActivationKind::kRelu, 0, 0, nullptr, "Rectified linear unit. y = max(x, 0)"},
      {"relu6", ActivationKind::kClip, 0, 6, nullptr, "Relu with a ceiling. y = min(max(x, 0), 6)"},
      {"leaky_relu", ActivationKind::kLeaky, 0.01, 0, "0.01",
       "Relu with a slope below zero. y = x > 0 ? x : alpha * x. Darknet's leaky has alpha 0.1"},
      {"logistic", ActivationKind::kLogistic, 0, 0, nullptr, "The sigmoid. y = 1 / (1 + exp(-x))"},
      {"tanh", ActivationKind::kTanh, 0, 0, nullptr, "Hyperbolic tangent. y = tanh(x)"},
      {"elu", ActivationKind::kElu, 1, 0, "1",
       "Exponential linear unit. y = x > 0 ? x : alpha * (exp(x) - 1) (Clevert, Unterthiner, Hochreiter 2015)"},
      {"mish", ActivationKind::kMish, 0, 0, nullptr, "Mish. y = x * tanh(log(1 + exp(x))) (Misra 2019)"},
      {"swish", ActivationKind::kSwish, 0, 0, nullptr,
       "Swish, also called SiLU. y = x / (1 + exp(-x)) (Ramachandran, Zoph, Le 2017)"},
      {"hard_swish", ActivationKind::kHardSwish, 0, 0, nullptr,
       "Swish by pieces. y = x * min(max(x + 3, 0), 6) / 6 (Howard et al. 2019, MobileNetV3)"},
  }};
  return ops;
}

Activation activation_of(const ActivationOp& op, const Attrs& attrs) {
  return {op.kind, op.alpha_default ? attrs.f64("alpha") : op.alpha, op.beta};
}

namespace {

void activation_reference(const ActivationOp& op, const Reference& call) {
  const Activation activation = activation_of(op, call.attrs());
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    call.fill<T>(0, [&](const int64_t*, int64_t linear) {
      return static_cast<T>(apply_activation(activation, static_cast<double>(x[linear])));
    });
  });
}

Definitions activation_definitions() {
  Definitions all;
  for (const ActivationOp& entry : activation_ops()) {
    const ActivationOp* op = &entry;
    Op definition(std::string("tenon.") + op->name + "/1");
    definition.doc(op->doc).input("x", "any shape, floating").output("y", "as x").elementwise();
    if (op->alpha_default) definition.attr_f64("alpha", "slope below zero").default_value(op->alpha_default);
    definition
        .infer([](const Infer& question) {
          const Tensor x = question.input(0);
          if (!is_floating(x.dtype())) {
            throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
          }
          question.output(0, x.dtype(), x.dims());
        })
        .reference([op](const Reference& call) { activation_reference(*op, call); })
        .expression(
            [op](ExprBuilder& e, const Attrs& attrs) { emit_activation(e, activation_of(*op, attrs), e.input()); })
        .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); });
    all.add(definition);
  }
  all.add(activation_kernels());
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.activation", "1", "Apache-2.0", tenon::plugins::activation_definitions())
