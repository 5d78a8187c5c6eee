// tenon.softmax/1 and tenon.log_softmax/1 on kernels/cuda.
#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/softmax.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class SoftmaxCuda final : public IPlugin {
 public:
  explicit SoftmaxCuda(cuda::SoftmaxKind kind) : kind_(kind) {}
  void configure(const Config& config) override {
    const Site site = config.site();
    type_ = to_cuda_float(config.combo().input(0).dtype);
    axis_ = normalize_axis(site.attrs().i64("axis"), site.dims(0).rank);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[0].dims;
    check_cuda(cuda::softmax(type_, kind_, dims.product(0, axis_), dims[axis_], dims.product(axis_ + 1, dims.rank),
                             inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  cuda::SoftmaxKind kind_;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  int axis_ = 0;
};

Definitions softmax_cuda() {
  Definitions all;
  for (const auto kind : {cuda::SoftmaxKind::kSoftmax, cuda::SoftmaxKind::kLogSoftmax}) {
    const std::string name = kind == cuda::SoftmaxKind::kSoftmax ? "tenon.softmax" : "tenon.log_softmax";
    for (const int32_t dtype : {TN_F32, TN_F16}) {
      all.add(cuda_kernel(name + "/1", cuda_name(name + ".rows", dtype),
                          [kind] { return std::make_unique<SoftmaxCuda>(kind); })
                  .combo({row(dtype)}, {row(dtype)})
                  .may_alias(0, 0));
    }
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.softmax.cuda", "1", "Apache-2.0", tenon::plugins::softmax_cuda())
