// tenon.region/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/detection.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class RegionCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Attrs attrs = config.site().attrs();
    anchors_ = attrs.i64("anchors");
    coords_ = attrs.i64("coords");
    classes_ = attrs.i64("classes");
    softmax_ = attrs.flag("softmax");
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[0].dims;
    check_cuda(cuda::region_head(dims[0], anchors_, coords_, classes_, dims[2] * dims[3], softmax_,
                                 static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data),
                                 cuda_stream(exec)));
  }

 private:
  int64_t anchors_ = 0, coords_ = 0, classes_ = 0;
  bool softmax_ = true;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.region.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::RegionCuda>("tenon.region/1", "tenon.region.boxes.f32.cuda")
                 .combo({tenon::f32_row()}, {tenon::f32_row()})
                 .may_alias(0, 0))
