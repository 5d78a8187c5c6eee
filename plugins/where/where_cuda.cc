// tenon.where/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/elementwise.h"
#include "plugins/common/cuda.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

class WhereCuda final : public IPlugin {
 public:
  void configure(const Config& config) override { bytes_ = move_bytes(config.site().dtype(1)); }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const int ranks[] = {inputs[0].dims.rank, inputs[1].dims.rank, inputs[2].dims.rank};
    const int64_t* const dims[] = {inputs[0].dims.d, inputs[1].dims.d, inputs[2].dims.d};
    cuda::Broadcast<3> shape;
    if (!cuda::broadcast_shape(ranks, dims, &shape)) {
      throw Invalid(text("shapes ", to_text(inputs[0].dims), ", ", to_text(inputs[1].dims), " and ",
                         to_text(inputs[2].dims), " do not broadcast"));
    }
    check_cuda(
        cuda::where(bytes_, shape, inputs[0].data, inputs[1].data, inputs[2].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.where.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::WhereCuda>("tenon.where/1", "tenon.where.vector.cuda")
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   const int32_t dtype = site.dtype(1);
                   tenon::plugins::move_bytes(dtype);
                   combos.add({{tenon::row(TN_BOOL), tenon::row(dtype), tenon::row(dtype)}, {tenon::row(dtype)}});
                 }))
