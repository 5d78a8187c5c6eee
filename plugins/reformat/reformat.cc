// tenon.reformat/1: the same values in another memory format. The builder inserts it between layers whose formats
// differ, and to copy a network input that is also an output. Not for models: it does nothing to values.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/reformat.h"
#include "plugins/common/move.h"

namespace tenon::plugins {
namespace {

// A port of the format that `attribute` names; Declined for one that is not known here.
Port named_port(const Site& site, const char* attribute) {
  const std::string name = site.attrs().str(attribute);
  const int32_t dtype = site.dtype(0);
  if (name == "row") return row(dtype);
  if (name == "nhwc") return nhwc(dtype);
  if (name == "nchw8c") return nchw8c(dtype);
  if (name == "nchw16c") return nchw16c(dtype);
  throw Declined(text("attribute '", attribute, "': it knows row, nhwc, nchw8c and nchw16c, found ", name));
}

void reformat_combos(const Site& site, Combos& combos) {
  const Port from = named_port(site, "from"), to = named_port(site, "to");
  const bool rows = is_row(from.format) && is_row(to.format);
  if (!rows && site.dims(0).rank != 4) throw Declined("image formats need rank 4");
  if (!rows && move_bytes(site.dtype(0)) != 4) throw Declined("image formats need elements of 4 bytes");
  combos.add(ComboSpec({from}, {to}));
}

class ReformatKernel final : public IPlugin {
 public:
  void configure(const Config& config) override {
    from_ = config.combo().input(0).format;
    to_ = config.combo().output(0).format;
    bytes_ = move_bytes(config.site().dtype(0));
  }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    if (is_row(from_) && is_row(to_)) {
      const int64_t count = Dims(inputs[0].dims).elements(), stride = 1;
      cpu::copy_strided(1, &count, &stride, &stride, bytes_, inputs[0].data, outputs[0].data, to_parallel(exec));
      return;
    }
    const int64_t* d = inputs[0].dims.d;
    cpu::reformat(to_layout(from_), to_layout(to_), d[0], d[1], d[2], d[3], inputs[0].data, outputs[0].data,
                  to_parallel(exec));
  }

 private:
  TnFormat from_{}, to_{};
  int bytes_ = 0;
};

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.reformat", "1", "Apache-2.0",
             tenon::op("tenon.reformat/1")
                 .doc("The same values in another memory format. y = x")
                 .attr_str("from",
                           "format of x: row, nhwc, nchw8c, nchw16c, or a vendor's; bf16:row and so on where the f32 "
                           "numbers are rounded to bf16")
                 .default_value("row")
                 .attr_str("to", "format of y, likewise")
                 .default_value("row")
                 .input("x", "any dtype of 1, 2, 4 or 8 bytes")
                 .output("y", "as x")
                 .infer([](const tenon::Infer& question) {
                   question.output(0, question.input(0).dtype(), question.input(0).dims());
                 })
                 .reference([](const tenon::Reference& call) {
                   tenon::plugins::copy_reference(call, 0, [](const int64_t*, int64_t linear) { return linear; });
                 })
                 .tolerance(0, 0),
             tenon::kernel<tenon::plugins::ReformatKernel>("tenon.reformat/1", "tenon.reformat.copy")
                 .deterministic()
                 .more_combos(tenon::plugins::reformat_combos))
