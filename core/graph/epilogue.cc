// Expressions of pointwise nodes, and their move into the epilogue of the node before them.

#include <fmt/format.h>
#include <tenon/plugin/ext/ids.h>

#include <algorithm>
#include <cstring>
#include <optional>

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

template <class T>
double first(const HostTensor& tensor) {
  T value;
  std::memcpy(&value, tensor.data(), sizeof(T));
  return static_cast<double>(value);
}

/// The number that a constant of one element holds; nothing for other constants.
std::optional<double> scalar(const HostTensor& tensor) {
  const Result<std::int64_t> count = element_count(tensor.dims());
  if (!count.ok() || *count != 1) return std::nullopt;
  float value = 0;
  switch (tensor.dtype()) {
    case TN_F32:
      return first<float>(tensor);
    case TN_F64:
      return first<double>(tensor);
    case TN_I32:
      return first<std::int32_t>(tensor);
    case TN_I64:
      return first<std::int64_t>(tensor);
    case TN_F16:
    case TN_BF16:
      widen(tensor.dtype(), tensor.data(), &value, 1);
      return value;
    default:
      return std::nullopt;
  }
}

/// The input that is neither absent nor constant, if there is exactly one.
std::optional<std::uint32_t> only_variable_input(const Graph& graph, const Node& node) {
  std::optional<std::uint32_t> found;
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoId || graph.value(node.inputs[i]).is_constant()) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

/// The node as a function of its only variable input, which becomes operand 0.
std::optional<Expression> one_operand_expression(const Graph& graph, NodeId id, std::uint32_t variable) {
  const Result<Expression> described = describe_expression(graph, id);
  if (!described.ok()) return std::nullopt;
  std::vector<TnExprInstr> instrs = described->instrs();
  for (TnExprInstr& instr : instrs) {
    if (instr.primitive != TN_EX_INPUT) continue;
    if (instr.operand == variable) {
      instr.operand = 0;
      continue;
    }
    const ValueId input = graph.node(id).inputs[instr.operand];
    const std::optional<double> value = input != kNoId ? scalar(*graph.value(input).constant) : std::nullopt;
    if (!value) return std::nullopt;
    instr.primitive = TN_EX_CONSTANT;
    instr.operand = 0;
    instr.value = *value;
  }
  return Expression(std::move(instrs));
}

bool same_type(const Value& a, const Value& b) { return a.dtype == b.dtype && same_dims(a.dims, b.dims); }

bool absorbable(const Graph& graph, const Node& node, std::uint32_t variable) {
  const std::uint32_t flags = node.op.op->flags;
  if (node.outputs.size() != 1 || (flags & (TN_OP_RANDOM | TN_OP_STATEFUL)) != 0) return false;
  const ValueId input = node.inputs[variable];
  const Value& from = graph.value(input);
  if (from.producer == kNoId || from.constant != nullptr || !same_type(from, graph.value(node.outputs[0])))
    return false;
  if (from.dtype != TN_F32 && from.dtype != TN_F16 && from.dtype != TN_BF16) return false;
  return !is_pointwise(*graph.node(from.producer).op.op) && !graph.is_output(input) && graph.users(input).size() == 1;
}

/// The epilogue of the producer with the node moved into it.
Expression with_node(const Graph& graph, const Node& node, std::uint32_t variable, const Expression& expression) {
  const Value& from = graph.value(node.inputs[variable]);
  const std::vector<Expression>& before = graph.node(from.producer).epilogues;
  Expression whole = from.producer_output < before.size() ? before[from.producer_output].then(expression) : expression;
  return node.epilogues.empty() ? whole : whole.then(node.epilogues[0]);
}

void absorb(Graph* graph, NodeId id, std::uint32_t variable, const Expression& whole) {
  Node& node = graph->node(id);
  Value& from = graph->value(node.inputs[variable]);
  Value& to = graph->value(node.outputs[0]);
  const NodeId producer_id = from.producer;
  Node& producer = graph->node(producer_id);
  const std::uint32_t output = from.producer_output;
  producer.epilogues.resize(producer.outputs.size());
  producer.epilogues[output] = whole;
  producer.outputs[output] = node.outputs[0];
  to.producer = producer_id;
  to.producer_output = output;
  from.alive = false;
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
  int absorbed = 0;
  // Producers come first, so in a chain each node finds those before it absorbed already.
  for (const NodeId id : *order) {
    const Node& node = graph->node(id);
    const std::optional<std::uint32_t> variable = only_variable_input(*graph, node);
    if (!variable || !absorbable(*graph, node, *variable)) continue;
    const std::optional<Expression> expression = one_operand_expression(*graph, id, *variable);
    if (!expression) continue;
    const Expression whole = with_node(*graph, node, *variable, *expression);
    const Value& from = graph->value(node.inputs[*variable]);
    if (eligible && !eligible(*graph, from.producer, from.producer_output, whole)) continue;
    absorb(graph, id, *variable, whole);
    ++absorbed;
  }
  return absorbed;
}

}  // namespace tenon
