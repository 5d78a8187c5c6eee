// Evaluation of a node by its op's reference, and the folding of constants that follows from it.

#include "core/graph/passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/failure.h"
#include "core/graph/convert.h"

namespace tenon {
namespace {

using Buffer = std::shared_ptr<unsigned char[]>;

bool is_dims_only(const Node& node, std::size_t input) {
  if (input >= node.inputs.size() - node.num_extra) return false;
  return (input_flags(*node.op.op, input) & TN_PORT_DIMS_ONLY) != 0;
}

/// What is known of a node's inputs; null where that is nothing.
std::vector<std::shared_ptr<const HostTensor>> known_inputs(const Graph& graph, const Node& node) {
  std::vector<std::shared_ptr<const HostTensor>> inputs;
  for (const ValueId input : node.inputs) inputs.push_back(input == kNoId ? nullptr : graph.value(input).constant);
  return inputs;
}

/// A tensor that the reference reads or writes, with the memory behind it.
struct Operand {
  TnTensor tensor{};
  Buffer buffer;
};

Result<Operand> make_operand(std::int32_t dtype, const TnDims& dims) {
  const std::int32_t as = reference_dtype(dtype);
  if (dtype_bits(as) == 0) {
    return Status(Code::kDeclined, fmt::format("references are not evaluated on {}", dtype_name(dtype)));
  }
  TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(as, dims, row_format()));
  Operand operand;
  // Zeroed, so that a reference which forgets a cell at least gives the same result every time.
  operand.buffer = Buffer(new unsigned char[std::max<std::uint64_t>(bytes, 1)]());
  operand.tensor = tensor_view(operand.buffer.get(), as, dims, row_format(), TN_MEMORY_HOST);
  return operand;
}

Result<Operand> input_operand(const HostTensor& tensor) {
  const std::int32_t dtype = tensor.dtype();
  if (dtype_bits(dtype) != 0 && reference_dtype(dtype) == dtype) return Operand{tensor.view(), nullptr};
  TENON_ASSIGN(Operand operand, make_operand(dtype, tensor.dims()));
  TENON_ASSIGN(const std::int64_t count, element_count(tensor.dims()));
  widen(dtype, tensor.data(), operand.tensor.data, count);
  return operand;
}

Result<std::shared_ptr<const HostTensor>> finish_output(const Operand& operand, std::int32_t dtype,
                                                        std::int64_t count) {
  if (reference_dtype(dtype) == dtype) {
    return HostTensor::borrow(dtype, operand.tensor.dims, operand.tensor.data, operand.buffer);
  }
  TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(dtype, operand.tensor.dims, row_format()));
  const Buffer packed(new unsigned char[std::max<std::uint64_t>(bytes, 1)]);
  narrow(dtype, operand.tensor.data, packed.get(), count);
  return HostTensor::borrow(dtype, operand.tensor.dims, packed.get(), packed);
}

}  // namespace

Result<std::vector<std::shared_ptr<const HostTensor>>> evaluate_reference(
    const Graph& graph, NodeId id, const std::vector<std::shared_ptr<const HostTensor>>& inputs) {
  const Node& node = graph.node(id);
  const TnOp& op = *node.op.op;
  const std::string owner = fmt::format("node \"{}\" ({})", node.name, op.id);
  if (op.reference == nullptr) return Status(Code::kDeclined, owner + ": the op has no reference");
  if (inputs.size() != node.inputs.size()) {
    return Status(Code::kInvalid,
                  fmt::format("{}: {} tensors for {} inputs", owner, inputs.size(), node.inputs.size()));
  }
  std::vector<Operand> operands(inputs.size());
  std::vector<TnTensor> input_tensors(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr && node.inputs[i] != kNoId && is_dims_only(node, i)) {
      const Value& value = graph.value(node.inputs[i]);
      input_tensors[i] = tensor_view(nullptr, value.dtype, value.dims, row_format(), TN_MEMORY_HOST);
      continue;
    }
    if ((inputs[i] == nullptr) != (node.inputs[i] == kNoId)) {
      return Status(Code::kInvalid, fmt::format("{}: the tensor of input {} is {}", owner, i,
                                                inputs[i] == nullptr ? "missing" : "given, but the input is absent"));
    }
    if (inputs[i] == nullptr) continue;
    const Value& value = graph.value(node.inputs[i]);
    if (inputs[i]->dtype() != value.dtype || !same_dims(inputs[i]->dims(), value.dims)) {
      return Status(Code::kInvalid, fmt::format("{}: input {} (\"{}\") is {}{}, but the tensor is {}{}", owner, i,
                                                value.name, dtype_name(value.dtype), dims_text(value.dims),
                                                dtype_name(inputs[i]->dtype()), dims_text(inputs[i]->dims())));
    }
    Result<Operand> operand = input_operand(*inputs[i]);
    if (!operand.ok()) return operand.status().with_context(owner);
    operands[i] = std::move(*operand);
    input_tensors[i] = operands[i].tensor;
  }
  std::vector<Operand> results(node.outputs.size());
  std::vector<TnTensor> output_tensors(node.outputs.size());
  std::vector<TnBox> boxes(node.outputs.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Value& value = graph.value(node.outputs[i]);
    Result<Operand> result = make_operand(value.dtype, value.dims);
    if (!result.ok()) return result.status().with_context(owner);
    results[i] = std::move(*result);
    output_tensors[i] = results[i].tensor;
    boxes[i] = TnBox{};
    std::copy_n(value.dims.d, value.dims.rank, boxes[i].size);
  }
  const TnReference call = {TN_HEADER(TnReference),
                            static_cast<std::uint32_t>(input_tensors.size() - node.num_extra),
                            static_cast<std::uint32_t>(output_tensors.size()),
                            0,
                            &node.attrs,
                            input_tensors.data(),
                            output_tensors.data(),
                            boxes.data()};
  clear_failure();
  TENON_RETURN_IF_ERROR(take_failure(op.reference(node.op.host, &op, &call), owner + ": reference"));

  std::vector<std::shared_ptr<const HostTensor>> outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Value& value = graph.value(node.outputs[i]);
    TENON_ASSIGN(const std::int64_t count, element_count(value.dims));
    if (i < node.epilogues.size() && !node.epilogues[i].empty()) {
      if (results[i].tensor.dtype != TN_F32) {
        return Status(Code::kDeclined,
                      fmt::format("{}: epilogues are not evaluated on {}", owner, dtype_name(value.dtype)));
      }
      TENON_RETURN_IF_ERROR(node.epilogues[i].verify(1 + node.num_extra).with_context(owner + ": epilogue"));
      float* data = static_cast<float*>(results[i].tensor.data);
      std::vector<const float*> values{data};
      for (std::size_t n = input_tensors.size() - node.num_extra; n < input_tensors.size(); ++n) {
        values.push_back(static_cast<const float*>(input_tensors[n].data));
      }
      evaluate_f32(node.epilogues[i], values, data, count);
    }
    TENON_ASSIGN(std::shared_ptr<const HostTensor> output, finish_output(results[i], value.dtype, count));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

