// Checks of a Graph: ports and shape rules of one node, and all invariants of the whole.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/failure.h"
#include "core/graph/graph.h"

namespace tenon {
namespace {

std::uint32_t port_flags(const TnPortSpec* const* ports, std::uint32_t i) {
  return ports != nullptr && ports[i] != nullptr ? ports[i]->flags : 0;
}

std::string port_name(const TnPortSpec* const* ports, std::uint32_t i) {
  const bool named = ports != nullptr && ports[i] != nullptr && ports[i]->name != nullptr;
  return named ? fmt::format("{} (\"{}\")", i, ports[i]->name) : std::to_string(i);
}

std::string value_text(const Value& value) {
  return fmt::format("\"{}\" {}{}", value.name, dtype_name(value.dtype), dims_text(value.dims));
}

}  // namespace

std::uint32_t input_flags(const TnOp& op, std::size_t input) {
  if (op.num_inputs == 0) return 0;
  return port_flags(op.inputs, static_cast<std::uint32_t>(std::min<std::size_t>(input, op.num_inputs - 1)));
}

Status Graph::check_ports(const std::string& owner, const TnOp& op, std::vector<ValueId>* inputs,
                          std::uint32_t num_outputs) const {
  const bool variadic = op.num_inputs > 0 && (port_flags(op.inputs, op.num_inputs - 1) & TN_PORT_VARIADIC) != 0;
  if (inputs->size() > op.num_inputs && !variadic) {
    return {Code::kInvalid,
            fmt::format("{}: {} inputs were given; the op has {}", owner, inputs->size(), op.num_inputs)};
  }
  // Ops and kernels find every port at its number, present or not.
  std::vector<ValueId> padded = *inputs;
  if (padded.size() < op.num_inputs) padded.resize(op.num_inputs, kNoId);
  for (std::uint32_t i = 0; i < padded.size(); ++i) {
    const std::uint32_t port = std::min(i, op.num_inputs - 1);
    const std::uint32_t flags = port_flags(op.inputs, port);
    const std::string where = fmt::format("{}: input {}", owner, port_name(op.inputs, port));
    if (padded[i] == kNoId) {
      if ((flags & TN_PORT_OPTIONAL) != 0) continue;
      return {Code::kInvalid, where + " is absent, but the op requires it"};
    }
    TENON_RETURN_IF_ERROR(check_value_id(padded[i], where.c_str()));
    const Value& value = values_[padded[i]];
    if ((flags & TN_PORT_CONST) != 0 && value.constant == nullptr) {
      return {Code::kInvalid, fmt::format("{} must be constant at build time, but {} is computed or fed at run time",
                                          where, value_text(value))};
    }
  }
  std::uint32_t fewest = op.num_outputs;
  while (fewest > 0 && (port_flags(op.outputs, fewest - 1) & TN_PORT_OPTIONAL) != 0) --fewest;
  const bool variadic_outputs =
      op.num_outputs > 0 && (port_flags(op.outputs, op.num_outputs - 1) & TN_PORT_VARIADIC) != 0;
  if (num_outputs < fewest || (num_outputs > op.num_outputs && !variadic_outputs)) {
    return {Code::kInvalid, fmt::format("{}: {} outputs were asked for; the op has {}{}{}", owner, num_outputs,
                                        fewest < op.num_outputs ? fmt::format("{} to ", fewest) : "", op.num_outputs,
                                        variadic_outputs ? " or more" : "")};
  }
  *inputs = std::move(padded);
  return {};
}

Status Graph::infer_outputs(const std::string& owner, const OpRef& op, const Attrs& attrs,
                            const std::vector<ValueId>& inputs, std::vector<TnTensor>* outputs, bool* bound) const {
  if (op.op->infer == nullptr) {
    return {Code::kInternal, owner + ": the op has no shape rule; that is a fault of the plugin"};
  }
  std::vector<TnTensor> tensors(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == kNoId) continue;
    const Value& value = values_[inputs[i]];
    tensors[i] = value.constant != nullptr
                     ? value.constant->view()
                     : tensor_view(nullptr, value.dtype, value.dims, row_format(), TN_MEMORY_HOST);
  }
  for (TnTensor& output : *outputs) {
    output = TnTensor{};
    output.format = row_format();
  }
  TnInfer question = {TN_HEADER(TnInfer),
                      static_cast<std::uint32_t>(tensors.size()),
                      static_cast<std::uint32_t>(outputs->size()),
                      0,
                      &attrs,
                      tensors.data(),
                      outputs->data()};
  *bound = false;
  for (std::uint32_t i = 0; op.op->infer_bound != nullptr && i < tensors.size(); ++i) {
    const bool decides = (input_flags(*op.op, i) & TN_PORT_HOST_VALUE) != 0;
    *bound = *bound || (decides && inputs[i] != kNoId && tensors[i].data == nullptr);
  }
  const auto infer = *bound ? op.op->infer_bound : op.op->infer;
  clear_failure();
  TENON_RETURN_IF_ERROR(take_failure(infer(op.host, op.op, &question), owner + ": infer"));
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    const TnTensor& output = (*outputs)[i];
    const std::string where = fmt::format("{}: infer of the op's plugin gave output {}", owner, i);
    if (output.dtype == TN_DTYPE_NONE) return {Code::kInternal, where + " no dtype; that is a fault of the plugin"};
    if (dtype_bits(output.dtype) == 0 && output.dtype != TN_STRING) {
      return {Code::kInternal,
              fmt::format("{} the unknown {}; that is a fault of the plugin", where, dtype_name(output.dtype))};
    }
    if (const Result<std::int64_t> count = element_count(output.dims); !count.ok()) {
      return {Code::kInternal,
              fmt::format("{} bad dims: {}; that is a fault of the plugin", where, count.status().message())};
    }
  }
  return {};
}

