// tenon.global_avg_pool/1 and Tenon's own kernel for it.
#include <tenon/sdk/plugin.hpp>

#include "kernels/cpu/pool.h"
#include "plugins/common/cell_combos.h"
#include "plugins/common/layout.h"
#include "plugins/common/parallel.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

void global_avg_pool_infer(const Infer& question) {
  const Tensor x = question.input(0, 4);
  if (!is_floating(x.dtype())) throw Invalid(text("input x: expected a floating dtype, found ", dtype_name(x.dtype())));
  if (x.dim(2) < 1 || x.dim(3) < 1) {
    throw Invalid(text("input x: expected images with at least one cell, found shape ", to_text(x.dims())));
  }
  question.output(0, x.dtype(), {x.dim(0), x.dim(1), 1, 1});
}

void global_avg_pool_reference(const Reference& call) {
  const int64_t channels = call.input(0).dim(1);
  const int64_t cells = call.input(0).dim(2) * call.input(0).dim(3);
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      const T* image = x + (index[0] * channels + index[1]) * cells;
      double sum = 0.0;
      for (int64_t cell = 0; cell < cells; ++cell) sum += static_cast<double>(image[cell]);
      return static_cast<T>(sum / static_cast<double>(cells));
    });
  });
}

class GlobalAvgPoolKernel final : public IPlugin {
 public:
  void configure(const Config& config) override { layout_ = to_layout(config.combo().input(0).format); }
  void enqueue(const Exec& exec, const TnTensor* inputs, const TnTensor* outputs) const override {
    const int64_t* x = inputs[0].dims.d;
    cpu::pool_global_average(layout_, x[0], x[1], x[2], x[3], static_cast<const float*>(inputs[0].data),
                             static_cast<float*>(outputs[0].data), to_parallel(exec), cpu::detect_isa());
  }

 private:
  cpu::Layout layout_ = cpu::Layout::kNchw;
};

Definitions global_avg_pool_definitions() {
  Kernel definition = kernel<GlobalAvgPoolKernel>("tenon.global_avg_pool/1", "tenon.global_avg_pool.vector.f32");
  for (auto port : image_ports()) definition.combo({port(TN_F32)}, {port(TN_F32)});
  definition.more_combos(
      [](const Site& site, Combos& combos) { add_cell_combos(site, combos, TN_F32, image_ports()); });
  return {op("tenon.global_avg_pool/1")
              .doc("Mean of each channel of an image. y[n, c, 0, 0] = sum over h, w of x[n, c, h, w] / (h * w)")
              .input("x", "[n, c, h, w]")
              .output("y", "[n, c, 1, 1]")
              .infer(global_avg_pool_infer)
              .reference(global_avg_pool_reference)
              .tolerance([](const Attrs&, int32_t dtype) { return sum_tolerance(dtype); }),
          definition.deterministic()};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.global_avg_pool", "1", "Apache-2.0", tenon::plugins::global_avg_pool_definitions())
