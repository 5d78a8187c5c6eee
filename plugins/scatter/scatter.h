// What the ops of this plugin share.
#ifndef TENON_PLUGINS_SCATTER_SCATTER_H_
#define TENON_PLUGINS_SCATTER_SCATTER_H_

#include <tenon/sdk/plugin.hpp>
#include <vector>

#include "plugins/common/move.h"

namespace tenon::plugins {

// A reference's whole result into the box that is asked for.
template <class T>
void copy_box(const Reference& call, const std::vector<T>& y) {
  T* out = static_cast<T*>(call.output(0).data());
  for_each_in_box(call.output(0).dims(), call.box(0), [&](const int64_t*, int64_t linear, int64_t packed) {
    out[packed] = y[static_cast<size_t>(linear)];
  });
}

// y = x, unless they share their memory.
inline void copy_whole(const Exec& exec, const TnTensor& x, const TnTensor& y) {
  if (x.data == y.data) return;
  const int64_t count = Tensor(x).elements(), step = 1;
  cpu::copy_strided(1, &count, &step, &step, dtype_size(x.dtype), x.data, y.data, to_parallel(exec));
}

Definitions tensor_scatter_definitions();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_SCATTER_SCATTER_H_
