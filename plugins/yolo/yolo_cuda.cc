// tenon.yolo/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/detection.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class YoloCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Attrs attrs = config.site().attrs();
    anchors_ = attrs.i64("anchors");
    classes_ = attrs.i64("classes");
    scale_ = static_cast<float>(attrs.f64("scale_x_y"));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[0].dims;
    check_cuda(cuda::yolo_head(dims[0], anchors_, classes_, dims[2] * dims[3], scale_,
                               static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data),
                               cuda_stream(exec)));
  }

 private:
  int64_t anchors_ = 0, classes_ = 0;
  float scale_ = 1;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.yolo.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::YoloCuda>("tenon.yolo/1", "tenon.yolo.boxes.f32.cuda")
                 .combo({tenon::f32_row()}, {tenon::f32_row()})
                 .may_alias(0, 0))
