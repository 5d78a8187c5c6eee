// tenon.one_hot/1 on kernels/cuda.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/pad.h"
#include "plugins/common/cuda.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

class OneHotCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    axis_ = normalize_axis(site.attrs().i64("axis"), site.dims(0).rank + 1);
    bytes_ = move_bytes(site.output_dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims y = outputs[0].dims;
    check_cuda(cuda::one_hot(y.product(0, axis_), y[axis_], y.product(axis_ + 1, y.rank), inputs[0].dtype == TN_I64,
                             inputs[0].data, bytes_, inputs[2].data, outputs[0].data, cuda_stream(exec)));
  }

 private:
  int axis_ = 0, bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.one_hot.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::OneHotCuda>("tenon.one_hot/1", "tenon.one_hot.fill.cuda")
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   tenon::plugins::move_bytes(site.dtype(2));
                   const tenon::Port port = tenon::row(site.dtype(2));
                   combos.add(tenon::ComboSpec({tenon::row(site.dtype(0)), tenon::any_constant(), port}, {port}));
                 }))
