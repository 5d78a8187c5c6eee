// tenon.upsample/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/upsample.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class UpsampleCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    type_ = to_cuda_float(config.combo().input(0).dtype);
    const List<int64_t> factors = config.site().attrs().i64s("factors", 2, 1);
    factor_h_ = factors[0];
    factor_w_ = factors[1];
    scale_ = static_cast<float>(config.site().attrs().f64("scale"));
    layout_ = to_cuda_layout(config.combo().input(0).format);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const int64_t* d = inputs[0].dims.d;
    check_cuda(cuda::upsample_nearest(type_, layout_, d[0], d[1], d[2], d[3], factor_h_, factor_w_, scale_,
                                      inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  cuda::ElementType type_ = cuda::ElementType::kF32;
  int64_t factor_h_ = 1, factor_w_ = 1;
  float scale_ = 1;
  cuda::Layout layout_ = cuda::Layout::kNchw;
};

Kernel upsample_cuda(int32_t dtype) {
  return cuda_kernel<UpsampleCuda>("tenon.upsample/1", cuda_name("tenon.upsample.nearest", dtype))
      .combo({row(dtype)}, {row(dtype)})
      .combo({nhwc(dtype)}, {nhwc(dtype)});
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.upsample.cuda", "1", "Apache-2.0", tenon::plugins::for_cuda_floats(tenon::plugins::upsample_cuda))
