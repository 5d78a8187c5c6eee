// Expressions of pointwise nodes, and their move into the epilogue of the node before them.

#include <fmt/format.h>
#include <tenon/plugin/ext/ids.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/base/failure.h"
#include "core/graph/convert.h"
#include "core/graph/passes.h"

namespace tenon {
namespace {

const TnOpExpression* expression_interface(const TnOp& op) {
  if (op.get_interface == nullptr) return nullptr;
  return static_cast<const TnOpExpression*>(op.get_interface(&op, TN_IFACE_OP_EXPRESSION));
}

bool is_pointwise(const TnOp& op) { return (op.flags & TN_OP_ELEMENTWISE) != 0 || expression_interface(op) != nullptr; }

/// Collects what describe emits; exceptions end here, because the caller is C.
std::int32_t TN_CALL emit(TnExprSink* self, const TnExprInstr* instr) {
  auto& instrs = *static_cast<std::vector<TnExprInstr>*>(self->context);
  if (instr == nullptr || primitive_arity(instr->primitive) < 0) return -1;
  const auto size = static_cast<std::int32_t>(instrs.size());
  const std::int32_t arguments[] = {instr->a, instr->b, instr->c};
  for (int n = 0; n < primitive_arity(instr->primitive); ++n) {
    if (arguments[n] < 0 || arguments[n] >= size) return -1;
  }
  try {
    instrs.push_back(*instr);
  } catch (...) {
    return -1;
  }
  return size;
}

/// Inputs that are tensors to an expression: neither absent nor a constant of one element.
std::vector<std::uint32_t> tensor_inputs(const Graph& graph, const Node& node) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoId) continue;
    const Value& value = graph.value(node.inputs[i]);
    if (!value.is_constant() || !single_number(*value.constant)) found.push_back(i);
  }
  return found;
}

/// The node as a function of its tensors: `first` becomes operand 0, the others `next`, next + 1...
std::optional<Expression> epilogue_expression(const Graph& graph, NodeId id, const std::vector<std::uint32_t>& tensors,
                                              std::uint32_t first, std::uint32_t next) {
  const Result<Expression> described = describe_expression(graph, id);
  if (!described.ok()) return std::nullopt;
  std::map<std::uint32_t, std::uint32_t> operands;
  for (const std::uint32_t input : tensors) operands[input] = input == first ? 0 : next++;
  std::vector<TnExprInstr> instrs = described->instrs();
  for (TnExprInstr& instr : instrs) {
    if (instr.primitive != TN_EX_INPUT) continue;
    const auto operand = operands.find(instr.operand);
    if (operand != operands.end()) {
      instr.operand = operand->second;
      continue;
    }
    const ValueId input = graph.node(id).inputs[instr.operand];
    const std::optional<double> value = input != kNoId ? single_number(*graph.value(input).constant) : std::nullopt;
    if (!value) return std::nullopt;
    instr.primitive = TN_EX_CONSTANT;
    instr.operand = 0;
    instr.value = *value;
  }
  return Expression(std::move(instrs));
}

bool same_type(const Value& a, const Value& b) { return a.dtype == b.dtype && same_dims(a.dims, b.dims); }

/// Whether the node may move to the producer of its input `first`.
bool absorbable(const Graph& graph, const Node& node, const std::vector<std::uint32_t>& tensors, std::uint32_t first) {
  const std::uint32_t flags = node.op.op->flags;
  if (node.outputs.size() != 1 || (flags & (TN_OP_RANDOM | TN_OP_STATEFUL)) != 0) return false;
  const Value& to = graph.value(node.outputs[0]);
  for (const std::uint32_t input : tensors) {
    const Value& operand = graph.value(node.inputs[input]);
    if (!same_type(operand, to) || (tensors.size() > 1 && operand.bound)) return false;
  }
  const ValueId input = node.inputs[first];
  const Value& from = graph.value(input);
  if (from.producer == kNoId || from.constant != nullptr) return false;
  if (from.dtype != TN_F32 && from.dtype != TN_F16 && from.dtype != TN_BF16) return false;
  const Node& producer = graph.node(from.producer);
  if (tensors.size() > 1 && (producer.outputs.size() > 1 || producer.num_extra + tensors.size() > 1 + kMostExtra)) {
    return false;
  }
  return !is_pointwise(*producer.op.op) && !graph.is_output(input) && graph.users(input).size() == 1;
}

