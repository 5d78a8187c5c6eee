// tenon.reorg/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/reorg.h"
#include "plugins/common/cuda.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

class ReorgCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    stride_ = config.site().attrs().i64("stride");
    bytes_ = move_bytes(config.site().dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const int64_t* d = inputs[0].dims.d;
    check_cuda(cuda::reorg_darknet(d[0], d[1], d[2], d[3], stride_, bytes_, inputs[0].data, outputs[0].data,
                                   cuda_stream(exec)));
  }

 private:
  int64_t stride_ = 1;
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.reorg.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::ReorgCuda>("tenon.reorg/1", "tenon.reorg.copy.cuda")
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   const tenon::Port port = tenon::row(site.dtype(0));
                   combos.add(tenon::ComboSpec({port}, {port}));
                 }))
