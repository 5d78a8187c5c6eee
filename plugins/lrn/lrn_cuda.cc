// tenon.lrn/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/normalize.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class LrnCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Attrs attrs = config.site().attrs();
    channels_last_ = is_nhwc(config.combo().input(0).format);
    type_ = to_cuda_float(config.combo().input(0).dtype);
    params_ = {attrs.i64("size"), static_cast<float>(attrs.f64("alpha")), static_cast<float>(attrs.f64("beta")),
               static_cast<float>(attrs.f64("bias"))};
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims x = inputs[0].dims;
    const int64_t pixels = x.product(2, x.rank);
    check_cuda(cuda::local_response_norm(type_, params_, channels_last_ ? x[0] * pixels : x[0], x[1],
                                         channels_last_ ? 1 : pixels, inputs[0].data, outputs[0].data,
                                         cuda_stream(exec)));
  }

 private:
  cuda::ElementType type_ = cuda::ElementType::kF32;
  cuda::LrnParams params_{};
  bool channels_last_ = false;
};

Kernel lrn_cuda(int32_t dtype) {
  return cuda_kernel<LrnCuda>("tenon.lrn/1", cuda_name("tenon.lrn.direct", dtype))
      .combo({row(dtype)}, {row(dtype)})
      .combo({nhwc(dtype)}, {nhwc(dtype)});
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.lrn.cuda", "1", "Apache-2.0", tenon::plugins::for_cuda_floats(tenon::plugins::lrn_cuda))
