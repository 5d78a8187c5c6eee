// tenon.expand/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/copy_strided.h"
#include "plugins/common/cuda.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

class ExpandCuda final : public IPlugin {
 public:
  void configure(const Config& config) override { bytes_ = move_bytes(config.site().dtype(0)); }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const TnDims& dims = outputs[0].dims;
    int64_t from[TN_MAX_RANK], to[TN_MAX_RANK];
    broadcast_strides(inputs[0].dims, dims, from);
    row_strides(dims, to);
    check_cuda(
        cuda::copy_strided(dims.rank, dims.d, from, to, bytes_, inputs[0].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.expand.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::ExpandCuda>("tenon.expand/1", "tenon.expand.copy.cuda")
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   tenon::plugins::move_bytes(site.dtype(0));
                   const tenon::Port port = tenon::row(site.dtype(0));
                   combos.add(tenon::ComboSpec({port, tenon::any_constant()}, {port}));
                 }))
