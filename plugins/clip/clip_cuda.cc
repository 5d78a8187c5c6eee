// tenon.clip/1 on kernels/cuda: float types in the formats of images, i32 and i64 row-major.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/pointwise.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class ClipCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    type_ = to_cuda_type(config.combo().output(0).dtype);
    has_min_ = config.site().has_input(1);
    has_max_ = config.site().has_input(2);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(cuda::pointwise_clip(type_, Tensor(inputs[0]).elements(), inputs[0].data,
                                    has_min_ ? inputs[1].data : nullptr, has_max_ ? inputs[2].data : nullptr,
                                    outputs[0].data, cuda_stream(exec)));
  }

 private:
  cuda::ElementType type_ = cuda::ElementType::kF32;
  bool has_min_ = false, has_max_ = false;
};

Kernel clip_cuda() {
  Kernel definition = cuda_kernel<ClipCuda>("tenon.clip/1", "tenon.clip.vector.cuda");
  const auto add = [&](const Port& port) {
    definition.combo({port, row(port.dtype), row(port.dtype)}, {port}).may_alias(0, 0);
  };
  for (auto port : cuda_image_ports()) {
    for (const int32_t dtype : {TN_F32, TN_F16}) add(port(dtype));
  }
  for (const int32_t dtype : {TN_I32, TN_I64}) add(row(dtype));
  return definition;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.clip.cuda", "1", "Apache-2.0", tenon::plugins::clip_cuda())
