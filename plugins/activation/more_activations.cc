// hard_sigmoid, softplus, gelu, selu and others, whose only fused form is their expression.
#include <algorithm>

#include "plugins/activation/activation.h"
#include "plugins/common/unary.h"

namespace tenon::plugins {
namespace {

using cpu::UnaryKind;
using Params = UnaryParams;
using E = ExprBuilder;

constexpr Activation kGelu = {ActivationKind::kGelu, 0, 0}, kGeluTanh = {ActivationKind::kGeluTanh, 0, 0};

double elu(double x, double alpha) { return x > 0 ? x : alpha * std::expm1(x); }
double softsign(double x) { return std::isinf(x) ? std::copysign(1.0, x) : x / (1 + std::fabs(x)); }
double shrink(double x, Params p) { return x < -p.alpha ? x + p.beta : x > p.alpha ? x - p.beta : 0.0; }

int32_t emit_hard_sigmoid(E& e, int32_t x, Params p) {
  const int32_t line = e.add(e.mul(x, e.constant(p.alpha)), e.constant(p.beta));
  return e.min(e.max(line, e.constant(0.0)), e.constant(1.0));
}
int32_t emit_softplus(E& e, int32_t x, Params) {
  // max(x, 0) + log(1 + exp(-|x|)), which does not overflow
  const int32_t rest = e.log(e.add(e.constant(1.0), e.exp(e.neg(e.unary(TN_EX_ABS, x)))));
  return e.add(e.max(x, e.constant(0.0)), rest);
}
int32_t emit_softsign(E& e, int32_t x, Params) { return e.div(x, e.add(e.constant(1.0), e.unary(TN_EX_ABS, x))); }
int32_t emit_selu(E& e, int32_t x, Params p) {
  const int32_t below = e.mul(e.constant(p.alpha), e.sub(e.exp(x), e.constant(1.0)));
  return e.mul(e.constant(p.beta), e.select(e.less(e.constant(0.0), x), x, below));
}
int32_t emit_celu(E& e, int32_t x, Params p) {
  const int32_t below = e.sub(e.exp(e.div(x, e.constant(p.alpha))), e.constant(1.0));
  return e.select(e.less(e.constant(0.0), x), x, e.mul(e.constant(p.alpha), below));
}
int32_t emit_thresholded_relu(E& e, int32_t x, Params p) {
  return e.select(e.less(e.constant(p.alpha), x), x, e.constant(0.0));
}
int32_t emit_shrink(E& e, int32_t x, Params p) {
  const int32_t above = e.select(e.less(e.constant(p.alpha), x), e.sub(x, e.constant(p.beta)), e.constant(0.0));
  return e.select(e.less(x, e.constant(-p.alpha)), e.add(x, e.constant(p.beta)), above);
}

const UnaryOp kOps[] = {
    {"hard_sigmoid",
     "The sigmoid by pieces. y = min(max(alpha * x + beta, 0), 1)",
     [](double x, Params p) { return x != x ? x : std::min(std::max(p.alpha * x + p.beta, 0.0), 1.0); },
     emit_hard_sigmoid,
     UnaryKind::kHardSigmoid,
     nullptr,
     nullptr,
     {"alpha", "0.2", "slope"},
     {"beta", "0.5", "value at 0"}},
    {"softplus", "Smooth relu. y = log(1 + exp(x)) (Dugas et al. 2000)",
     [](double x, Params) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }, emit_softplus,
     UnaryKind::kSoftplus},
    {"softsign", "y = x / (1 + |x|)", [](double x, Params) { return softsign(x); }, emit_softsign,
     UnaryKind::kSoftsign},
    {"selu",
     "Scaled elu. y = gamma * (x > 0 ? x : alpha * (exp(x) - 1)) (Klambauer et al. 2017)",
     [](double x, Params p) { return p.beta * elu(x, p.alpha); },
     emit_selu,
     UnaryKind::kSelu,
     nullptr,
     nullptr,
     {"alpha", "1.67326319217681884765625", "negative limit before scaling"},
     {"gamma", "1.05070102214813232421875", "scale"}},
    {"celu",
     "Continuously differentiable elu. y = x > 0 ? x : alpha * (exp(x / alpha) - 1) (Barron 2017)",
     [](double x, Params p) { return x > 0 ? x : p.alpha * std::expm1(x / p.alpha); },
     emit_celu,
     UnaryKind::kCelu,
     nullptr,
     nullptr,
     {"alpha", "1", "negative limit"}},
    {"gelu", "Gaussian error linear unit. y = x / 2 * (1 + erf(x / sqrt(2))) (Hendrycks, Gimpel 2016)",
     [](double x, Params) { return apply_activation(kGelu, x); },
     [](E& e, int32_t x, Params) { return emit_activation(e, kGelu, x); }, UnaryKind::kGelu},
    {"gelu_tanh",
     "Gelu's usual approximation. y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) (Hendrycks, Gimpel 2016)",
     [](double x, Params) { return apply_activation(kGeluTanh, x); },
     [](E& e, int32_t x, Params) { return emit_activation(e, kGeluTanh, x); }, UnaryKind::kGeluTanh},
    {"thresholded_relu",
     "Relu that starts later. y = x > alpha ? x : 0 (Konda, Memisevic, Krueger 2014)",
     [](double x, Params p) { return x > p.alpha ? x : 0.0; },
     emit_thresholded_relu,
     UnaryKind::kThresholdedRelu,
     nullptr,
     nullptr,
     {"alpha", "1", "threshold"}},
    {"shrink",
     "Shrinkage towards 0. y = x < -threshold ? x + bias : x > threshold ? x - bias : 0",
     [](double x, Params p) { return shrink(x, p); },
     emit_shrink,
     UnaryKind::kShrink,
     nullptr,
     nullptr,
     {"threshold", "0.5", "smaller magnitudes become 0"},
     {"bias", "0", "taken from larger magnitudes"}},
};

}  // namespace

Definitions more_activations() {
  Definitions all;
  for (const UnaryOp& op : kOps) all.add(unary_definitions(op));
  return all;
}

}  // namespace tenon::plugins
