#include "core/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <queue>

#include "core/base/text.h"

namespace tenon {
namespace {

/// "conv2d" of "tenon.conv2d/1".
std::string_view short_op_name(std::string_view op_id) {
  op_id = op_id.substr(0, op_id.find('/'));
  const std::size_t dot = op_id.rfind('.');
  return dot == std::string_view::npos ? op_id : op_id.substr(dot + 1);
}

bool contains(const std::vector<std::uint32_t>& ids, std::uint32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

bool Graph::leaving(NodeId node) const { return journal_ && node != kNoId && contains(journal_->matched, node); }

bool Graph::value_name_taken(std::string_view name) const {
  if (names_) return find_value(name) != kNoId;
  return std::any_of(values_.begin(), values_.end(),
                     [&](const Value& value) { return value.alive && value.name == name && !leaving(value.producer); });
}

bool Graph::node_name_taken(std::string_view name) const {
  if (names_) return find_node(name) != kNoId;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].alive && nodes_[id].name == name && !leaving(id)) return true;
  }
  return false;
}

std::string Graph::unique_value_name(const std::string& wanted) const {
  std::string name = wanted;
  // Leaving values count here: nobody asked for their names.
  for (int i = 2; find_value(name) != kNoId; ++i) name = fmt::format("{}:{}", wanted, i);
  return name;
}

std::string Graph::unique_node_name(std::string_view op_id) const {
  const std::string_view op = short_op_name(op_id);
  std::string name;
  std::size_t number = nodes_.size();
  do {
    name = fmt::format("{}_{}", op, number++);
  } while (find_node(name) != kNoId);
  return name;
}

Status Graph::check_value_id(ValueId value, const char* what) const {
  if (value < values_.size() && values_[value].alive) return {};
  return {Code::kInvalid, value < values_.size()
                              ? fmt::format("{}: value \"{}\" was removed", what, values_[value].name)
                              : fmt::format("{}: there is no value {}", what, value)};
}

Result<ValueId> Graph::add_input(const std::string& name, std::int32_t dtype, const TnDims& dims) {
  const std::string where = fmt::format("graph input \"{}\"", name);
  if (name.empty()) return Status(Code::kInvalid, "a graph input needs a name");
  if (value_name_taken(name)) return Status(Code::kConflict, where + ": a value with this name exists already");
  if (dtype_bits(dtype) == 0 && dtype != TN_STRING) {
    return Status(Code::kInvalid, fmt::format("{}: {} is not a dtype", where, dtype_name(dtype)));
  }
  if (const Result<std::int64_t> count = element_count(dims); !count.ok()) return count.status().with_context(where);
  Value value;
  value.name = name;
  value.dtype = dtype;
  value.dims = dims;
  const auto id = static_cast<ValueId>(values_.size());
  inputs_.reserve(inputs_.size() + 1);
  if (names_) names_->values.emplace(value.name, id);
  values_.push_back(std::move(value));
  inputs_.push_back(id);
  return id;
}

Result<ValueId> Graph::add_constant(const std::string& name, std::shared_ptr<const HostTensor> tensor) {
  if (tensor == nullptr) return Status(Code::kInvalid, fmt::format("constant \"{}\" has no contents", name));
  if (!name.empty() && value_name_taken(name)) {
    return Status(Code::kConflict, fmt::format("constant \"{}\": a value with this name exists already", name));
  }
  Value value;
  value.name = name.empty() ? unique_value_name("const" + std::to_string(values_.size())) : name;
  value.dtype = tensor->dtype();
  value.dims = tensor->dims();
  value.constant = std::move(tensor);
  if (names_) names_->values.emplace(value.name, static_cast<ValueId>(values_.size()));
  values_.push_back(std::move(value));
  return static_cast<ValueId>(values_.size() - 1);
}

