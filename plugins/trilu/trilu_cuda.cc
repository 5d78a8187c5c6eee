// tenon.trilu/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/pad.h"
#include "plugins/common/cuda.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

class TriluCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    upper_ = config.site().attrs().flag("upper");
    has_k_ = config.site().has_input(1);
    bytes_ = move_bytes(config.site().dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims dims = outputs[0].dims;
    const int last = dims.rank - 1;
    check_cuda(cuda::trilu(dims.product(0, last - 1), dims[last - 1], dims[last], upper_,
                           has_k_ && inputs[1].dtype == TN_I64, has_k_ ? inputs[1].data : nullptr, bytes_,
                           inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  bool upper_ = true, has_k_ = false;
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.trilu.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::TriluCuda>("tenon.trilu/1", "tenon.trilu.copy.cuda")
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   tenon::plugins::move_bytes(site.dtype(0));
                   const tenon::Port port = tenon::row(site.dtype(0));
                   std::vector<tenon::Port> inputs = {port};
                   if (site.num_inputs() > 1) {
                     inputs.push_back(site.has_input(1) ? tenon::row(site.dtype(1)) : tenon::any_constant());
                   }
                   combos.add(tenon::ComboSpec(inputs, std::vector<tenon::Port>{port}).may_alias(0, 0));
                 }))
