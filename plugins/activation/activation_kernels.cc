// tenon.<activation>.vector.f32: one pass over memory, the same in every format.
#include <cstring>
#include <memory>
#include <string>
#include <tenon/sdk/kernel.hpp>

#include "kernels/cpu/pointwise.h"
#include "plugins/activation/activation.h"
#include "plugins/common/activation_kind.h"
#include "plugins/common/layout.h"
#include "plugins/common/parallel.h"

namespace tenon::plugins {
namespace {

class ActivationKernel final : public IPlugin {
 public:
  explicit ActivationKernel(const ActivationOp& op) : op_(op) {}

  void configure(const Config& config) override {
    activation_ = activation_of(op_, config.site().attrs());
    format_ = config.combo().input(0).format;
  }

  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const bool identity = activation_.kind == ActivationKind::kIdentity;  // kLinear computes alpha * x + beta
    const float alpha = identity ? 1.0f : static_cast<float>(activation_.alpha);
    const float beta = identity ? 0.0f : static_cast<float>(activation_.beta);
    float* y = static_cast<float*>(outputs[0].data);
    cpu::pointwise_unary(unary_kind(activation_.kind), alpha, beta, physical_elements(format_, inputs[0].dims),
                         static_cast<const float*>(inputs[0].data), y, to_parallel(exec), cpu::detect_isa());
    if (apply_activation(activation_, 0.0) != 0.0) zero_filling(format_, inputs[0].dims, y);
  }

 private:
  const ActivationOp& op_;
  Activation activation_;
  TnFormat format_ = row_format();
};

}  // namespace

Definitions activation_kernels() {
  Definitions all;
  for (const ActivationOp& entry : activation_ops()) {
    const ActivationOp* op = &entry;
    Kernel definition(std::string("tenon.") + op->name + "/1", std::string("tenon.") + op->name + ".vector.f32",
                      [op] { return std::make_unique<ActivationKernel>(*op); });
    for (auto port : image_ports()) definition.combo({port(TN_F32)}, {port(TN_F32)}).may_alias(0, 0);
    all.add(definition.deterministic());
  }
  return all;
}

}  // namespace tenon::plugins
