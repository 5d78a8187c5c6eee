// tenon.tile/1 as a strided copy.
#ifndef TENON_PLUGINS_TILE_TILE_H_
#define TENON_PLUGINS_TILE_TILE_H_

#include <tenon/sdk/tensor.hpp>

namespace tenon::plugins {

// Each axis of y is one of repeats and one of x, which has stride 0 on the first. REQUIRES: y has elements.
struct TileCopy {
  static constexpr int kMaxRank = 2 * TN_MAX_RANK;
  int rank = 0;
  int64_t dims[kMaxRank], from[kMaxRank], to[kMaxRank];

  TileCopy(const Dims& x, const Dims& y) {
    int64_t x_strides[TN_MAX_RANK], y_strides[TN_MAX_RANK];
    row_strides(x, x_strides);
    row_strides(y, y_strides);
    for (int axis = 0; axis < x.rank; ++axis) {
      dims[rank] = y[axis] / x[axis];
      from[rank] = 0;
      to[rank++] = x[axis] * y_strides[axis];
      dims[rank] = x[axis];
      from[rank] = x_strides[axis];
      to[rank++] = y_strides[axis];
    }
  }
};

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_TILE_TILE_H_
