// tenon.tile/1 on kernels/cuda.
#include "plugins/tile/tile.h"

#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/copy_strided.h"
#include "plugins/common/cuda.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

class TileCuda final : public IPlugin {
 public:
  void configure(const Config& config) override { bytes_ = move_bytes(config.site().dtype(0)); }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims y = outputs[0].dims;
    if (y.elements() == 0) return;
    const TileCopy copy(inputs[0].dims, y);
    static_assert(TileCopy::kMaxRank <= cuda::kCopyMaxRank);
    check_cuda(cuda::copy_strided(copy.rank, copy.dims, copy.from, copy.to, bytes_, inputs[0].data, outputs[0].data,
                                  cuda_stream(exec)));
  }

 private:
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.tile.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::TileCuda>("tenon.tile/1", "tenon.tile.copy.cuda")
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   tenon::plugins::move_bytes(site.dtype(0));
                   const tenon::Port port = tenon::row(site.dtype(0));
                   combos.add(tenon::ComboSpec({port, tenon::any_constant()}, {port}));
                 }))
