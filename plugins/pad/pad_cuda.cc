// tenon.pad/1 on kernels/cuda.
#include <algorithm>
#include <tenon/sdk/plugin.hpp>

#include "kernels/cuda/pad.h"
#include "plugins/common/cuda.h"
#include "plugins/common/move.h"
#include "plugins/pad/pad.h"

namespace tenon::plugins {
namespace {

// Input numbers of the op.
constexpr int kX = 0, kPads = 1, kValue = 2, kAxes = 3;

class PadCuda final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    const bool some_axes = site.has_input(kAxes);
    for (const int n : {kPads, some_axes ? kAxes : kPads}) {
      if (!site.constant(n).has_data() && site.constant(n).elements() > 0) {
        throw Declined("the pads or their axes are computed at run time");
      }
    }
    const Tensor axes = site.constant(some_axes ? kAxes : kPads);
    pads_ = pads_from(site.constant(kPads), some_axes ? &axes : nullptr, site.dims(kX).rank);
    const std::string mode = site.attrs().str("mode");
    mode_ = mode == "constant"  ? cuda::PadMode::kConstant
            : mode == "edge"    ? cuda::PadMode::kEdge
            : mode == "reflect" ? cuda::PadMode::kReflect
                                : cuda::PadMode::kWrap;
    bytes_ = move_bytes(site.dtype(kX));
    has_value_ = site.has_input(kValue);
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const Dims x = inputs[kX].dims;
    cuda::PadShape shape;
    shape.rank = x.rank;
    row_strides(x, shape.strides);
    for (int axis = 0; axis < x.rank; ++axis) {
      const PadAxis pad = pads_[static_cast<size_t>(axis)];
      shape.dims[axis] = outputs[0].dims.d[axis];
      shape.begin[axis] = pad.begin;
      shape.first[axis] = std::max<int64_t>(-pad.begin, 0);
      shape.last[axis] = x[axis] + std::min<int64_t>(pad.end, 0);
    }
    check_cuda(cuda::pad(shape, mode_, bytes_, inputs[kX].data, has_value_ ? inputs[kValue].data : nullptr,
                         outputs[0].data, cuda_stream(exec)));
  }

 private:
  std::vector<PadAxis> pads_;
  cuda::PadMode mode_ = cuda::PadMode::kConstant;
  int bytes_ = 0;
  bool has_value_ = false;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.pad.cuda", "1", "Apache-2.0",
             tenon::plugins::cuda_kernel<tenon::plugins::PadCuda>("tenon.pad/1", "tenon.pad.copy.cuda")
                 .more_combos([](const tenon::Site& site, tenon::Combos& combos) {
                   tenon::plugins::move_bytes(site.dtype(0));
                   const tenon::Port port = tenon::row(site.dtype(0)), none = tenon::any_constant();
                   std::vector<tenon::Port> inputs = {port, none};
                   if (site.num_inputs() > 2) inputs.push_back(site.has_input(2) ? port : none);
                   if (site.num_inputs() > 3) inputs.push_back(none);
                   combos.add(tenon::ComboSpec(inputs, std::vector<tenon::Port>{port}));
                 }))
