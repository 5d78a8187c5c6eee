// tenon.relu/1 and the other unary activations.
#include "plugins/activation/activation.h"

#include <string>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/tolerance.h"

namespace tenon::plugins {

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
  all.add(more_activations());
  all.add(activation_rules());
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.activation", "1", "Apache-2.0", tenon::plugins::activation_definitions())
