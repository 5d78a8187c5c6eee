// tenon.cum_sum/1 and tenon.cum_prod/1 on kernels/cuda.
#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/cumulate.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

class CumulateCuda final : public IPlugin {
 public:
  explicit CumulateCuda(bool product) { shape_.product = product; }
  void configure(const Config& config) override {
    const Site site = config.site();
    if (!site.is_constant(1)) throw Declined("the axis is computed at run time");
    type_ = to_cuda_type(config.combo().input(0).dtype);
    axis_ = normalize_axis(site.constant(1).integer(0), site.dims(0).rank);
    shape_.exclusive = site.attrs().flag("exclusive");
    shape_.reverse = site.attrs().flag("reverse");
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims x = inputs[0].dims;
    cuda::CumulateShape shape = shape_;
    shape.outer = x.product(0, axis_), shape.size = x[axis_], shape.inner = x.product(axis_ + 1, x.rank);
    check_cuda(cuda::cumulate(type_, shape, inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  cuda::ElementType type_ = cuda::ElementType::kF32;
  cuda::CumulateShape shape_;
  int axis_ = 0;
};

Definitions cum_sum_cuda() {
  Definitions all;
  for (const int32_t dtype : {TN_F32, TN_F16, TN_I32, TN_I64}) {
    for (const bool second : {false, true}) {
      const std::string name = second ? "tenon.cum_prod" : "tenon.cum_sum";
      all.add(cuda_kernel(name + "/1", cuda_name(name + ".scan", dtype),
                          [second] { return std::make_unique<CumulateCuda>(second); })
                  .combo({row(dtype), any_constant()}, {row(dtype)})
                  .supports([](const Site& site) {
                    if (!site.is_constant(1)) throw Declined("the axis is computed at run time");
                  }));
    }
  }
  return all;
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.cum_sum.cuda", "1", "Apache-2.0", tenon::plugins::cum_sum_cuda())
