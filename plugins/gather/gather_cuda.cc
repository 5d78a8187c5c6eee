// tenon.gather/1, tenon.gather_nd/1 and tenon.gather_elements/1 on kernels/cuda.
#include <string>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/gather.h"
#include "plugins/common/cuda.h"
#include "plugins/gather/gather.h"

namespace tenon::plugins {
namespace {

class GatherCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    axis_ = gather_axis(config.site().attrs(), config.site().dims(0));
    bytes_ = move_bytes(config.site().dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(cuda::gather(gather_shape(axis_, inputs[0].dims, inputs[1].dims), to_indices(inputs[1]), bytes_,
                            inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  int axis_ = 0, bytes_ = 0;
};

class GatherNdCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    shape_ = GatherNd(site.attrs(), site.dims(0), site.dims(1)).shape;
    bytes_ = move_bytes(site.dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(cuda::gather(shape_, to_indices(inputs[1]), bytes_, inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  cuda::GatherShape shape_;
  int bytes_ = 0;
};

class GatherElementsCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    axis_ = gather_axis(config.site().attrs(), config.site().dims(0));
    bytes_ = move_bytes(config.site().dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    check_cuda(cuda::gather_elements(inputs[0].dims.rank, axis_, inputs[0].dims.d, inputs[1].dims.d,
                                     to_indices(inputs[1]), bytes_, inputs[0].data, outputs[0].data,
                                     cuda_stream(exec)));
  }

 private:
  int axis_ = 0, bytes_ = 0;
};

template <class Instance>
Kernel gather_kernel(const std::string& name) {
  return cuda_kernel<Instance>("tenon." + name + "/1", "tenon." + name + ".copy.cuda").more_combos(add_gather_combos);
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.gather.cuda", "1", "Apache-2.0",
             tenon::plugins::gather_kernel<tenon::plugins::GatherCuda>("gather"),
             tenon::plugins::gather_kernel<tenon::plugins::GatherNdCuda>("gather_nd"),
             tenon::plugins::gather_kernel<tenon::plugins::GatherElementsCuda>("gather_elements"))
