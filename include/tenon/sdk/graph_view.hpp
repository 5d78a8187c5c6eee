/// GraphView: the graph as fusion rules and importers see and change it. Used by one thread at a time.
#ifndef TENON_SDK_GRAPH_VIEW_HPP
#define TENON_SDK_GRAPH_VIEW_HPP

#include <optional>
#include <string>
#include <vector>

#include "attrs.hpp"
#include "format.hpp"

namespace tenon {
inline namespace sdk {

/// A host tensor, packed row-major, over memory that outlives it.
inline TnTensor host_tensor(int32_t dtype, const Dims& dims, const void* data) {
  TnTensor tensor{};
  tensor.data = const_cast<void*>(data);
  tensor.dtype = dtype;
  tensor.memory = TN_MEMORY_HOST;
  tensor.format = row_format();
  tensor.dims = dims;
  row_strides(dims, tensor.strides);
  return tensor;
}

/// Every failure of the host ends the plugin's call with the host's own reason.
class GraphView {
 public:
  GraphView(const TnHost* host, TnGraph* graph) : host_(host), graph_(graph), read_(graph) {}
  /// For reading only: the functions below "Writing" throw.
  GraphView(const TnHost* host, const TnGraph* graph) : host_(host), graph_(nullptr), read_(graph) {}

  std::string node_op(TnNodeId node) const { return api().node_op(read_, node); }
  std::string node_name(TnNodeId node) const { return api().node_name(read_, node); }
  Attrs node_attrs(TnNodeId node) const { return {host_, api().node_attrs(read_, node)}; }
  int num_inputs(TnNodeId node) const { return static_cast<int>(api().node_num_inputs(read_, node)); }
  int num_outputs(TnNodeId node) const { return static_cast<int>(api().node_num_outputs(read_, node)); }
  /// TN_NO_ID if the optional input is absent.
  TnValueId input(TnNodeId node, int n) const {
    return n < num_inputs(node) ? api().node_input(read_, node, static_cast<uint32_t>(n)) : TN_NO_ID;
  }
  TnValueId output(TnNodeId node, int n = 0) const { return api().node_output(read_, node, static_cast<uint32_t>(n)); }
  std::string value_name(TnValueId value) const { return api().value_name(read_, value); }
  TnTensor value_desc(TnValueId value) const {
    TnTensor desc{};
    check_host(api().value_desc(read_, value, &desc));
    return desc;
  }
  Dims value_dims(TnValueId value) const { return value_desc(value).dims; }
  /// TN_NO_ID if there is none of this name.
  TnValueId find_value(const std::string& name) const { return api().find_value(read_, name.c_str()); }
  /// TN_NO_ID for inputs and constants.
  TnNodeId producer(TnValueId value) const { return api().value_producer(read_, value); }
  /// Nothing if the value is not constant.
  std::optional<TnTensor> value_const(TnValueId value) const {
    TnTensor tensor{};
    const TnStatus status = api().value_const(read_, value, &tensor);
    if (status == TN_NOTFOUND) return std::nullopt;
    check_host(status);
    return tensor;
  }

  // Writing.

  TnValueId add_input(const std::string& name, int32_t dtype, const Dims& dims) {
    TnValueId value = TN_NO_ID;
    check_host(api().new_input(writable(), name.c_str(), dtype, &dims, &value));
    return value;
  }
  /// The data is copied.
  TnValueId add_const(const std::string& name, const TnTensor& tensor) {
    TnValueId value = TN_NO_ID;
    check_host(api().new_const(writable(), name.empty() ? nullptr : name.c_str(), &tensor, &value));
    return value;
  }
  TnValueId add_const(const std::string& name, const Dims& dims, const float* data) {
    return add_const(name, host_tensor(TN_F32, dims, data));
  }
  TnValueId add_const(const std::string& name, const Dims& dims, const int64_t* data) {
    return add_const(name, host_tensor(TN_I64, dims, data));
  }
  /// A node with several outputs. `name` empty: the host names it. Absent inputs are TN_NO_ID.
  std::vector<TnValueId> add_node(const std::string& op, const std::string& name, const NewAttrs& attrs,
                                  const std::vector<TnValueId>& inputs, int num_outputs) {
    std::vector<TnValueId> outputs(static_cast<size_t>(num_outputs), TN_NO_ID);
    check_host(api().new_node(writable(), op.c_str(), name.empty() ? nullptr : name.c_str(), attrs.raw(), inputs.data(),
                              static_cast<uint32_t>(inputs.size()), nullptr, outputs.data(),
                              static_cast<uint32_t>(outputs.size()), nullptr));
    return outputs;
  }
  /// A node with one output.
  TnValueId add_node(const std::string& op, const std::string& name, const NewAttrs& attrs,
                     const std::vector<TnValueId>& inputs) {
    return add_node(op, name, attrs, inputs, 1)[0];
  }
  void replace(TnValueId old_value, TnValueId new_value) {
    check_host(api().replace(writable(), old_value, new_value));
  }
  void rename(TnValueId value, const std::string& name) {
    check_host(api().rename_value(writable(), value, name.c_str()));
  }
  void add_output(TnValueId value) { check_host(api().add_output(writable(), value)); }
  void set_metadata(const std::string& key, const std::string& text) {
    check_host(api().set_metadata(writable(), key.c_str(), text.c_str()));
  }

  /// Empty attributes to fill for add_node, or a copy of some.
  NewAttrs attrs() const { return NewAttrs(host_); }
  NewAttrs attrs(const Attrs& from) const { return NewAttrs(host_, from.raw()); }
  const TnHost* host() const { return host_; }

 private:
  const TnGraphApi& api() const { return *host_->graph; }
  TnGraph* writable() const {
    if (!graph_) throw Failure(TN_INTERNAL, "a check must not change the graph");
    return graph_;
  }
  const TnHost* host_;
  TnGraph* graph_;
  const TnGraph* read_;
};

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_GRAPH_VIEW_HPP
