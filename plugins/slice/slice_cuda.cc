// tenon.slice/1 on kernels/cuda.
#include <optional>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/copy_strided.h"
#include "plugins/common/cuda.h"
#include "plugins/slice/slice.h"

namespace tenon::plugins {
namespace {

class SliceCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    format_ = config.combo().input(0).format;
    geometry_.emplace(site);
    bytes_ = move_bytes(site.dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const SliceCopy copy(*geometry_, format_, inputs[0].dims, outputs[0].dims);
    check_cuda(cuda::copy_strided(copy.dims.rank, copy.dims.d, copy.input_strides, copy.output_strides, bytes_,
                                  static_cast<const char*>(inputs[0].data) + copy.start * bytes_, outputs[0].data,
                                  cuda_stream(exec)));
  }

 private:
  TnFormat format_{};
  std::optional<SliceGeometry> geometry_;
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.slice.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::SliceCuda>("tenon.slice/1", "tenon.slice.copy.cuda")
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   for (const auto make : tenon::plugins::cuda_image_ports()) {
                     const tenon::Port port = make(site.dtype(0));
                     if (!tenon::is_row(port.format) && site.dims(0).rank != 4) continue;
                     combos.add(tenon::ComboSpec({port, tenon::any_constant()}, {port}));
                   }
                 }))
