// The activations on kernels/cuda: tenon.<activation>.vector.*.cuda, one pass over memory, the same in every format.
#include <memory>
#include <string>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/pointwise.h"
#include "plugins/activation/activation.h"
#include "plugins/common/cuda.h"
#include "plugins/common/unary_cuda.h"

namespace tenon::plugins {
namespace {

class ActivationCuda final : public IPlugin {
 public:
  explicit ActivationCuda(const ActivationOp& op) : op_(op) {}
  void configure(const Config& config) override {
    type_ = to_cuda_float(config.combo().input(0).dtype);
    function_ = to_cuda(activation_of(op_, config.site().attrs()));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(cuda::pointwise_unary(type_, function_.kind, function_.alpha, function_.beta,
                                     Tensor(inputs[0]).elements(), inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  const ActivationOp& op_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  cuda::Epilogue function_;
};

constexpr UnaryCudaOp kMoreOps[] = {
    {"hard_sigmoid", cuda::UnaryKind::kHardSigmoid, "alpha", "beta"},
    {"softplus", cuda::UnaryKind::kSoftplus},
    {"softsign", cuda::UnaryKind::kSoftsign},
    {"selu", cuda::UnaryKind::kSelu, "alpha", "gamma"},
    {"celu", cuda::UnaryKind::kCelu, "alpha"},
    {"gelu", cuda::UnaryKind::kGelu},
    {"gelu_tanh", cuda::UnaryKind::kGeluTanh},
    {"thresholded_relu", cuda::UnaryKind::kThresholdedRelu, "alpha"},
    {"shrink", cuda::UnaryKind::kShrink, "threshold", "bias"},
};

Definitions activation_cuda() {
  Definitions all;
  for (const ActivationOp& entry : activation_ops()) {
    const ActivationOp* op = &entry;
    const std::string base = std::string("tenon.") + op->name;
    all.add(for_cuda_floats([&](int32_t dtype) {
      Kernel definition = cuda_kernel(base + "/1", cuda_name(base + ".vector", dtype),
                                      [op] { return std::make_unique<ActivationCuda>(*op); });
      for (auto port : cuda_image_ports()) definition.combo({port(dtype)}, {port(dtype)}).may_alias(0, 0);
      return definition;
    }));
  }
  for (const UnaryCudaOp& op : kMoreOps) all.add(unary_cuda_definitions(op));
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.activation.cuda", "1", "Apache-2.0", tenon::plugins::activation_cuda())
