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
    type_ = to_cuda_float(config.combo().input(0).dtype);
    axis_ = normalize_axis(site.attrs().i64("axis"), site.dims(0).rank);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = inputs[0].dims;
    check_cuda(cuda::softmax(type_, cuda::SoftmaxKind::kSoftmax, dims.product(0, axis_), dims[axis_],
                             dims.product(axis_ + 1, dims.rank), inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  cuda::ElementType type_ = cuda::ElementType::kF32;
  int axis_ = 0;
};

Kernel softmax_cuda(int32_t dtype) {
  return cuda_kernel<SoftmaxCuda>("tenon.softmax/1", cuda_name("tenon.softmax.rows", dtype))
      .combo({row(dtype)}, {row(dtype)});
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.softmax.cuda", "1", "Apache-2.0", tenon::plugins::for_cuda_floats(tenon::plugins::softmax_cuda))
