// What a node of tenon.reshape/1 asks for, dim by dim, for rules that have to hold for every size of a batch.
#ifndef TENON_PLUGINS_COMMON_RESHAPE_FORM_H_
#define TENON_PLUGINS_COMMON_RESHAPE_FORM_H_

#include <algorithm>
#include <tenon/sdk/fusion.hpp>
#include <vector>

#include "plugins/common/integers.h"

namespace tenon::plugins {

struct NewDim {
  enum class Kind { kNumber, kCopy, kRest };
  Kind kind = Kind::kNumber;
  int64_t value = 0;  // the number, or the axis of x that is copied

  bool copies(int64_t axis) const { return kind == Kind::kCopy && value == axis; }
  bool is_rest() const { return kind == Kind::kRest; }
};

// Declined if the shape is computed at run time.
inline std::vector<NewDim> reshape_form(const GraphView& graph, TnNodeId node) {
  const Attrs attrs = graph.node_attrs(node);
  std::vector<int64_t> shape;
  if (graph.input(node, 1) == TN_NO_ID) {
    const List<int64_t> given = attrs.i64s("shape");
    shape.assign(given.begin(), given.end());
  } else {
    const std::optional<TnTensor> given = graph.value_const(graph.input(node, 1));
    if (!given) throw Declined("the shape is computed at run time");
    shape = integers(Tensor(*given));
  }
  std::vector<NewDim> form;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t size = shape[axis];
    int64_t from = size == 0 && !attrs.flag("allow_zero") ? static_cast<int64_t>(axis) : -1;
    if (attrs.has_i64s("copies")) from = attrs.i64s("copies")[static_cast<int>(axis)];
    form.push_back(from >= 0  ? NewDim{NewDim::Kind::kCopy, from}
                   : size < 0 ? NewDim{NewDim::Kind::kRest, 0}
                              : NewDim{NewDim::Kind::kNumber, size});
  }
  return form;
}

// Whether axis 0 stays a batch of any size: it is copied or worked out, or no axis can vary. Axes that are numbers in
// the form are taken not to vary otherwise.
inline bool keeps_batch(const std::vector<NewDim>& form) {
  const auto is_number = [](const NewDim& dim) { return dim.kind == NewDim::Kind::kNumber; };
  return std::all_of(form.begin(), form.end(), is_number) || form[0].copies(0) || form[0].is_rest();
}

// `old_value` is what `new_value` is already. Declined where both are known by name outside.
inline void replace_by(GraphView& graph, TnValueId old_value, TnValueId new_value) {
  try {
    graph.replace(old_value, new_value);
  } catch (const HostFailure&) {
    throw Declined("both are inputs or outputs of the network and keep their names");
  }
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_RESHAPE_FORM_H_
