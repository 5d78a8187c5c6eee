// tenon.global_avg_pool/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/pool.h"
#include "plugins/common/cell_combos.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class GlobalAvgPoolCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    type_ = to_cuda_float(config.combo().input(0).dtype);
    layout_ = to_cuda_layout(config.combo().input(0).format);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const int64_t* x = inputs[0].dims.d;
    check_cuda(cuda::pool_global_average(type_, layout_, x[0], x[1], x[2], x[3], inputs[0].data, outputs[0].data,
                                         cuda_stream(exec)));
  }

 private:
  cuda::ElementType type_ = cuda::ElementType::kF32;
  cuda::Layout layout_ = cuda::Layout::kNchw;
};

Kernel global_avg_pool_cuda(int32_t dtype) {
  return cuda_kernel<GlobalAvgPoolCuda>("tenon.global_avg_pool/1", cuda_name("tenon.global_avg_pool.blocks", dtype))
      .combo({row(dtype)}, {row(dtype)})
      .combo({nhwc(dtype)}, {nhwc(dtype)})
      .more_combos(
          [dtype](const Site& site, Combos& combos) { add_cell_combos(site, combos, dtype, cuda_image_ports()); });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.global_avg_pool.cuda", "1", "Apache-2.0",
             tenon::plugins::for_cuda_floats(tenon::plugins::global_avg_pool_cuda))