/// What the producer of input `first` becomes with the node moved into it.
std::optional<Absorption> absorption_of(const Graph& graph, NodeId id, const std::vector<std::uint32_t>& tensors,
                                        std::uint32_t first) {
  const Node& node = graph.node(id);
  if (!absorbable(graph, node, tensors, first)) return std::nullopt;
  const Value& from = graph.value(node.inputs[first]);
  const Node& producer = graph.node(from.producer);
  const auto expression = epilogue_expression(graph, id, tensors, first, 1 + producer.num_extra);
  if (!expression) return std::nullopt;
  Absorption result{from.producer, from.producer_output, node.outputs[0], *expression, {}};
  if (result.output < producer.epilogues.size()) {
    result.epilogue = producer.epilogues[result.output].then(*expression);
  }
  for (const std::uint32_t input : tensors) {
    if (input != first) result.operands.push_back(node.inputs[input]);
  }
  return result;
}

void absorb(Graph* graph, NodeId id, const Absorption& absorption) {
  Node& node = graph->node(id);
  Node& producer = graph->node(absorption.producer);
  Value& to = graph->value(absorption.result);
  graph->value(producer.outputs[absorption.output]).alive = false;
  producer.epilogues.resize(producer.outputs.size());
  producer.epilogues[absorption.output] = absorption.epilogue;
  producer.outputs[absorption.output] = absorption.result;
  producer.inputs.insert(producer.inputs.end(), absorption.operands.begin(), absorption.operands.end());
  producer.num_extra += static_cast<std::uint32_t>(absorption.operands.size());
  to.producer = absorption.producer;
  to.producer_output = absorption.output;
  node.alive = false;
  producer.members.insert(producer.members.end(), node.members.begin(), node.members.end());
  const std::string wanted = producer.name + "+" + node.name;
  std::string name = wanted;
  for (int i = 2; graph->find_node(name) != kNoId; ++i) name = fmt::format("{}:{}", wanted, i);
  producer.name = name;
}

}  // namespace

Result<Expression> describe_expression(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const TnOp& op = *node.op.op;
  const std::string owner = fmt::format("node \"{}\" ({})", node.name, op.id);
  const TnOpExpression* interface = expression_interface(op);
  if (interface == nullptr) return Status(Code::kDeclined, owner + ": the op has no " TN_IFACE_OP_EXPRESSION);
  std::vector<std::int32_t> dtypes;
  for (const ValueId input : node.inputs) {
    dtypes.push_back(input == kNoId ? std::int32_t{TN_DTYPE_NONE} : graph.value(input).dtype);
  }
  const auto num_inputs = static_cast<std::uint32_t>(dtypes.size());
  std::vector<TnExprInstr> instrs;
  TnExprSink sink = {TN_HEADER(TnExprSink), &instrs, emit};
  clear_failure();
  TENON_RETURN_IF_ERROR(take_failure(
      interface->describe(node.op.host, &op, &node.attrs, dtypes.data(), num_inputs, &sink), owner + ": describe"));
  if (instrs.empty()) {
    return Status(Code::kInternal, owner + ": describe emitted nothing; that is a fault of the plugin");
  }
  Expression expression(std::move(instrs));
  TENON_RETURN_IF_ERROR(expression.verify(num_inputs).with_context(owner));
  return expression;
}

int absorb_epilogues(Graph* graph, const EpilogueFilter& eligible) {
  const Result<std::vector<NodeId>> order = graph->topological_order();
  if (!order.ok()) return 0;
  std::vector<std::size_t> place(graph->nodes().size(), 0);
  for (std::size_t i = 0; i < order->size(); ++i) place[(*order)[i]] = i;
  const auto written = [&](const Node& node, std::uint32_t input) {
    const NodeId producer = graph->value(node.inputs[input]).producer;
    return producer == kNoId ? 0 : place[producer] + 1;
  };
  int absorbed = 0;
  // Producers come first, so in a chain each node finds those before it absorbed already.
  for (const NodeId id : *order) {
    const Node& node = std::as_const(*graph).node(id);
    const std::vector<std::uint32_t> tensors = tensor_inputs(*graph, node);
    // The latest producer is the best: the operands wait for less.
    std::vector<std::uint32_t> tried = tensors;
    std::stable_sort(tried.begin(), tried.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return written(node, a) > written(node, b); });
    for (const std::uint32_t first : tried) {
      const std::optional<Absorption> absorption = absorption_of(*graph, id, tensors, first);
      if (!absorption || (eligible && !eligible(*graph, *absorption))) continue;
      place[absorption->producer] = place[id];
      absorb(graph, id, *absorption);
      ++absorbed;
      break;
    }
  }
  return absorbed;
}

}  // namespace tenon
