// tenon.cast/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/cast.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class CastCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    from_ = to_cuda_type(config.combo().input(0).dtype);
    to_ = to_cuda_type(config.combo().output(0).dtype);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(
        cuda::cast(from_, to_, Tensor(inputs[0]).elements(), inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  cuda::ElementType from_ = cuda::ElementType::kF32;
  cuda::ElementType to_ = cuda::ElementType::kF32;
};

Kernel cast_cuda() {
  Kernel definition = cuda_kernel<CastCuda>("tenon.cast/1", "tenon.cast.vector.cuda");
  for (const auto& [from, from_type] : kCudaTypes) {
    for (const auto& [to, to_type] : kCudaTypes) {
      definition.combo({row(from)}, {row(to)});
      if (element_type_size(from_type) == element_type_size(to_type)) definition.may_alias(0, 0);
    }
  }
  return definition;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.cast.cuda", "1", "Apache-2.0", tenon::plugins::cast_cuda())
