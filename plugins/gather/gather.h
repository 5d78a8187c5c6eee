// The geometry of tenon.gather/1, tenon.gather_nd/1 and tenon.gather_elements/1, shared by definitions and kernels.
#ifndef TENON_PLUGINS_GATHER_GATHER_H_
#define TENON_PLUGINS_GATHER_GATHER_H_

#include <algorithm>
#include <tenon/sdk/kernel.hpp>

#include "kernels/common/gather.h"
#include "plugins/common/move.h"

namespace tenon::plugins {

inline kernels::Indices to_indices(const TnTensor& tensor) { return {tensor.data, tensor.dtype == TN_I64}; }

// x and indices as they are, row-major.
inline void add_gather_combos(const Site& site, Combos& combos) {
  move_bytes(site.dtype(0));
  const Port port = row(site.dtype(0));
  combos.add(ComboSpec({port, row(site.dtype(1))}, {port}));
}

inline int gather_axis(const Attrs& attrs, const Dims& x) { return normalize_axis(attrs.i64("axis"), x.rank); }

inline kernels::GatherShape gather_shape(int axis, const Dims& x, const Dims& indices) {
  kernels::GatherShape shape;
  shape.batches = x.product(0, axis);
  shape.tuples = indices.elements();
  shape.inner = x.product(axis + 1, x.rank);
  shape.sizes[0] = x[axis];
  shape.shared = true;
  return shape;
}

struct GatherNd {
  Dims output;
  int batch_dims = 0;
  kernels::GatherShape shape;

  GatherNd(const Attrs& attrs, const Dims& x, const Dims& indices) {
    const int64_t batch = attrs.i64("batch_dims");
    if (x.rank < 1 || indices.rank < 1) {
      throw Invalid(
          text("expected an input and indices of rank 1 or more, found ", to_text(x), " and ", to_text(indices)));
    }
    if (batch < 0 || batch >= std::min(x.rank, indices.rank)) {
      throw Invalid(
          text("attribute 'batch_dims': expected 0 to ", std::min(x.rank, indices.rank) - 1, ", found ", batch));
    }
    batch_dims = static_cast<int>(batch);
    const int64_t depth = indices[indices.rank - 1];
    if (depth < 1 || depth > x.rank - batch) {
      throw Invalid(text("input 'indices': expected 1 to ", x.rank - batch, " indices in a tuple for ", to_text(x),
                         " with ", batch, " batch dims, found ", depth));
    }
    for (int axis = 0; axis < batch_dims; ++axis) {
      if (x[axis] != indices[axis]) {
        throw Invalid(text("input 'indices': expected the batch dims of ", to_text(x), ", found ", to_text(indices)));
      }
    }
    for (int axis = 0; axis + 1 < indices.rank; ++axis) output.push_back(indices[axis]);
    const int rest = batch_dims + static_cast<int>(depth);
    for (int axis = rest; axis < x.rank; ++axis) output.push_back(x[axis]);
    shape.batches = x.product(0, batch_dims);
    shape.tuples = indices.product(batch_dims, indices.rank - 1);
    shape.inner = x.product(rest, x.rank);
    shape.depth = static_cast<int>(depth);
    std::copy(x.d + batch_dims, x.d + rest, shape.sizes);
  }
};

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_GATHER_GATHER_H_
