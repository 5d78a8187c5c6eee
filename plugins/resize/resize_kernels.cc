// tenon.resize/1 on kernels/cpu, where up to two axes change and all axes between and behind them are 1 or change too:
//   tenon.resize.nearest        elements of 1, 2, 4 or 8 bytes
//   tenon.resize.separable.f32  weights along rows, then along columns
#include <memory>
#include <tenon/sdk/kernel.hpp>

#include "kernels/cpu/resize.h"
#include "plugins/common/move.h"
#include "plugins/resize/resize.h"

namespace tenon::plugins {
namespace {

class ResizeKernel final : public IPlugin {
 public:
  explicit ResizeKernel(bool nearest) : nearest_(nearest) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    const ResizeOptions options = resize_options(site.attrs());
    const ResizeImages images = resize_images(site);
    planes_ = images.planes;
    rows_.set(options, images.rows);
    columns_.set(options, images.columns);
    bytes_ = dtype_size(site.dtype(kResizeX));
    if (!nearest_) sizes_.workspace = cpu::resize_workspace_bytes(columns_.table(), site.threads());
  }
  Sizes sizes() const override { return sizes_; }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const cpu::ResizeTable rows = rows_.table(), columns = columns_.table();
    if (nearest_) {
      cpu::resize_nearest(planes_, rows, columns, bytes_, inputs[0].data, outputs[0].data, to_parallel(exec));
    } else {
      cpu::resize_separable(planes_, rows, columns, static_cast<const float*>(inputs[0].data),
                            static_cast<float*>(outputs[0].data), exec.workspace<float>(), to_parallel(exec));
    }
  }

 private:
  struct Axis {
    ResizeAxis size;
    ResizeTaps taps;
    std::vector<float> weight;

    void set(const ResizeOptions& options, const ResizeAxis& axis) {
      size = axis;
      taps = resize_taps(options, axis);
      weight.assign(taps.weight.begin(), taps.weight.end());
    }
    cpu::ResizeTable table() const {
      return {size.in, size.out, taps.count, taps.index.data(), weight.data(), !size.changed};
    }
  };

  bool nearest_;
  int64_t planes_ = 1;
  int bytes_ = 4;
  Axis rows_, columns_;
  Sizes sizes_;
};

Kernel resize_kernel(const char* name, bool nearest) {
  return kernel("tenon.resize/1", name, [nearest] { return std::make_unique<ResizeKernel>(nearest); })
      .supports([nearest](const Site& site) {
        if ((site.attrs().str("mode") == "nearest") != nearest) throw Declined("another mode");
        if (!nearest && site.dtype(kResizeX) != TN_F32) throw Declined("it computes in f32");
        resize_images(site);
      })
      .more_combos([](const Site& site, Combos& combos) {
        move_bytes(site.dtype(kResizeX));
        const Port x = row(site.dtype(kResizeX));
        combos.add(ComboSpec({x, any_constant(), any_constant(), any_constant()}, {x}));
      })
      .tactics([](const Site& site, const Combo&, Tactics& tactics) {
        const ResizeImages images = resize_images(site);
        const bool none = site.attrs().str("mode") == "nearest";
        cpu::ResizeTable columns;
        columns.in = images.columns.in;
        tactics.add("", none ? 0 : cpu::resize_workspace_bytes(columns, site.threads()));
      })
      .deterministic();
}

}  // namespace

Definitions resize_kernels() {
  return {resize_kernel("tenon.resize.nearest", true), resize_kernel("tenon.resize.separable.f32", false)};
}

}  // namespace tenon::plugins
