// Unary functions of kernels/cuda from a table: one kernel for each op and float type, in the formats of images.
#ifndef TENON_PLUGINS_COMMON_UNARY_CUDA_H_
#define TENON_PLUGINS_COMMON_UNARY_CUDA_H_

#include <memory>
#include <string>

#include "kernels/cuda/pointwise.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {

struct UnaryCudaOp {
  const char* name;  // "floor": kernels tenon.floor.vector.*.cuda of op tenon.floor/1
  cuda::UnaryKind kind;
  const char* alpha = nullptr;  // names of the attributes that the function takes; NULL: none
  const char* beta = nullptr;
};

class UnaryCuda final : public IPlugin {
 public:
  explicit UnaryCuda(const UnaryCudaOp& op) : op_(op) {}
  void configure(const Config& config) override {
    type_ = to_cuda_float(config.combo().input(0).dtype);
    const Attrs attrs = config.site().attrs();
    if (op_.alpha) alpha_ = static_cast<float>(attrs.f64(op_.alpha));
    if (op_.beta) beta_ = static_cast<float>(attrs.f64(op_.beta));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(cuda::pointwise_unary(type_, op_.kind, alpha_, beta_, Tensor(inputs[0]).elements(), inputs[0].data,
                                     outputs[0].data, cuda_stream(exec)));
  }

 private:
  const UnaryCudaOp& op_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  float alpha_ = 0, beta_ = 0;
};

// `entry` must outlive the definitions.
inline Definitions unary_cuda_definitions(const UnaryCudaOp& entry) {
  const UnaryCudaOp* op = &entry;
  const std::string base = std::string("tenon.") + op->name;
  return for_cuda_floats([&](int32_t dtype) {
    Kernel definition =
        cuda_kernel(base + "/1", cuda_name(base + ".vector", dtype), [op] { return std::make_unique<UnaryCuda>(*op); });
    for (auto port : cuda_image_ports()) definition.combo({port(dtype)}, {port(dtype)}).may_alias(0, 0);
    return definition;
  });
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_UNARY_CUDA_H_
