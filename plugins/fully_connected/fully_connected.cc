// tenon.fully_connected/1: each row of x times constant weights.
#include "plugins/fully_connected/fully_connected.h"

#include <tenon/sdk/plugin.hpp>

#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

void fully_connected_infer(const Infer& question) {
  const Tensor x = question.input(0);
  const bool has_bias = question.has_input(2);
  const Dims bias = has_bias ? question.input(2).dims() : Dims();
  const FullyConnectedGeometry g = FullyConnectedGeometry::make(
      x.dims(), question.input(1).dims(), has_bias ? &bias : nullptr, question.attrs().i64("axis"));
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  question.output(0, x.dtype(), g.result);
}

void fully_connected_reference(const Reference& call) {
  const FullyConnectedGeometry g =
      FullyConnectedGeometry::make(call.input(0).dims(), call.input(1).dims(), nullptr, call.attrs().i64("axis"));
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    const T* weights = call.input(1).data<T>();
    const T* bias = call.has_input(2) ? call.input(2).data<T>() : nullptr;
    call.fill<T>(0, [&](const int64_t*, int64_t linear) {
      const int64_t k = linear % g.outputs;
      const T* row = x + linear / g.outputs * g.features;
      const T* column = weights + k * g.features;
      double sum = bias ? static_cast<double>(bias[k]) : 0.0;
      for (int64_t c = 0; c < g.features; ++c) sum += static_cast<double>(row[c]) * static_cast<double>(column[c]);
      return static_cast<T>(sum);
    });
  });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.fully_connected", "1", "Apache-2.0",
             tenon::op("tenon.fully_connected/1")
                 .doc("A dense layer. y[n, k] = bias[k] + sum over c of x[n, c] * weights[k, c], x seen as [n, c] with "
                      "the dims before `axis` as one and those from it on as one")
                 .attr_i64("axis", "the first axis that the sum runs over; negative: counted from the end")
                 .default_value("1")
                 .input("x", "floating")
                 .input("weights", "[k, c]")
                 .constant()
                 .input("bias", "[k]")
                 .optional()
                 .constant()
                 .output("y", "x's dims before `axis`, then k")
                 .infer(tenon::plugins::fully_connected_infer)
                 .reference(tenon::plugins::fully_connected_reference)
                 .siblings([](const tenon::Infer& inferred) {
                   return tenon::Siblings{inferred.output(0).rank() - 1, {TN_SAME_VALUE, 0, 0}};
                 })
                 .tolerance([](const tenon::Attrs&, int32_t dtype) { return tenon::plugins::sum_tolerance(dtype); }),
             tenon::plugins::fully_connected_kernels(), tenon::plugins::fully_connected_rules())
