// Which axes tenon.reduce_* fold, shared by their definitions and kernels.
#ifndef TENON_PLUGINS_REDUCE_REDUCE_H_
#define TENON_PLUGINS_REDUCE_REDUCE_H_

#include <tenon/sdk/attrs.hpp>
#include <tenon/sdk/tensor.hpp>

namespace tenon::plugins {

struct Reduction {
  bool reduced[TN_MAX_RANK] = {};
  Dims output;
  int64_t count = 1;  // elements of the input behind one of the output

  // `axes` is nullptr where that input is absent. Invalid if its contents are not known.
  Reduction(const Attrs& attrs, const Dims& x, const Tensor* axes) {
    if (axes != nullptr) add(x, *axes);
    const bool none = axes == nullptr || axes->elements() == 0;
    for (int axis = 0; axis < x.rank; ++axis) {
      if (none) reduced[axis] = !attrs.flag("noop_with_empty_axes");
      if (!reduced[axis]) {
        output.push_back(x[axis]);
      } else if (attrs.flag("keepdims")) {
        output.push_back(1);
      }
    }
    for (int axis = 0; axis < x.rank; ++axis) {
      if (reduced[axis] && x[axis] == 0) count = 0;
    }
    for (int axis = 0; axis < x.rank; ++axis) {
      if (reduced[axis]) count = count == 0 ? 0 : count * x[axis];
    }
  }

 private:
  void add(const Dims& x, const Tensor& axes) {
    if (axes.dtype() != TN_I64 && axes.dtype() != TN_I32) {
      throw Invalid(text("input axes: expected i32 or i64, found ", dtype_name(axes.dtype())));
    }
    if (axes.rank() > 1) throw Invalid(text("input axes: expected rank 1, found shape ", to_text(axes.dims())));
    if (axes.elements() == 0) return;
    if (!axes.has_data()) throw Invalid("input axes: its contents must be known when the network is built");
    for (int64_t n = 0; n < axes.elements(); ++n) {
      const int axis = normalize_axis(axes.integer(n), x.rank, "axes");
      if (reduced[axis]) throw Invalid(text("input axes: axis ", axis, " is named twice"));
      reduced[axis] = true;
    }
  }
};

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_REDUCE_REDUCE_H_
