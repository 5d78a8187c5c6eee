// tenon.global_avg_pool/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/pool.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class GlobalAvgPoolCuda final : public IPlugin {
 public:
  void configure(const Config& config) override { layout_ = to_cuda_layout(config.combo().input(0).format); }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const int64_t* x = inputs[0].dims.d;
    check_cuda(cuda::pool_global_average(cuda::ElementType::kF32, layout_, x[0], x[1], x[2], x[3], inputs[0].data,
                                         outputs[0].data, cuda_stream(exec)));
  }

 private:
  cuda::Layout layout_ = cuda::Layout::kNchw;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.global_avg_pool.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::GlobalAvgPoolCuda>("tenon.global_avg_pool/1",
                                                                            "tenon.global_avg_pool.blocks.f32.cuda")
                 .combo({tenon::f32_row()}, {tenon::f32_row()})
                 .combo({tenon::f32_nhwc()}, {tenon::f32_nhwc()}))
