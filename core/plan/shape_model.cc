#include "core/plan/shape_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/graph/passes.h"
#include "core/plan/placement.h"
#include "core/plan/plan_site.h"

namespace tenon {

Status ShapeModel::add_node(const Plan& plan, const std::string& name, const std::string& op_id, const Attrs& attrs,
                            const std::vector<std::uint32_t>& inputs, const std::vector<std::uint32_t>& outputs,
                            Step step) {
  std::vector<ValueId> input_values;
  for (const std::uint32_t input : inputs) {
    if (input != kNoTensor && values_[input] == kNoId) {
      return {Code::kInvalid, fmt::format("it reads tensor '{}' before anything writes it", plan.tensors[input].name)};
    }
    input_values.push_back(input == kNoTensor ? kNoId : values_[input]);
  }
  // Names are for messages; a value that is known and given has a shape node and a layer of one name.
  TENON_ASSIGN(const NodeId node, graph_.add_node(op_id, graph_.find_node(name) == kNoId ? name : "", attrs,
                                                  std::move(input_values), static_cast<std::uint32_t>(outputs.size())));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ValueId id = std::as_const(graph_).node(node).outputs[i];
    values_[outputs[i]] = id;
    const Value& value = std::as_const(graph_).value(id);
    const PlanTensor& tensor = plan.tensors[outputs[i]];
    const bool same = tensor.dtype == value.dtype || narrows(tensor.dtype, value.dtype);
    if (same && same_dims(tensor.dims, value.dims)) continue;
    return {Code::kInvalid, fmt::format("output {} is {}{} in the engine, but {} makes it {}{}; build the engine again",
                                        i, dtype_name(tensor.dtype), dims_text(tensor.dims), op_id,
                                        dtype_name(value.dtype), dims_text(value.dims))};
  }
  step.node = node;
  order_.push_back(step);
  return {};
}

Status check_dims(const PlanIo& input, const TnDims& dims) {
  if (within(input.min, dims, input.max)) return {};
  if (same_dims(input.min, input.max)) {
    return {Code::kInvalid, fmt::format("input '{}': expected {}, found {}; give the input a profile when the engine "
                                        "is built to let it vary",
                                        input.name, dims_text(input.min), dims_text(dims))};
  }
  return {Code::kInvalid, fmt::format("input '{}': expected dims of the engine's profile, {} to {}, found {}; build "
                                      "the engine with a profile that holds them",
                                      input.name, dims_text(input.min), dims_text(input.max), dims_text(dims))};
}

Result<ShapeModel> ShapeModel::create(const Plan& plan, std::shared_ptr<const OpSource> ops) {
  ShapeModel model{Graph(std::move(ops))};
  model.values_.assign(plan.tensors.size(), kNoId);
  std::vector<bool> computed(plan.tensors.size(), false);
  for (const ShapeNode& node : plan.shape_nodes) {
    for (const std::uint32_t output : node.outputs) computed[output] = true;
  }
  // Names are the graph's own affair here: those of a plan need not be unique.
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    const PlanTensor& tensor = plan.tensors[t];
    if (tensor.storage == Storage::kInput) {
      TENON_ASSIGN(model.values_[t],
                   model.graph_.add_input(fmt::format("input {}", tensor.index), tensor.dtype, tensor.dims));
    } else if (tensor.storage == Storage::kConstant && !computed[t]) {
      TENON_ASSIGN(model.values_[t], model.graph_.add_constant("", plan.constants[tensor.index]));
    }
  }
  for (const PlanIo& input : plan.inputs) model.inputs_.push_back(model.values_[input.tensor]);
  auto shape_node = plan.shape_nodes.begin();
  for (std::size_t n = 0; n <= plan.nodes.size(); ++n) {
    for (; shape_node != plan.shape_nodes.end() && shape_node->position == n; ++shape_node) {
      TENON_RETURN_IF_ERROR(model
                                .add_node(plan, shape_node->name, shape_node->op_id, shape_node->attrs,
                                          shape_node->inputs, shape_node->outputs, Step{})
                                .with_context("shape node '" + shape_node->name + "'"));
    }
    if (n == plan.nodes.size()) break;
    const PlanNode& node = plan.nodes[n];
    TENON_RETURN_IF_ERROR(model
                              .add_node(plan, node.name, node.op_id, node.attrs,
                                        {node.inputs.begin(), node.inputs.end() - node.num_extra}, node.outputs,
                                        {kNoId, n, node.data_dependent})
                              .with_context("layer '" + node.name + "'"));
  }
  // Last, since the graph looks names up one by one once somebody could have changed them.
  for (const Step& step : model.order_) {
    if (step.plan_node == kShapeNode) continue;
    const PlanNode& from = plan.nodes[step.plan_node];
    Node& node = model.graph_.node(step.node);
    node.epilogues = from.epilogues;
    node.num_extra = from.num_extra;
    for (std::size_t i = from.inputs.size() - from.num_extra; i < from.inputs.size(); ++i) {
      node.inputs.push_back(model.values_[from.inputs[i]]);
      if (node.inputs.back() != kNoId) continue;
      return Status(Code::kInvalid, fmt::format("layer '{}': it reads tensor '{}' before anything writes it", from.name,
                                                plan.tensors[from.inputs[i]].name));
    }
  }
  return model;
}

