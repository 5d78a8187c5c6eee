// Which axes tenon.reduce_* fold.
#ifndef TENON_PLUGINS_COMMON_REDUCTION_H_
#define TENON_PLUGINS_COMMON_REDUCTION_H_

#include <tenon/sdk/attrs.hpp>
#include <tenon/sdk/graph_view.hpp>
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

// What a node of a graph folds. Declined if its axes are not constant.
inline Reduction reduction_of(const GraphView& graph, TnNodeId node) {
  const Attrs attrs = graph.node_attrs(node);
  const Dims x = graph.value_dims(graph.input(node, 0));
  if (graph.input(node, 1) == TN_NO_ID) return {attrs, x, nullptr};
  const std::optional<TnTensor> constant = graph.value_const(graph.input(node, 1));
  if (!constant) throw Declined("the axes are not constant");
  const Tensor axes(*constant);
  return {attrs, x, &axes};
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_REDUCTION_H_
