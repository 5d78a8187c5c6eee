#include "core/builder/siblings.h"

#include <fmt/format.h>
#include <tenon/plugin/ext/ids.h>
#include <tenon/plugin/ext/siblings.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "core/base/failure.h"
#include "core/base/text.h"
#include "core/site/site.h"
#include "core/site/view.h"

namespace tenon {
namespace {

std::optional<TnSiblings> siblings_of(const Graph& graph, NodeId id) {
  const OpRef& op = graph.node(id).op;
  if (op.op->get_interface == nullptr) return std::nullopt;
  const auto* interface = static_cast<const TnOpSiblings*>(op.op->get_interface(op.op, TN_IFACE_OP_SIBLINGS));
  if (interface == nullptr) return std::nullopt;
  const SiteDesc desc = describe_site(graph, id, 0);
  const InferredSite inferred(desc);
  TnSiblings answer{};
  clear_failure();
  const Status status = take_failure(interface->describe(op.host, op.op, &inferred.abi(), &answer), "siblings");
  if (!status.ok() || answer.num_inputs > TN_SIBLING_INPUTS) return std::nullopt;
  return answer;
}

/// Dims with `axis` taken out, since siblings may differ there.
std::string dims_but(TnDims dims, std::int32_t axis) {
  if (axis >= 0 && axis < static_cast<std::int32_t>(dims.rank)) dims.d[axis] = -1;
  return dims_text(dims);
}

/// Equal for nodes that can be joined; nothing if the node cannot be at all.
std::optional<std::string> key_of(const Graph& graph, NodeId id, const TnSiblings& siblings) {
  const Node& node = graph.node(id);
  const Value& output = graph.value(node.outputs[0]);
  if (siblings.output_axis < 0 || siblings.output_axis >= static_cast<std::int32_t>(output.dims.rank)) return {};
  std::string key = fmt::format("{} {} {} {}", node.op_id(), node.attrs.text(), output.dtype,
                                dims_but(output.dims, siblings.output_axis));
  bool joined = false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const std::int32_t axis = i < siblings.num_inputs ? siblings.input_axes[i] : std::int32_t{TN_SAME_VALUE};
    if (axis == TN_SAME_VALUE || node.inputs[i] == kNoId) {
      key += fmt::format(" {}", node.inputs[i]);
      continue;
    }
    const Value& constant = graph.value(node.inputs[i]);
    if (!constant.is_constant() || axis < 0 || axis >= static_cast<std::int32_t>(constant.dims.rank) ||
        dtype_bits(constant.dtype) % 8 != 0) {
      return {};
    }
    joined = true;
    key += fmt::format(" {}:{}", constant.dtype, dims_but(constant.dims, axis));
  }
  for (const Expression& epilogue : node.epilogues) key += fmt::format(" {};", epilogue.text());
  if (!joined) return {};
  return key;
}

/// Where the only reader of a value, if it is a concatenation, has it: -1 at its begin, 1 at its end, else 0.
int place_in_concatenation(const Graph& graph, NodeId id, std::int32_t axis) {
  const ValueId value = graph.node(id).outputs[0];
  const std::vector<NodeId> users = graph.users(value);
  if (users.size() != 1) return 0;
  const auto placements = placements_of(graph.node(users[0]).op, describe_site(graph, users[0], 0));
  if (!placements.ok()) return 0;
  for (const TnPlacement& placement : *placements) {
    const Node& user = graph.node(users[0]);
    if (placement.kind != TN_INPUT_IN_OUTPUT || user.inputs[placement.input] != value) continue;
    const TnDims& whole = graph.value(user.outputs[placement.output]).dims;
    if (placement.start[axis] == 0) return -1;
    if (placement.start[axis] + graph.value(value).dims.d[axis] == whole.d[axis]) return 1;
  }
  return 0;
}

/// The constants of the nodes' input `input`, one after the other along the axis.
Result<std::shared_ptr<const HostTensor>> join_constants(const Graph& graph, const std::vector<NodeId>& group,
                                                         std::size_t input, std::int32_t axis) {
  std::vector<const HostTensor*> parts;
  for (const NodeId id : group) parts.push_back(graph.value(graph.node(id).inputs[input]).constant.get());
  TnDims dims = parts[0]->dims();
  dims.d[axis] = 0;
  for (const HostTensor* part : parts) dims.d[axis] += part->dims().d[axis];
  std::size_t outer = 1;
  for (std::int32_t d = 0; d < axis; ++d) outer *= static_cast<std::size_t>(dims.d[d]);
  TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(parts[0]->dtype(), dims, row_format()));
  std::vector<char> data(bytes);
  char* to = data.data();
  for (std::size_t o = 0; o < outer; ++o) {
    for (const HostTensor* part : parts) {
      const std::size_t slab = part->bytes() / outer;
      if (slab > 0) std::memcpy(to, static_cast<const char*>(part->data()) + o * slab, slab);
      to += slab;
    }
  }
  return HostTensor::create(parts[0]->dtype(), dims, data.data(), data.size());
}