Result<NodeId> Graph::add_node(std::string_view op_id, const std::string& name, Attrs attrs,
                               std::vector<ValueId> inputs, std::uint32_t num_outputs,
                               const std::vector<std::string>& output_names) {
  Node node;
  node.auto_named = name.empty();
  node.name = name.empty() ? unique_node_name(op_id) : name;
  const std::string owner = fmt::format("node \"{}\" ({})", node.name, op_id);
  node.op = ops_->find_op(op_id);
  if (!node.op) {
    const std::string near = nearest(op_id, ops_->op_ids());
    return Status(Code::kNotFound,
                  fmt::format("{}: no loaded plugin has this op; {}", owner,
                              near.empty() ? "load the plugin that brings it" : "did you mean " + near + "?"));
  }
  if (node_name_taken(node.name)) {
    return Status(Code::kConflict, owner + ": a node with this name exists already; give it another name");
  }
  if (nodes_.size() >= kNoId || values_.size() + num_outputs >= kNoId) {
    return Status(Code::kInvalid, owner + ": the graph is full");
  }
  TENON_RETURN_IF_ERROR(check_ports(owner, *node.op.op, &inputs, num_outputs));
  TENON_RETURN_IF_ERROR(apply_schema(owner, node.op.op->params, node.op.op->num_params, &attrs));
  std::vector<TnTensor> tensors(num_outputs);
  bool bound = false;
  TENON_RETURN_IF_ERROR(infer_outputs(owner, node.op, attrs, inputs, &tensors, &bound));

  if (output_names.size() > num_outputs) {
    return Status(Code::kInvalid,
                  fmt::format("{}: {} output names for {} outputs", owner, output_names.size(), num_outputs));
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  std::vector<Value> outputs(num_outputs);
  for (std::uint32_t i = 0; i < num_outputs; ++i) {
    Value& value = outputs[i];
    if (i < output_names.size() && !output_names[i].empty()) {
      value.name = output_names[i];
      const auto same = [&](const Value& other) { return &other != &value && other.name == value.name; };
      if (value_name_taken(value.name) || std::any_of(outputs.begin(), outputs.begin() + i, same)) {
        return Status(Code::kConflict,
                      fmt::format("{}: output {}: a value \"{}\" exists already", owner, i, value.name));
      }
    } else {
      value.name = unique_value_name(num_outputs == 1 ? node.name : fmt::format("{}:{}", node.name, i));
    }
    value.dtype = tensors[i].dtype;
    value.dims = tensors[i].dims;
    value.bound = bound;
    value.producer = id;
    value.producer_output = i;
    node.outputs.push_back(static_cast<ValueId>(values_.size() + i));
  }
  node.attrs = std::move(attrs);
  node.inputs = std::move(inputs);
  node.members = {node.name};
  // Not to the exact size, or every node would move all values.
  if (values_.capacity() < values_.size() + num_outputs) values_.reserve(2 * values_.size() + num_outputs);
  if (names_) {
    names_->nodes.emplace(node.name, id);
    for (std::uint32_t i = 0; i < num_outputs; ++i) names_->values.emplace(outputs[i].name, node.outputs[i]);
  }
  nodes_.push_back(std::move(node));
  std::move(outputs.begin(), outputs.end(), std::back_inserter(values_));
  learn_contents(id);
  return id;
}

Status Graph::add_output(ValueId value) {
  TENON_RETURN_IF_ERROR(check_value_id(value, "graph output"));
  if (is_output(value)) {
    return {Code::kConflict, fmt::format("value \"{}\" is a graph output already", values_[value].name)};
  }
  outputs_.push_back(value);
  return {};
}

Status Graph::set_input_dims(const std::vector<std::pair<ValueId, TnDims>>& inputs) {
  for (const auto& [input, dims] : inputs) {
    TENON_RETURN_IF_ERROR(check_value_id(input, "set_input_dims"));
    const std::string where = fmt::format("graph input \"{}\"", values_[input].name);
    if (!contains(inputs_, input)) return {Code::kInvalid, where + ": this value is no graph input"};
    TENON_RETURN_IF_ERROR(element_count(dims).status().with_context(where));
    values_[input].dims = dims;
  }
  TENON_ASSIGN(const std::vector<NodeId> order, topological_order());
  for (const NodeId node : order) TENON_RETURN_IF_ERROR(infer(node, true));
  return {};
}

Status Graph::set_profile(ValueId input, const Profile& profile) {
  TENON_RETURN_IF_ERROR(check_value_id(input, "set_profile"));
  const TnDims& dims = values_[input].dims;
  const std::string where = fmt::format("profile of \"{}\"", values_[input].name);
  if (!contains(inputs_, input)) return {Code::kInvalid, where + ": this value is no graph input"};
  TENON_RETURN_IF_ERROR(element_count(profile.min).status().with_context(where + ", min"));
  TENON_RETURN_IF_ERROR(element_count(profile.max).status().with_context(where + ", max"));
  if (!within(profile.min, dims, profile.max)) {
    return {Code::kInvalid, fmt::format("{}: expected min <= opt <= max in each dim, found min {}, opt {}, max {}",
                                        where, dims_text(profile.min), dims_text(dims), dims_text(profile.max))};
  }
  profiles_.erase(input);
  if (!same_dims(profile.min, profile.max)) profiles_[input] = profile;
  return {};
}

Result<std::vector<bool>> Graph::varying() const {
  std::vector<bool> varying(values_.size(), false);
  for (const auto& [input, profile] : profiles_) varying[input] = true;
  TENON_ASSIGN(const std::vector<NodeId> order, topological_order());
  for (const NodeId id : order) {
    const Node& node = nodes_[id];
    const bool varies = std::any_of(node.inputs.begin(), node.inputs.end(),
                                    [&](ValueId input) { return input != kNoId && varying[input]; });
    for (const ValueId output : node.outputs) varying[output] = varies || values_[output].bound;
  }
  return varying;
}

bool Graph::depends_on(ValueId value, ValueId ancestor) const {
  std::vector<char> seen(nodes_.size(), 0);
  std::vector<ValueId> pending = {value};
  while (!pending.empty()) {
    const ValueId next = pending.back();
    pending.pop_back();
    if (next == ancestor) return true;
    const NodeId producer = next == kNoId ? kNoId : values_[next].producer;
    if (producer == kNoId || seen[producer] != 0) continue;
    seen[producer] = 1;
    const Node& node = nodes_[producer];
    pending.insert(pending.end(), node.inputs.begin(), node.inputs.end());
  }
  return false;
}

Status Graph::replace(ValueId from, ValueId to) {
  TENON_RETURN_IF_ERROR(check_value_id(from, "replace"));
  TENON_RETURN_IF_ERROR(check_value_id(to, "replace"));
  if (from == to) return {};
  Value& old_value = values_[from];
  Value& new_value = values_[to];
  const std::string where = fmt::format("replace \"{}\" by \"{}\"", old_value.name, new_value.name);
  if (old_value.dtype != new_value.dtype || !same_dims(old_value.dims, new_value.dims)) {
    return {Code::kInvalid,
            fmt::format("{}: expected {}{}, found {}{}", where, dtype_name(old_value.dtype), dims_text(old_value.dims),
                        dtype_name(new_value.dtype), dims_text(new_value.dims))};
  }
  if (depends_on(to, from)) {
    return {Code::kInvalid, where + ": the new value is computed from the old one, so the graph would have a cycle"};
  }
  const bool was_output = is_output(from);
  if (was_output && (is_output(to) || contains(inputs_, to))) {
    return {Code::kInvalid,
            fmt::format("{}: both are outputs or inputs of the graph and keep their names; leave a node "
                        "between them",
                        where)};
  }
  if (journal_) {
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      if (nodes_[id].alive && contains(nodes_[id].inputs, from))
        journal_->node_inputs.emplace_back(id, nodes_[id].inputs);
    }
    journal_->value_names.emplace_back(from, old_value.name);
    journal_->value_names.emplace_back(to, new_value.name);
  }
  for (Node& node : nodes_) {
    if (node.alive) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  }
  if (was_output) {
    std::replace(outputs_.begin(), outputs_.end(), from, to);
    names_.reset();
    std::swap(old_value.name, new_value.name);
  }
  return {};
}

