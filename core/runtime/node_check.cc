#include "core/runtime/node_check.h"

#include <fmt/format.h>

#include "core/graph/graph.h"

namespace tenon {

Status check_node(const Plan& plan, const PlanNode& node, const std::shared_ptr<const Registry>& registry) {
  if (!registry->find_op(node.op_id)) return {};
  Graph graph(registry);
  std::vector<ValueId> inputs;
  for (const std::uint32_t id : node.inputs) {
    if (id == kNoTensor) {
      inputs.push_back(kNoId);
      continue;
    }
    const PlanTensor& tensor = plan.tensors[id];
    const std::string name = fmt::format("input {}", inputs.size());
    TENON_ASSIGN(const ValueId value, tensor.storage == Storage::kConstant
                                          ? graph.add_constant(name, plan.constants[tensor.index])
                                          : graph.add_input(name, tensor.dtype, tensor.dims));
    inputs.push_back(value);
  }
  TENON_ASSIGN(const NodeId added, graph.add_node(node.op_id, node.name, node.attrs, std::move(inputs),
                                                  static_cast<std::uint32_t>(node.outputs.size())));
  const Graph& made = graph;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const PlanTensor& tensor = plan.tensors[node.outputs[i]];
    const Value& value = made.value(made.node(added).outputs[i]);
    if (tensor.dtype == value.dtype && same_dims(tensor.dims, value.dims)) continue;
    return {Code::kInvalid, fmt::format("output {} is {}{} in the engine, but {} makes it {}{}; build the engine again",
                                        i, dtype_name(tensor.dtype), dims_text(tensor.dims), node.op_id,
                                        dtype_name(value.dtype), dims_text(value.dims))};
  }
  return {};
}

}  // namespace tenon
