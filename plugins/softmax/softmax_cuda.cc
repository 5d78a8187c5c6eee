// tenon.softmax/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/softmax.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class SoftmaxCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    axis_ = normalize_axis(site.attrs().i64("axis"), site.dims(0).rank);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[0].dims;
    check_cuda(cuda::softmax(cuda::ElementType::kF32, cuda::SoftmaxKind::kSoftmax, dims.product(0, axis_), dims[axis_],
                             dims.product(axis_ + 1, dims.rank), inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  int axis_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.softmax.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::SoftmaxCuda>("tenon.softmax/1", "tenon.softmax.rows.f32.cuda")
                 .combo({tenon::f32_row()}, {tenon::f32_row()}))