Status ShapeModel::infer(const std::vector<TnDims>& dims, const std::vector<TnDims>& sizes, std::size_t end,
                         Graph* graph) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) graph->value(inputs_[i]).dims = dims[i];
  auto size = sizes.begin();
  for (const Step& step : order_) {
    if (step.plan_node != kShapeNode && step.plan_node >= end) break;
    if (step.data_dependent && size != sizes.end()) {
      for (const ValueId output : std::as_const(*graph).node(step.node).outputs) {
        graph->value(output).dims = *size++;
        graph->value(output).bound = false;
      }
      continue;
    }
    TENON_RETURN_IF_ERROR(graph->infer(step.node, true));
    if (step.plan_node == kShapeNode) TENON_RETURN_IF_ERROR(graph->evaluate(step.node));
  }
  return {};
}

void ShapeModel::apply(const Graph& graph, Plan* plan) const {
  for (std::size_t t = 0; t < plan->tensors.size(); ++t) {
    if (values_[t] == kNoId) continue;
    const Value& value = graph.value(values_[t]);
    PlanTensor& tensor = plan->tensors[t];
    tensor.dims = value.dims;
    if (tensor.storage == Storage::kConstant) plan->constants[tensor.index] = value.constant;
  }
  for (PlanNode& node : plan->nodes) {
    node.state.clear();
    node.persistent.clear();
    node.stored_persistent.reset();
    node.has_persistent = false;
  }
}

Result<Plan> ShapeModel::specialize(const Plan& plan, const std::vector<TnDims>& dims) const {
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) TENON_RETURN_IF_ERROR(check_dims(plan.inputs[i], dims[i]));
  Graph graph = graph_;
  TENON_RETURN_IF_ERROR(infer(dims, {}, plan.nodes.size(), &graph));
  Plan result = plan;
  apply(graph, &result);
  for (PlanNode& node : result.nodes) {
    if (node.shares.empty()) continue;
    const OpRef op = graph_.ops().find_op(node.op_id);
    auto shares = shares_of(op, describe_site(result, node), node.combo);
    if (!shares.ok()) return shares.status().with_context("layer '" + node.name + "'");
    node.shares = std::move(*shares);
  }
  TENON_RETURN_IF_ERROR(place_tensors(&result));
  return result;
}

Result<Plan> ShapeModel::specialize(const Plan& bounded, const std::vector<TnDims>& dims,
                                    const std::vector<TnDims>& sizes) const {
  Graph graph = graph_;
  TENON_RETURN_IF_ERROR(infer(dims, sizes, bounded.nodes.size(), &graph));
  Plan result = bounded;
  apply(graph, &result);
  for (PlanTensor& tensor : result.tensors) {
    TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(tensor.dtype, tensor.dims, tensor.format));
    if (bytes > tensor.bytes) {
      return Status(Code::kInvalid,
                    fmt::format("tensor '{}' is {} with these data, more than the {} bytes of its bound", tensor.name,
                                dims_text(tensor.dims), tensor.bytes));
    }
  }
  return result;
}

Result<std::vector<TnDims>> ShapeModel::next_sizes(
    const std::vector<TnDims>& dims, const std::vector<TnDims>& sizes, std::size_t node,
    const std::vector<std::shared_ptr<const HostTensor>>& contents) const {
  Graph graph = graph_;
  TENON_RETURN_IF_ERROR(infer(dims, sizes, node, &graph));
  const auto step = std::find_if(order_.begin(), order_.end(), [&](const Step& s) { return s.plan_node == node; });
  const std::vector<ValueId> inputs = std::as_const(graph).node(step->node).inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (contents[i] != nullptr) graph.set_constant(inputs[i], contents[i]);
  }
  TENON_RETURN_IF_ERROR(graph.infer(step->node, true));
  std::vector<TnDims> result;
  for (const ValueId output : std::as_const(graph).node(step->node).outputs) result.push_back(graph.value(output).dims);
  return result;
}

}  // namespace tenon
