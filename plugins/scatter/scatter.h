// What the ops of this plugin share.
#ifndef TENON_PLUGINS_SCATTER_SCATTER_H_
#define TENON_PLUGINS_SCATTER_SCATTER_H_

#include <tenon/sdk/plugin.hpp>
#include <vector>

#include "kernels/common/gather.h"
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

// The shape of scatter_nd, and the dims that the updates must have.
inline kernels::GatherShape nd_shape(const Dims& x, const Dims& indices, Dims* updates) {
  if (x.rank < 1 || indices.rank < 1) {
    throw Invalid(text("expected data and indices of rank 1 or more, found ", to_text(x), " and ", to_text(indices)));
  }
  const int64_t depth = indices[indices.rank - 1];
  if (depth < 1 || depth > x.rank) {
    throw Invalid(
        text("input 'indices': expected 1 to ", x.rank, " indices in a tuple for ", to_text(x), ", found ", depth));
  }
  for (int axis = 0; axis + 1 < indices.rank; ++axis) updates->push_back(indices[axis]);
  for (int axis = static_cast<int>(depth); axis < x.rank; ++axis) updates->push_back(x[axis]);
  kernels::GatherShape shape;
  shape.depth = static_cast<int>(depth);
  shape.tuples = indices.product(0, indices.rank - 1);
  shape.inner = x.product(shape.depth, x.rank);
  std::copy(x.d, x.d + depth, shape.sizes);
  return shape;
}

Definitions tensor_scatter_definitions();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_SCATTER_SCATTER_H_
