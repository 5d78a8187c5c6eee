/// Walking over a box of a tensor, as op references do.
#ifndef TENON_SDK_BOX_HPP
#define TENON_SDK_BOX_HPP

#include <cstdint>

#include "tensor.hpp"

namespace tenon {
inline namespace sdk {

inline bool box_is_empty(const TnDims& dims, const TnBox& box) {
  for (int axis = 0; axis < dims.rank; ++axis) {
    if (box.size[axis] <= 0) return true;
  }
  return false;
}

/// Calls body(index, linear, packed) for every element of the box, in row-major order. index: its position in the whole
/// tensor, one number per axis; linear: its row-major number in the whole tensor; packed: its number in the box, which
/// is where the result goes. A tensor of rank 0 has one element.
template <class Body>
void for_each_in_box(const TnDims& dims, const TnBox& box, Body&& body) {
  if (box_is_empty(dims, box)) return;
  int64_t index[TN_MAX_RANK] = {};
  if (dims.rank <= 0) {
    body(static_cast<const int64_t*>(index), int64_t{0}, int64_t{0});
    return;
  }
  int64_t strides[TN_MAX_RANK] = {};
  row_strides(dims, strides);
  for (int axis = 0; axis < dims.rank; ++axis) index[axis] = box.start[axis];
  const int last = dims.rank - 1;
  for (int64_t packed = 0;;) {
    int64_t linear = 0;
    for (int axis = 0; axis < dims.rank; ++axis) linear += index[axis] * strides[axis];
    for (int64_t n = 0; n < box.size[last]; ++n, ++index[last]) {
      body(static_cast<const int64_t*>(index), linear++, packed++);
    }
    index[last] = box.start[last];
    int axis = last - 1;
    while (axis >= 0 && ++index[axis] == box.start[axis] + box.size[axis]) {
      index[axis] = box.start[axis];
      --axis;
    }
    if (axis < 0) return;
  }
}

/// Strides with which an operand of shape `dims` is read at an index of `out` under numpy's broadcasting: axes are
/// aligned at the end, and an axis that is absent or 1 has stride 0.
inline void broadcast_strides(const TnDims& dims, const TnDims& out, int64_t* strides) {
  int64_t own[TN_MAX_RANK] = {};
  row_strides(dims, own);
  for (int axis = 0; axis < out.rank; ++axis) {
    const int mine = axis - (out.rank - dims.rank);
    strides[axis] = mine < 0 || dims.d[mine] == 1 ? 0 : own[mine];
  }
}

/// The shape that two shapes broadcast to. Invalid if they do not fit.
inline Dims broadcast_dims(const Dims& a, const Dims& b) {
  Dims result;
  result.rank = a.rank > b.rank ? a.rank : b.rank;
  for (int axis = 1; axis <= result.rank; ++axis) {
    const int64_t x = axis <= a.rank ? a.d[a.rank - axis] : 1;
    const int64_t y = axis <= b.rank ? b.d[b.rank - axis] : 1;
    if (x != y && x != 1 && y != 1) {
      throw Invalid(text("shapes ", to_text(a), " and ", to_text(b), " do not broadcast: expected equal sizes or 1 at ",
                         "axis ", result.rank - axis, ", found ", x, " and ", y));
    }
    result.d[result.rank - axis] = x == 1 ? y : x;
  }
  return result;
}

/// Offset of `index` under `strides`.
inline int64_t offset_of(const int64_t* index, const int64_t* strides, int rank) {
  int64_t offset = 0;
  for (int axis = 0; axis < rank; ++axis) offset += index[axis] * strides[axis];
  return offset;
}

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_BOX_HPP
