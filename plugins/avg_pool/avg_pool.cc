// tenon.avg_pool/1 and Tenon's own kernel for it.
#include <algorithm>
#include <memory>
#include <tenon/sdk/plugin.hpp>

#include "plugins/common/pool_geometry.h"
#include "plugins/common/tolerance.h"

namespace tenon::plugins {
namespace {

// Cells of a window along one axis that lie inside the image and its pads.
int64_t padded_cells(int64_t start, int64_t kernel, int64_t dilation, int64_t size, int64_t begin, int64_t end) {
  int64_t cells = 0;
  for (int64_t n = 0; n < kernel; ++n) {
    const int64_t at = start + n * dilation;
    cells += at >= -begin && at < size + end;
  }
  return cells;
}

void avg_pool_reference(const Reference& call) {
  const cpu::PoolGeometry g = pool_geometry(call.attrs(), call.input(0).dims());
  const bool include = call.attrs().flag("count_include_pad");
  visit_floating(call.output(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* x = call.input(0).data<T>();
    call.fill<T>(0, [&](const int64_t* index, int64_t) {
      const T* image = x + (index[0] * g.c + index[1]) * g.h * g.w;
      double sum = 0.0;
      int64_t count = 0;
      for_each_window_cell(g, index[2], index[3], [&](int64_t row, int64_t column) {
        sum += static_cast<double>(image[row * g.w + column]);
        ++count;
      });
      if (include) {
        count =
            padded_cells(index[2] * g.stride_h - g.pad_top, g.kernel_h, g.dilation_h, g.h, g.pad_top, g.pad_bottom) *
            padded_cells(index[3] * g.stride_w - g.pad_left, g.kernel_w, g.dilation_w, g.w, g.pad_left, g.pad_right);
      }
      return static_cast<T>(count > 0 ? sum / static_cast<double>(count) : 0.0);
    });
  });
}

Definitions avg_pool_definitions() {
  Op definition = op("tenon.avg_pool/1");
  definition
      .doc(
          "Mean of each window of an image: the sum of its cells inside the image, divided by their number, or "
          "by the number of its cells inside the image and its pads; 0 where that is 0")
      .input("x", "[n, c, h, w]")
      .output("y", "[n, c, oh, ow]")
      .infer(pool_infer)
      .reference(avg_pool_reference)
      .tolerance([](const Attrs&, int32_t dtype) { return pointwise_tolerance(dtype); });
  add_pool_attributes(definition);
  definition.attr_i64("count_include_pad", "1: cells of the pads count").default_value("0").range("0|1");
  Kernel kernel("tenon.avg_pool/1", "tenon.avg_pool.vector.f32", [] {
    return std::make_unique<PoolKernel>([](const Attrs& attrs) {
      return attrs.flag("count_include_pad") ? cpu::PoolKind::kAverageIncludePad : cpu::PoolKind::kAverage;
    });
  });
  for (auto port : image_ports()) kernel.combo({port(TN_F32)}, {port(TN_F32)});
  kernel.deterministic().tactics(PoolKernel::tactics).more_combos(PoolKernel::more_combos);
  return {definition, kernel};
}

}  // namespace
}  // namespace tenon::plugins

TENON_PLUGIN("tenon.avg_pool", "1", "Apache-2.0", tenon::plugins::avg_pool_definitions())