std::string free_name(const Graph& graph, const std::string& wanted) {
  std::string name = wanted;
  for (int i = 2; graph.find_node(name) != kNoId || graph.find_value(name) != kNoId; ++i) {
    name = fmt::format("{}:{}", wanted, i);
  }
  return name;
}

Result<NodeId> add_joint_node(Graph* graph, const std::vector<NodeId>& group, const TnSiblings& siblings) {
  std::vector<std::string> names, members;
  for (const NodeId id : group) {
    const Node& node = std::as_const(*graph).node(id);
    names.push_back(node.name);
    members.insert(members.end(), node.members.begin(), node.members.end());
  }
  const Node first = std::as_const(*graph).node(group[0]);
  std::vector<ValueId> inputs = first.inputs;
  for (std::size_t i = 0; i < inputs.size() && i < siblings.num_inputs; ++i) {
    if (siblings.input_axes[i] == TN_SAME_VALUE || inputs[i] == kNoId) continue;
    TENON_ASSIGN(auto constant, join_constants(*graph, group, i, siblings.input_axes[i]));
    TENON_ASSIGN(inputs[i], graph->add_constant("", std::move(constant)));
  }
  TENON_ASSIGN(const NodeId joint,
               graph->add_node(first.op_id(), free_name(*graph, join(names, "+")), first.attrs, inputs, 1));
  graph->node(joint).epilogues = first.epilogues;
  graph->node(joint).members = members;
  return joint;
}

}  // namespace

Result<std::vector<std::vector<NodeId>>> find_siblings(const Graph& graph,
                                                       const std::function<bool(const Node&)>& eligible) {
  std::vector<std::vector<NodeId>> groups;
  if (!graph.ops().find_op(kSliceOp)) return groups;
  TENON_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
  std::map<std::string, std::size_t> known;
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    if (node.outputs.size() != 1 || node.num_extra != 0 || (node.op.op->flags & TN_OP_PURE) == 0) continue;
    const Value& output = graph.value(node.outputs[0]);
    if (output.bound || output.constant != nullptr || graph.is_output(node.outputs[0]) || !eligible(node)) continue;
    const std::optional<TnSiblings> siblings = siblings_of(graph, id);
    const std::optional<std::string> key = siblings ? key_of(graph, id, *siblings) : std::nullopt;
    if (!key) continue;
    const auto [entry, added] = known.emplace(*key, groups.size());
    if (added) groups.emplace_back();
    groups[entry->second].push_back(id);
  }
  std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
  for (std::vector<NodeId>& group : groups) {
    const std::int32_t axis = siblings_of(graph, group[0])->output_axis;
    std::map<NodeId, int> places;
    bool begins = false, ends = false;
    for (const NodeId id : group) {
      const int place = place_in_concatenation(graph, id, axis);
      bool& taken = place < 0 ? begins : ends;
      if (place != 0 && !std::exchange(taken, true)) places[id] = -place;
    }
    std::stable_sort(group.begin(), group.end(), [&](NodeId a, NodeId b) { return places[a] < places[b]; });
  }
  return groups;
}

Result<std::string> join_siblings(Graph* graph, const std::vector<NodeId>& group) {
  const std::optional<TnSiblings> siblings = siblings_of(*graph, group[0]);
  if (!siblings) return Status(Code::kInternal, "join_siblings: the nodes are no siblings");
  TENON_ASSIGN(const NodeId joint, add_joint_node(graph, group, *siblings));
  std::int64_t start = 0;
  for (const NodeId id : group) {
    const ValueId old_value = std::as_const(*graph).node(id).outputs[0];
    const std::string name = std::as_const(*graph).value(old_value).name;
    const std::int64_t end = start + std::as_const(*graph).value(old_value).dims.d[siblings->output_axis];
    Attrs attrs;
    attrs.values["starts"] = std::vector<std::int64_t>{start};
    attrs.values["ends"] = std::vector<std::int64_t>{end};
    attrs.values["axes"] = std::vector<std::int64_t>{siblings->output_axis};
    start = end;
    const std::string slice_name = free_name(*graph, std::as_const(*graph).node(id).name + ".slice");
    TENON_ASSIGN(const NodeId slice,
                 graph->add_node(kSliceOp, slice_name, attrs, {std::as_const(*graph).node(joint).outputs[0]}, 1));
    const ValueId value = std::as_const(*graph).node(slice).outputs[0];
    TENON_RETURN_IF_ERROR(graph->replace(old_value, value));
    TENON_RETURN_IF_ERROR(graph->remove_node(id));
    graph->rename(value, name);
  }
  graph->remove_dead();
  return std::as_const(*graph).node(joint).name;
}

}  // namespace tenon
