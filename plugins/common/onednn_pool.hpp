// max_pool and avg_pool through oneDNN, which differ in the algorithm alone.
#ifndef TENON_PLUGINS_COMMON_ONEDNN_POOL_HPP_
#define TENON_PLUGINS_COMMON_ONEDNN_POOL_HPP_

#include <memory>
#include <string>
#include <tenon/sdk/kernel.hpp>

#include "plugins/common/onednn_make.hpp"
#include "plugins/common/pool_geometry.h"

namespace tenon::plugins {

using PoolAlgorithm = dnnl::algorithm (*)(const Attrs&);

// The description for one form of both tensors. Declined where oneDNN's rules differ from the op's.
inline OnednnDesc<OnednnPooling> onednn_pool_desc(PoolAlgorithm algorithm_of, const Site& site, const TnPort& port,
                                                  int thread_count) {
  const cpu::PoolGeometry g = pool_geometry(site.attrs(), site.dims(0));
  const dnnl::algorithm algorithm = algorithm_of(site.attrs());
  // What lies behind the image so that the output size comes out; it may differ from the pads.
  const int64_t bottom = (g.oh - 1) * g.stride_h + g.dilation_h * (g.kernel_h - 1) + 1 - g.h - g.pad_top;
  const int64_t right = (g.ow - 1) * g.stride_w + g.dilation_w * (g.kernel_w - 1) + 1 - g.w - g.pad_left;
  if (std::max(g.pad_top, bottom) >= g.kernel_h * g.dilation_h ||
      std::max(g.pad_left, right) >= g.kernel_w * g.dilation_w) {
    throw Declined("a window lies outside the image, where oneDNN's rule is not the op's");
  }
  if (algorithm == dnnl::algorithm::pooling_avg_include_padding && (bottom > g.pad_bottom || right > g.pad_right)) {
    throw Declined("a window reaches behind the pads, which oneDNN counts");
  }
  const OnednnWindow window = {{g.kernel_h, g.kernel_w},
                               {g.stride_h, g.stride_w},
                               {g.dilation_h, g.dilation_w},
                               {g.pad_top, g.pad_left},
                               {bottom, right}};
  const OnednnThreads threads(thread_count);
  return onednn_or_decline([&] {
    return make_pooling(algorithm, onednn_desc(port.dtype, site.dims(0), port.format),
                        onednn_desc(port.dtype, site.output_dims(0), port.format), window, onednn_attr());
  });
}

class OnednnPoolKernel final : public IPlugin {
 public:
  explicit OnednnPoolKernel(PoolAlgorithm algorithm_of) : algorithm_of_(algorithm_of) {}

  void configure(const Config& config) override {
    const Site site = config.site();
    const TnPort& port = config.combo().input(0);
    threads_ = threads_of(site, config.params());
    auto desc = onednn_pool_desc(algorithm_of_, site, port, threads_);
    select_impl(&desc, config.params().str("impl"));
    x_ = onednn_desc(port.dtype, site.dims(0), port.format);
    y_ = onednn_desc(port.dtype, site.output_dims(0), port.format);
    sizes_.workspace = onednn_scratchpad(desc);
    const OnednnThreads threads(threads_);
    primitive_ = OnednnPrimitive(desc);
  }
  Sizes sizes() const override { return sizes_; }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    primitive_.execute(threads_, {{DNNL_ARG_SRC, &x_, inputs[0].data}, {DNNL_ARG_DST, &y_, outputs[0].data}},
                       exec.workspace<void>());
  }

 private:
  PoolAlgorithm algorithm_of_;
  dnnl::memory::desc x_, y_;
  int threads_ = 1;
  Sizes sizes_;
  OnednnPrimitive primitive_;
};

// One kernel for f32 and one for bf16: `<op>.onednn.<dtype>`.
inline Definitions onednn_pool_kernels(const std::string& op, PoolAlgorithm algorithm_of) {
  Definitions all;
  for (const int32_t dtype : {TN_F32, TN_BF16}) {
    Kernel definition(op + "/1", op + ".onednn." + dtype_name(dtype),
                      [algorithm_of] { return std::make_unique<OnednnPoolKernel>(algorithm_of); });
    for (auto port : image_ports(dtype)) definition.combo({port(dtype)}, {port(dtype)});
    if (dtype == TN_F32) definition.more_combos(PoolKernel::more_combos);
    definition.deterministic()
        .supports([dtype](const Site& site) {
          onednn_supports(site);
          if (dtype == TN_BF16) bf16_supports(site);
        })
        .tactics([algorithm_of](const Site& site, const Combo& combo, Tactics& tactics) {
          const cpu::PoolGeometry g = pool_geometry(site.attrs(), site.dims(0));
          const auto make = [&](int threads) { return onednn_pool_desc(algorithm_of, site, combo.input(0), threads); };
          add_onednn_tactics(site, g.n * g.c * g.oh * g.ow * g.kernel_h * g.kernel_w, make, tactics);
        });
    all.add(definition);
  }
  return all;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_ONEDNN_POOL_HPP_
