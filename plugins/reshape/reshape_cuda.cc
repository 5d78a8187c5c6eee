// tenon.reshape/1 as one copy on the GPU.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/cuda.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

class ReshapeCuda final : public IPlugin {
 public:
  void configure(const Config& config) override { bytes_ = move_bytes(config.site().dtype(0)); }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const size_t size = static_cast<size_t>(Tensor(inputs[0]).elements() * bytes_);
    if (size == 0 || inputs[0].data == outputs[0].data) return;
    check_cuda(cudaMemcpyAsync(outputs[0].data, inputs[0].data, size, cudaMemcpyDeviceToDevice, cuda_stream(exec)));
  }

 private:
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.reshape.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::ReshapeCuda>("tenon.reshape/1", "tenon.reshape.copy.cuda")
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   const tenon::Port port = tenon::row(site.dtype(0));
                   combos.add(tenon::ComboSpec({port, tenon::any_constant()}, {port}).may_alias(0, 0));
                 }))
