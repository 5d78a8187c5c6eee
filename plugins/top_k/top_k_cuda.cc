// tenon.top_k/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/top_k.h"
#include "plugins/common/cuda.h"

namespace tenon::plugins {
namespace {

cuda::TopKShape shape_of(int axis, bool largest, const Dims& x, const Dims& y) {
  return {x.product(0, axis), x[axis], x.product(axis + 1, x.rank), y[axis], largest};
}
cuda::TopKShape largest_shape(const Site& site) {
  const Dims x = site.max_dims(0);
  const Attrs attrs = site.attrs();
  return shape_of(normalize_axis(attrs.i64("axis"), x.rank), attrs.flag("largest"), x, site.max_output_dims(0));
}

class TopKCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    axis_ = normalize_axis(site.attrs().i64("axis"), site.dims(0).rank);
    largest_ = site.attrs().flag("largest");
    type_ = to_cuda_float(config.combo().input(0).dtype);
    sizes_.workspace = cuda::top_k_workspace(largest_shape(site));
  }
  Sizes sizes() const override { return sizes_; }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const cuda::TopKShape shape = shape_of(axis_, largest_, inputs[0].dims, outputs[1].dims);
    check_cuda(cuda::top_k(type_, shape, inputs[0].data, outputs[0].data, static_cast<int64_t*>(outputs[1].data),
                           exec.workspace<void>(), cuda_stream(exec)));
  }

 private:
  int axis_ = 0;
  bool largest_ = true;
  cuda::ElementType type_ = cuda::ElementType::kF32;
  Sizes sizes_;
};

Kernel top_k_cuda(int32_t dtype) {
  return cuda_kernel<TopKCuda>("tenon.top_k/1", cuda_name("tenon.top_k.radix", dtype))
      .combo({row(dtype), any_constant()}, {row(dtype), row(TN_I64)})
      .supports([](const Site& site) {
        if (largest_shape(site).size >= cuda::kTopKMostSize) {
          throw Declined("expected an axis of less than 2^31 elements");
        }
      })
      .tactics([](const Site& site, const Combo&, Tactics& tactics) {
        tactics.add("", cuda::top_k_workspace(largest_shape(site)));
      });
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.top_k.cuda", "1", "Apache-2.0", tenon::plugins::for_cuda_floats(tenon::plugins::top_k_cuda))
