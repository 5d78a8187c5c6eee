// tenon.reformat/1 from f32 to bf16, back, and between formats in bf16, through oneDNN's reorder.
#include <memory>
#include <string>

#include <tenon/sdk/plugin.hpp>

#include "plugins/common/layout.h"
#include "plugins/common/onednn.hpp"

namespace tenon::plugins {
namespace {

// "nhwc" or "bf16:nhwc"; Declined for a format that is not known here.
Port named_port(const Site& site, const char* attribute) {
  const std::string name = site.attrs().str(attribute);
  const std::string prefix = "bf16:";
  const bool narrow = name.compare(0, prefix.size(), prefix) == 0;
  const std::string format = narrow ? name.substr(prefix.size()) : name;
  const int32_t dtype = narrow ? TN_BF16 : TN_F32;
  if (format == "row") return row(dtype);
  if (format == "nhwc") return nhwc(dtype);
  if (format == "nchw8c") return nchw8c(dtype);
  if (format == "nchw16c") return nchw16c(dtype);
  throw Declined(text("attribute '", attribute, "': it knows row, nhwc, nchw8c and nchw16c, found ", name));
}

void reformat_combos(const Site& site, Combos& combos) {
  const Port from = named_port(site, "from"), to = named_port(site, "to");
  if (from.dtype == TN_F32 && to.dtype == TN_F32) throw Declined("neither side is bf16");
  const bool rows = is_row(from.format) && is_row(to.format);
  if (!rows && site.dims(0).rank != 4) throw Declined("image formats need rank 4");
  combos.add(ComboSpec({from}, {to}));
}

// Row-major tensors of any rank are one row.
dnnl::memory::desc desc_of(const Dims& dims, const TnPort& port, bool rows) {
  return onednn_desc(port.dtype, rows ? Dims{dims.elements()} : dims, port.format);
}

class ReformatOnednn final : public IPlugin {
 public:
  void configure(const Config& config) override {
    const Site site = config.site();
    const TnPort& from = config.combo().input(0);
    const TnPort& to = config.combo().output(0);
    const bool rows = is_row(from.format) && is_row(to.format);
    x_ = desc_of(site.dims(0), from, rows);
    y_ = desc_of(site.dims(0), to, rows);
    const OnednnThreads threads(site.threads());
    const auto desc = onednn_or_decline(
        [&] { return dnnl::reorder::primitive_desc(onednn_engine(), x_, onednn_engine(), y_, onednn_attr()); });
    sizes_.workspace = onednn_scratchpad(desc);
    primitive_ = OnednnPrimitive(desc);
  }
  Sizes sizes() const override { return sizes_; }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    primitive_.execute(exec.threads(), {{DNNL_ARG_FROM, &x_, inputs[0].data}, {DNNL_ARG_TO, &y_, outputs[0].data}},
                       exec.workspace<void>());
  }

 private:
  dnnl::memory::desc x_, y_;
  Sizes sizes_;
  OnednnPrimitive primitive_;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.reformat.onednn", "1", "Apache-2.0",
             tenon::kernel<tenon::plugins::ReformatOnednn>("tenon.reformat/1", "tenon.reformat.onednn.bf16")
                 .deterministic()
                 .supports([](const tenon::Site& site) {
                   tenon::plugins::onednn_supports(site);
                   tenon::plugins::bf16_supports(site);
                 })
                 .more_combos(tenon::plugins::reformat_combos))