void Graph::rename(ValueId value, const std::string& name) {
  if (names_) {
    names_->values.erase(values_[value].name);
    names_->values.emplace(name, value);
  }
  values_[value].name = name;
}

void Graph::set_constant(ValueId value, std::shared_ptr<const HostTensor> tensor) {
  values_[value].constant = std::move(tensor);
}

Status Graph::remove_node(NodeId id) {
  if (id >= nodes_.size() || !nodes_[id].alive) {
    return {Code::kInvalid, fmt::format("remove: there is no node {}", id)};
  }
  for (const ValueId output : nodes_[id].outputs) {
    const std::vector<NodeId> readers = users(output);
    if (readers.empty() && !is_output(output)) continue;
    return {Code::kInvalid,
            fmt::format("node \"{}\" cannot be removed: its output \"{}\" is {}", nodes_[id].name, values_[output].name,
                        readers.empty() ? "a graph output" : "read by node \"" + nodes_[readers[0]].name + "\"")};
  }
  names_.reset();
  nodes_[id].alive = false;
  for (const ValueId output : nodes_[id].outputs) values_[output].alive = false;
  return {};
}

int Graph::remove_dead() {
  names_.reset();
  std::vector<char> needed_node(nodes_.size(), 0);
  std::vector<char> needed_value(values_.size(), 0);
  std::vector<ValueId> pending = outputs_;
  while (!pending.empty()) {
    const ValueId value = pending.back();
    pending.pop_back();
    if (value == kNoId || needed_value[value] != 0) continue;
    needed_value[value] = 1;
    const NodeId producer = values_[value].producer;
    if (producer == kNoId || needed_node[producer] != 0) continue;
    needed_node[producer] = 1;
    const Node& node = nodes_[producer];
    pending.insert(pending.end(), node.inputs.begin(), node.inputs.end());
    for (const ValueId output : node.outputs) needed_value[output] = 1;
  }
  int removed = 0;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (!nodes_[id].alive || needed_node[id] != 0) continue;
    nodes_[id].alive = false;
    ++removed;
  }
  for (const ValueId input : inputs_) needed_value[input] = 1;
  for (ValueId id = 0; id < values_.size(); ++id) {
    Value& value = values_[id];
    if (needed_value[id] != 0) continue;
    value.alive = false;
    value.constant.reset();
  }
  return removed;
}

