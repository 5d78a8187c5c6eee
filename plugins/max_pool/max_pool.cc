// tenon.max_pool/1 and Tenon's own kernel for it.
//
// Darknet's geometry (padding is the total, default size - 1; out = (in + padding - size) / stride + 1; the window
// starts at -padding/2) is pads [p/2, p/2, p - p/2, p - p/2] with floor. That of 2017 (out = (in + 2 * padding) /
// stride, padding default (size - 1) / 2, the window starts at -padding) is begin pads p and end pads p + size -
// stride.
#include <cmath>
#include <limits>
#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/pool_geometry.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

void max_pool_reference(const Reference& call) {
  const cpu::PoolGeometry g = pool_geometry(call.attrs(), call.input(0).dims());
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      const T* image = x + (index[0] * g.c + index[1]) * g.h * g.w;
      T largest = -std::numeric_limits<T>::infinity();
      for_each_window_cell(g, index[2], index[3], [&](int64_t row, int64_t column) {
        const T value = image[row * g.w + column];
        if (value > largest || std::isnan(value)) largest = value;
      });
      return largest;
    });
  });
}

Definitions max_pool_definitions() {
  Op definition = op("tenon.max_pool/1");
  definition
      .doc(
          "Largest cell of each window of an image. Cells outside the image are ignored; a window wholly outside "
          "gives -infinity")
      .input("x", "[n, c, h, w]")
      .output("y", "[n, c, oh, ow]")
      .infer(pool_infer)
      .reference(max_pool_reference)
      .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); });
  add_pool_attributes(definition);
  Kernel kernel("tenon.max_pool/1", "tenon.max_pool.vector.f32",
                [] { return std::make_unique<PoolKernel>([](const Attrs&) { return cpu::PoolKind::kMax; }); });
  for (auto port : image_ports()) kernel.combo({port(TN_F32)}, {port(TN_F32)});
  kernel.deterministic().tactics(PoolKernel::tactics).more_combos(PoolKernel::more_combos);
  return {definition, kernel};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.max_pool", "1", "Apache-2.0", tenon::plugins::max_pool_definitions())
