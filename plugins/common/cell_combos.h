// Combos of poolings whose result is one cell a channel.
#ifndef TENON_PLUGINS_COMMON_CELL_COMBOS_H_
#define TENON_PLUGINS_COMMON_CELL_COMBOS_H_

#include <tenon/sdk/kernel.hpp>

namespace tenon::plugins {

// From an image in each of these formats to one cell a channel in row-major order: with full blocks that is the same
// memory as in the image's own format, so whoever reads rows needs no conversion.
inline void add_cell_combos(const Site& site, Combos& combos, int32_t dtype,
                            std::initializer_list<Port (*)(int32_t)> ports) {
  const Dims y = site.max_output_dims(0);
  if (site.dtype(0) != dtype || y.rank != 4 || y[2] * y[3] != 1) return;
  for (const auto make : ports) {
    const Port port = make(dtype);
    const int block = channel_block(port.format);
    if (!is_row(port.format) && (block == 0 || y[1] % block == 0)) combos.add(ComboSpec({port}, {row(dtype)}));
  }
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_CELL_COMBOS_H_
