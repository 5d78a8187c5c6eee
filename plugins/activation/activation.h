// The family of unary activations: what each op is, shared by its definition and its kernel.
#ifndef TENON_PLUGINS_ACTIVATION_ACTIVATION_H_
#define TENON_PLUGINS_ACTIVATION_ACTIVATION_H_

#include <array>
#include <tenon/sdk/definition.hpp>
#include <tenon/sdk/expressions.hpp>
#include <tenon/sdk/site.hpp>

namespace tenon::plugins {

struct ActivationOp {
  const char* name;  // "relu": op tenon.relu/1, kernel tenon.relu.vector.f32
  ActivationKind kind;
  double alpha;  // fixed, or the default of the attribute "alpha"
  double beta;
  const char* alpha_default;  // NULL: the op has no attribute
  const char* doc;
};

const std::array<ActivationOp, 10>& activation_ops();

// The activation of a node of that op.
Activation activation_of(const ActivationOp& op, const Attrs& attrs);

// One kernel for each op.
Definitions activation_kernels();

// The other activations, with their kernels.
Definitions more_activations();

// Rewrites of activations that models spell out.
Definitions activation_rules();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_ACTIVATION_ACTIVATION_H_
