// The ops of the family, for their definition and for every device's kernels.
#include "plugins/activation/activation.h"

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

}  // namespace tenon::plugins