Status Graph::infer(NodeId id, bool update) {
  if (id >= nodes_.size() || !nodes_[id].alive) return {Code::kInvalid, fmt::format("infer: there is no node {}", id)};
  const Node& node = nodes_[id];
  const std::string owner = fmt::format("node \"{}\" ({})", node.name, node.op.op->id);
  std::vector<TnTensor> tensors(node.outputs.size());
  bool bound = false;
  TENON_RETURN_IF_ERROR(infer_outputs(owner, node.op, node.attrs, node.op_inputs(), &tensors, &bound));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Value& value = values_[node.outputs[i]];
    if (update) {
      value.dtype = tensors[i].dtype;
      value.dims = tensors[i].dims;
      value.bound = bound;
    } else if (value.dtype != tensors[i].dtype || !same_dims(value.dims, tensors[i].dims)) {
      return {Code::kInvalid, fmt::format("{}: output {} is inferred as {}{}", owner, value_text(value),
                                          dtype_name(tensors[i].dtype), dims_text(tensors[i].dims))};
    }
  }
  if (update) learn_contents(id);
  return {};
}

Status Graph::verify_extra(const Node& node) const {
  if (node.num_extra == 0) return {};
  if (node.outputs.size() != 1) return {Code::kInternal, "only a node with one output has operands of epilogues"};
  const Value& output = values_[node.outputs[0]];
  for (std::size_t i = node.inputs.size() - node.num_extra; i < node.inputs.size(); ++i) {
    TENON_RETURN_IF_ERROR(check_value_id(node.inputs[i], "operand of the epilogue"));
    const Value& operand = values_[node.inputs[i]];
    if (operand.dtype == output.dtype && same_dims(operand.dims, output.dims)) continue;
    return {Code::kInternal,
            fmt::format("the epilogue's operand {} is not as the output {}", value_text(operand), value_text(output))};
  }
  return {};
}