void Graph::begin_rewrite(const std::vector<NodeId>& matched) {
  names_.reset();
  journal_ = Journal{matched, nodes_.size(), values_.size(), inputs_, outputs_, metadata_, {}, {}};
}

void Graph::rollback_rewrite() {
  if (!journal_) return;
  // Newest first: an input that was replaced twice ends as it began.
  for (auto change = journal_->node_inputs.rbegin(); change != journal_->node_inputs.rend(); ++change) {
    nodes_[change->first].inputs = change->second;
  }
  for (auto change = journal_->value_names.rbegin(); change != journal_->value_names.rend(); ++change) {
    values_[change->first].name = change->second;
  }
  nodes_.resize(journal_->num_nodes);
  values_.resize(journal_->num_values);
  inputs_ = std::move(journal_->inputs);
  outputs_ = std::move(journal_->outputs);
  metadata_ = std::move(journal_->metadata);
  journal_.reset();
}

std::vector<NodeId> Graph::users(ValueId value) const {
  std::vector<NodeId> readers;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (!nodes_[id].alive) continue;
    for (const ValueId input : nodes_[id].inputs) {
      if (input == value) readers.push_back(id);
    }
  }
  return readers;
}

bool Graph::is_output(ValueId value) const { return contains(outputs_, value); }

ValueId Graph::find_value(std::string_view name) const {
  if (names_) {
    const auto found = names_->values.find(std::string(name));
    return found != names_->values.end() ? found->second : kNoId;
  }
  for (ValueId id = 0; id < values_.size(); ++id) {
    if (values_[id].alive && values_[id].name == name) return id;
  }
  return kNoId;
}

NodeId Graph::find_node(std::string_view name) const {
  if (names_) {
    const auto found = names_->nodes.find(std::string(name));
    return found != names_->nodes.end() ? found->second : kNoId;
  }
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].alive && nodes_[id].name == name) return id;
  }
  return kNoId;
}

Result<std::vector<NodeId>> Graph::topological_order() const {
  std::vector<std::uint32_t> missing(nodes_.size(), 0);
  std::vector<std::vector<NodeId>> readers(nodes_.size());
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  std::size_t live = 0;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (!nodes_[id].alive) continue;
    ++live;
    for (const ValueId input : nodes_[id].inputs) {
      if (input == kNoId || input >= values_.size() || values_[input].producer >= nodes_.size()) continue;
      ++missing[id];
      readers[values_[input].producer].push_back(id);
    }
    if (missing[id] == 0) ready.push(id);
  }
  std::vector<NodeId> order;
  order.reserve(live);
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (const NodeId reader : readers[id]) {
      if (--missing[reader] == 0) ready.push(reader);
    }
  }
  if (order.size() == live) return order;
  std::vector<std::string> stuck;
  for (NodeId id = 0; id < nodes_.size() && stuck.size() < 8; ++id) {
    if (nodes_[id].alive && missing[id] > 0) stuck.push_back(nodes_[id].name);
  }
  return Status(Code::kInvalid, "the graph has a cycle through, or before, the nodes " + join(stuck));
}

}  // namespace tenon
