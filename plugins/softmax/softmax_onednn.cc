// tenon.softmax/1 through oneDNN.
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/onednn_make.hpp"

namespace tenon::plugins {
namespace {

OnednnDesc<OnednnSoftmax> softmax_desc(const Site& site) {
  const int axis = normalize_axis(site.attrs().i64("axis"), site.dims(0).rank);
  const dnnl::memory::desc x = onednn_row(TN_F32, site.dims(0));
  const OnednnThreads threads(site.threads());
  return onednn_or_decline([&] { return make_softmax(x, x, axis, onednn_attr()); });
}

class SoftmaxOnednn final : public IPlugin {
 public:
  void configure(const Config& config) override {
    auto desc = softmax_desc(config.site());
    select_impl(&desc, config.params().str("impl"));
    tensor_ = onednn_row(TN_F32, config.site().dims(0));
    sizes_.workspace = onednn_scratchpad(desc);
    const OnednnThreads threads(config.site().threads());
    primitive_ = OnednnPrimitive(desc);
  }
  Sizes sizes() const override { return sizes_; }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    primitive_.execute(exec.threads(),
                       {{DNNL_ARG_SRC, &tensor_, inputs[0].data}, {DNNL_ARG_DST, &tensor_, outputs[0].data}},
                       exec.workspace<void>());
  }

 private:
  dnnl::memory::desc tensor_;
  Sizes sizes_;
  OnednnPrimitive primitive_;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.softmax.onednn", "1", "Apache-2.0",
             tenon::kernel<tenon::plugins::SoftmaxOnednn>("tenon.softmax/1", "tenon.softmax.onednn.f32")
                 .combo({tenon::f32_row()}, {tenon::f32_row()})
                 .may_alias(0, 0)
                 .deterministic()
                 .supports([](const tenon::Site& site) { tenon::plugins::onednn_supports(site); })
                 .tactics([](const tenon::Site& site, const tenon::Combo&, tenon::Tactics& tactics) {
                   tenon::plugins::add_onednn_tactics(tenon::plugins::softmax_desc(site), tactics);
                 }))