bool can_evaluate(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::uint32_t flags = node.op.op->flags;
  if ((flags & TN_OP_PURE) == 0 || (flags & (TN_OP_RANDOM | TN_OP_STATEFUL)) != 0) return false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (input != kNoId && graph.value(input).constant == nullptr && !is_dims_only(node, i)) return false;
  }
  return true;
}

void Graph::learn_contents(NodeId id) {
  constexpr std::uint64_t kMostInputBytes = 1u << 20, kMostOutputBytes = 64u << 10;
  const auto bytes_of = [&](const std::vector<ValueId>& ids) {
    std::uint64_t sum = 0;
    for (const ValueId value : ids) {
      if (value == kNoId || (values_[value].constant == nullptr && values_[value].producer != id)) continue;
      const Result<std::uint64_t> bytes = tensor_bytes(values_[value].dtype, values_[value].dims, row_format());
      sum += bytes.ok() ? *bytes : kMostInputBytes + 1;
    }
    return sum;
  };
  for (const ValueId output : nodes_[id].outputs) values_[output].constant = nullptr;
  if (!can_evaluate(*this, id)) return;
  if (bytes_of(nodes_[id].inputs) > kMostInputBytes || bytes_of(nodes_[id].outputs) > kMostOutputBytes) return;
  (void)evaluate(id);  // whoever needs the contents says so
}

Status Graph::evaluate(NodeId id) {
  const Node& node = nodes_[id];
  if (!can_evaluate(*this, id)) {
    return {Code::kInvalid, fmt::format("node \"{}\" ({}): its inputs are not known", node.name, node.op.op->id)};
  }
  TENON_ASSIGN(const auto outputs, evaluate_reference(*this, id, known_inputs(*this, node)));
  for (std::size_t i = 0; i < outputs.size(); ++i) values_[node.outputs[i]].constant = outputs[i];
  return {};
}

Result<int> fold_constants(Graph* graph, std::uint64_t max_bytes) {
  TENON_ASSIGN(const std::vector<NodeId> order, graph->topological_order());
  TENON_ASSIGN(const std::vector<bool> varying, graph->varying());
  int folded = 0;
  for (const NodeId id : order) {
    const Node& node = graph->node(id);
    bool fits = true;
    for (const ValueId output : node.outputs) {
      // What a graph gives has to be computed by something.
      fits = fits && !graph->is_output(output) && !varying[output];
      const Value& value = graph->value(output);
      const Result<std::uint64_t> bytes = tensor_bytes(value.dtype, value.dims, row_format());
      fits = fits && bytes.ok() && *bytes <= max_bytes;
    }
    if (!fits || !can_evaluate(*graph, id)) continue;
    const auto outputs = evaluate_reference(*graph, id, known_inputs(*graph, node));
    // Declined: this node is computed at run time like any other.
    if (!outputs.ok() && outputs.status().code() == Code::kDeclined) continue;
    if (!outputs.ok()) return outputs.status().with_context("folding constants");
    for (std::size_t i = 0; i < outputs->size(); ++i) {
      Value& value = graph->value(node.outputs[i]);
      value.constant = (*outputs)[i];
      value.producer = kNoId;
      value.producer_output = 0;
    }
    graph->node(id).alive = false;
    ++folded;
  }
  return folded;
}

}  // namespace tenon
