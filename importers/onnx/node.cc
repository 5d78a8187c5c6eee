#include "importers/onnx/node.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "importers/onnx/tensors.h"
#include "importers/onnx/translate.h"

namespace tenon::onnx {
namespace {

using Attribute = pb::AttributeProto;

template <class T, class List>
std::vector<T> to_list(const List& list) {
  return std::vector<T>(list.begin(), list.end());
}

}  // namespace

const std::string& OnnxNode::type() const { return proto_.op_type(); }
GraphView& OnnxNode::graph_view() const { return translator_.graph_; }

const Attribute* OnnxNode::find(const char* name) const {
  for (const Attribute& attr : proto_.attribute()) {
    if (attr.name() != name) continue;
    if (attr.ref_attr_name().empty()) return &attr;
    if (call_.node == nullptr) throw Invalid(text("attribute ", name, " refers to one of a function, outside of any"));
    if (const Attribute* given = call_.node->find(attr.ref_attr_name().c_str())) return given;
    for (const Attribute& fallback : call_.function->attribute_proto()) {
      if (fallback.name() == attr.ref_attr_name()) return &fallback;
    }
    return nullptr;
  }
  return nullptr;
}

const Attribute* OnnxNode::need(const char* name, int type, bool required) const {
  const Attribute* attr = find(name);
  if (attr == nullptr) {
    if (required) throw Invalid(text("the attribute ", name, " is required but absent"));
    return nullptr;
  }
  // Old models leave the type out.
  if (attr->has_type() && attr->type() != type) {
    throw Invalid(text("attribute ", name, ": expected type ", type, " of AttributeProto, found ", attr->type()));
  }
  return attr;
}

int64_t OnnxNode::i64(const char* name, std::optional<int64_t> absent) const {
  const Attribute* attr = need(name, Attribute::INT, !absent);
  return attr != nullptr ? attr->i() : *absent;
}
double OnnxNode::f64(const char* name, std::optional<double> absent) const {
  const Attribute* attr = need(name, Attribute::FLOAT, !absent);
  return attr != nullptr ? static_cast<double>(attr->f()) : *absent;
}
std::string OnnxNode::str(const char* name, std::optional<std::string> absent) const {
  const Attribute* attr = need(name, Attribute::STRING, !absent);
  return attr != nullptr ? attr->s() : *absent;
}
std::vector<int64_t> OnnxNode::i64s(const char* name, std::optional<std::vector<int64_t>> absent) const {
  const Attribute* attr = need(name, Attribute::INTS, !absent);
  return attr != nullptr ? to_list<int64_t>(attr->ints()) : *absent;
}
std::vector<double> OnnxNode::f64s(const char* name, std::optional<std::vector<double>> absent) const {
  const Attribute* attr = need(name, Attribute::FLOATS, !absent);
  return attr != nullptr ? to_list<double>(attr->floats()) : *absent;
}
std::vector<std::string> OnnxNode::strs(const char* name, std::optional<std::vector<std::string>> absent) const {
  const Attribute* attr = need(name, Attribute::STRINGS, !absent);
  return attr != nullptr ? to_list<std::string>(attr->strings()) : *absent;
}
TnValueId OnnxNode::tensor(const char* name) {
  return constant(read_tensor(need(name, Attribute::TENSOR, true)->t(), &translator_.source_).tensor);
}
const pb::GraphProto& OnnxNode::graph(const char* name) const { return need(name, Attribute::GRAPH, true)->g(); }

void OnnxNode::only(const char* name, int64_t value) const {
  const int64_t found = i64(name, value);
  if (found != value) throw Unsupported{text("attribute ", name, " = ", found)};
}

const Item& OnnxNode::item(int n) const {
  if (n >= num_inputs() || (inputs_[static_cast<size_t>(n)].kind == Item::Kind::kNone)) {
    throw Invalid(text("input ", n, " is required but absent"));
  }
  return inputs_[static_cast<size_t>(n)];
}

TnValueId OnnxNode::input(int n) const {
  const Item& found = item(n);
  if (found.kind != Item::Kind::kTensor) throw Invalid(text("input ", n, ": expected a tensor, found a sequence"));
  return found.value;
}

std::vector<TnValueId> OnnxNode::inputs_from(int first) const {
  std::vector<TnValueId> values;
  for (int n = first; n < num_inputs(); ++n) values.push_back(input(n));
  return values;
}

std::optional<std::vector<int64_t>> OnnxNode::contents_i64s(TnValueId value) const {
  const std::optional<TnTensor> tensor = graph_view().value_const(value);
  if (!tensor) return std::nullopt;
  const int64_t count = Dims(tensor->dims).elements();
  std::vector<int64_t> values(static_cast<size_t>(count));
  if (tensor->dtype == TN_I64) {
    std::memcpy(values.data(), tensor->data, values.size() * sizeof(int64_t));
  } else if (tensor->dtype == TN_I32) {
    std::copy_n(static_cast<const int32_t*>(tensor->data), count, values.data());
  } else {
    throw Invalid(text("expected a list of i32 or i64, found ", dtype_name(tensor->dtype)));
  }
  return values;
}

std::optional<std::vector<int64_t>> OnnxNode::known_i64s(int n) const {
  if (!has_input(n)) return std::nullopt;
  auto values = contents_i64s(input(n));
  if (!values) throw Unsupported{text("input ", n, " is computed at run time; its contents have to be known")};
  return values;
}

std::optional<double> OnnxNode::known_scalar(int n) const {
  if (!has_input(n)) return std::nullopt;
  // Whatever the type, the host's cast tells the number.
  const TnValueId number =
      dtype(n) == TN_F64 ? input(n)
                         : translator_.graph_.add_node("tenon.cast/1", translator_.node_names_.make(name_ + ".number"),
                                                       attrs().dtype("to", TN_F64), {input(n)});
  const std::optional<TnTensor> tensor = graph_view().value_const(number);
  if (!tensor) throw Unsupported{text("input ", n, " is computed at run time; its contents have to be known")};
  if (Dims(tensor->dims).elements() != 1) {
    throw Invalid(text("input ", n, ": expected one element, found dims ", to_text(tensor->dims)));
  }
  double value = 0;
  std::memcpy(&value, tensor->data, sizeof value);
  return value;
}

bool OnnxNode::wants(int n) const { return n < num_outputs_ && !proto_.output(n).empty(); }

void OnnxNode::output(int n, Item item) {
  if (n < num_outputs_) outputs_[static_cast<size_t>(n)] = std::move(item);
}

std::vector<TnValueId> OnnxNode::add(const std::string& op_id, const NewAttrs& attrs,
                                     const std::vector<TnValueId>& inputs, int num_outputs) {
  translator_.count_node();
  std::string node = name_;
  if (num_added_++ > 0) {
    const std::string op = op_id.substr(0, op_id.find('/'));
    node = translator_.node_names_.make(name_ + "." + op.substr(op.rfind('.') + 1));
  }
  std::vector<std::string> names;
  std::vector<const char*> raw_names;
  for (int n = 0; n < num_outputs; ++n) {
    names.push_back(translator_.value_names_.make(num_outputs == 1 ? node : text(node, ":", n)));
  }
  for (const std::string& text : names) raw_names.push_back(text.c_str());
  std::vector<TnValueId> outputs(static_cast<size_t>(num_outputs), TN_NO_ID);
  const TnStatus status =
      translator_.host_->graph->new_node(translator_.raw_graph_, op_id.c_str(), node.c_str(), attrs.raw(),
                                         inputs.data(), static_cast<uint32_t>(inputs.size()), raw_names.data(),
                                         outputs.data(), static_cast<uint32_t>(outputs.size()), nullptr);
  if (status == TN_NOTFOUND) throw Unsupported{text("needs the op ", op_id, ", which no loaded plugin brings")};
  check_host(status);
  return outputs;
}

TnValueId OnnxNode::constant(const TnTensor& tensor) {
  return translator_.graph_.add_const(translator_.value_names_.make(name_ + ".const"), tensor);
}
int64_t OnnxNode::made_elements(const Dims& dims) {
  constexpr int64_t kMost = int64_t{1} << 24;
  int64_t count = std::find(dims.begin(), dims.end(), 0) == dims.end() ? 1 : 0;
  for (const int64_t size : dims) {
    if (count != 0 && size > kMost / count) count = kMost + 1;
    if (count <= kMost) count *= size;
  }
  if (count > kMost - translator_.num_made_) {
    throw Unsupported{text("constants worked out from sizes, ", to_text(dims), " being the last, of more than ", kMost,
                           " elements in all")};
  }
  translator_.num_made_ += count;
  return count;
}

TnValueId OnnxNode::constant(const std::vector<int64_t>& values) {
  return constant(host_tensor(TN_I64, Dims{static_cast<int64_t>(values.size())}, values.data()));
}
TnValueId OnnxNode::scalar(int32_t dtype, double value) {
  const TnValueId number = constant(host_tensor(TN_F64, Dims{}, &value));
  if (dtype == TN_F64) return number;
  // Not by add: the node's name is for what computes something.
  return translator_.graph_.add_node("tenon.cast/1", translator_.node_names_.make(name_ + ".scalar"),
                                     attrs().dtype("to", dtype), {number});
}

TnValueId OnnxNode::cast(TnValueId value, int32_t dtype) {
  if (dtype_of(value) == dtype) return value;
  return add("tenon.cast/1", attrs().dtype("to", dtype), {value});
}
TnValueId OnnxNode::reshape(TnValueId value, const std::vector<int64_t>& shape) {
  std::vector<int64_t> dims = shape;
  if (!dims.empty() && dims_of(value).rank > 0 && dims[0] == dims_of(value)[0]) dims[0] = 0;
  return add("tenon.reshape/1", attrs().i64s("shape", dims), {value});
}
TnValueId OnnxNode::keep_axes(TnValueId value, const std::vector<int64_t>& axes) {
  std::vector<int64_t> same(static_cast<size_t>(dims_of(value).rank));
  std::iota(same.begin(), same.end(), 0);
  if (axes == same) return value;
  std::vector<int64_t> shape;
  for (const int64_t axis : axes) shape.push_back(axis < 0 ? 1 : 0);
  return add("tenon.reshape/1", attrs().i64s("shape", shape).i64s("copies", axes), {value});
}
TnValueId OnnxNode::transpose(TnValueId value, const std::vector<int64_t>& perm) {
  std::vector<int64_t> same(perm.size());
  std::iota(same.begin(), same.end(), 0);
  return perm == same ? value : add("tenon.transpose/1", attrs().i64s("perm", perm), {value});
}

std::vector<Item> OnnxNode::inline_graph(const pb::GraphProto& graph, const std::vector<Item>& inputs,
                                         const std::string& suffix) {
  return translator_.inline_graph(*this, graph, inputs, suffix);
}

}  // namespace tenon::onnx