Status Graph::verify_values() const {
  std::set<std::string_view> names;
  for (ValueId id = 0; id < values_.size(); ++id) {
    const Value& value = values_[id];
    if (!value.alive) continue;
    const std::string where = fmt::format("value \"{}\"", value.name);
    if (value.name.empty()) return {Code::kInternal, fmt::format("value {} has no name", id)};
    if (!names.insert(value.name).second) return {Code::kInternal, where + ": the name occurs twice"};
    if (const Result<std::int64_t> count = element_count(value.dims); !count.ok()) {
      return count.status().with_context(where);
    }
    const bool is_input = std::find(inputs_.begin(), inputs_.end(), id) != inputs_.end();
    if (value.producer != kNoId) {
      const bool known = value.producer < nodes_.size() && nodes_[value.producer].alive &&
                         value.producer_output < nodes_[value.producer].outputs.size() &&
                         nodes_[value.producer].outputs[value.producer_output] == id;
      if (!known) return {Code::kInternal, where + ": its producer does not have it as that output"};
      if (is_input) return {Code::kInternal, where + " is a graph input and has a producer"};
    } else if (!is_input && value.constant == nullptr) {
      return {Code::kInternal, where + " has neither producer nor contents and is no graph input"};
    }
    if (value.constant != nullptr &&
        (value.constant->dtype() != value.dtype || !same_dims(value.constant->dims(), value.dims))) {
      return {Code::kInternal, fmt::format("value {} has contents of {}{}", value_text(value),
                                           dtype_name(value.constant->dtype()), dims_text(value.constant->dims()))};
    }
  }
  return {};
}

Status Graph::verify_nodes() const {
  std::set<std::string_view> names;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    const Node& node = nodes_[id];
    if (!node.alive) continue;
    if (node.name.empty() || !node.op) return {Code::kInternal, fmt::format("node {} has no name or no op", id)};
    const std::string owner = fmt::format("node \"{}\" ({})", node.name, node.op.op->id);
    if (!names.insert(node.name).second) return {Code::kInternal, owner + ": the name occurs twice"};
    if (node.members.empty()) return {Code::kInternal, owner + " has no members"};
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      TENON_RETURN_IF_ERROR(check_value_id(output, owner.c_str()));
      if (values_[output].producer != id || values_[output].producer_output != i) {
        return {Code::kInternal, fmt::format("{}: output {} has another producer", owner, value_text(values_[output]))};
      }
    }
    if (node.num_extra > std::min<std::size_t>(node.inputs.size(), kMostExtra)) {
      return {Code::kInternal, fmt::format("{} has {} operands of epilogues among {} inputs", owner, node.num_extra,
                                           node.inputs.size())};
    }
    std::vector<ValueId> inputs = node.op_inputs();
    TENON_RETURN_IF_ERROR(check_ports(owner, *node.op.op, &inputs, static_cast<std::uint32_t>(node.outputs.size())));
    if (inputs.size() + node.num_extra != node.inputs.size()) {
      return {Code::kInternal, fmt::format("{} has {} inputs; absent ones count, so {} are expected", owner,
                                           node.inputs.size() - node.num_extra, inputs.size())};
    }
    TENON_RETURN_IF_ERROR(verify_extra(node).with_context(owner));
    if (!node.epilogues.empty() && node.epilogues.size() != node.outputs.size()) {
      return {Code::kInternal,
              fmt::format("{} has {} epilogues for {} outputs", owner, node.epilogues.size(), node.outputs.size())};
    }
    for (const Expression& epilogue : node.epilogues) {
      TENON_RETURN_IF_ERROR(epilogue.verify(1 + node.num_extra).with_context(owner + ": epilogue"));
    }
  }
  return {};
}

Status Graph::verify() const {
  TENON_RETURN_IF_ERROR(verify_values());
  TENON_RETURN_IF_ERROR(verify_nodes());
  for (const std::vector<ValueId>* list : {&inputs_, &outputs_}) {
    std::set<ValueId> seen;
    for (const ValueId value : *list) {
      TENON_RETURN_IF_ERROR(check_value_id(value, list == &inputs_ ? "graph input" : "graph output"));
      if (!seen.insert(value).second) {
        return {Code::kInternal, fmt::format("value \"{}\" is listed twice as graph {}", values_[value].name,
                                             list == &inputs_ ? "input" : "output")};
      }
    }
  }
  TENON_ASSIGN(const std::vector<NodeId> order, topological_order());
  for (const NodeId id : order) {
    // With update = false infer changes nothing; it is non-const for its other mode only.
    TENON_RETURN_IF_ERROR(const_cast<Graph*>(this)->infer(id, false));
  }
  return {};
}

}  // namespace tenon
