#include "core/plan/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/graph/graph.h"
#include "core/plan/streams.h"

namespace tenon {
namespace {

// Sizes up to 256 TiB: no machine has more, and sums of a few of them cannot overflow.
constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 48;

template <class... Args>
Status wrong(fmt::format_string<Args...> text, Args&&... args) {
  return {Code::kInvalid, fmt::format(text, std::forward<Args>(args)...)};
}

Status check_size(std::uint64_t size, const char* what) {
  if (size <= kLargestSize) return {};
  return wrong("{} of {} bytes, expected at most {}", what, size, kLargestSize);
}

Status check_format(const TnFormat& format, const std::string& owner) {
  switch (format.kind) {
    case TN_FORMAT_ROW:
      return {};
    case TN_FORMAT_OPAQUE:
      if (format.opaque[0] == '\0' || format.opaque[sizeof(format.opaque) - 1] != '\0') {
        return wrong("{}: the name of its format is empty or not ended", owner);
      }
      return {};
    case TN_FORMAT_AXES:
      break;
    default:
      return wrong("{}: format kind {} is unknown", owner, format.kind);
  }
  if (format.rank > TN_MAX_RANK || format.num_blocks > TN_MAX_BLOCKS || format.padding > TN_PAD_UNDEFINED) {
    return wrong("{}: format of rank {} with {} blocks and padding {}", owner, format.rank, format.num_blocks,
                 format.padding);
  }
  unsigned seen = 0;
  for (int i = 0; i < format.rank; ++i) {
    if (format.order[i] >= format.rank || (seen & (1u << format.order[i])) != 0) {
      return wrong("{}: its format's axis {} is out of range or occurs twice", owner, format.order[i]);
    }
    seen |= 1u << format.order[i];
  }
  for (int i = 0; i < format.num_blocks; ++i) {
    if (format.block_axis[i] >= format.rank || format.block_size[i] == 0) {
      return wrong("{}: its format has a block of {} along axis {}", owner, format.block_size[i], format.block_axis[i]);
    }
  }
  return {};
}

// The formats of one tensor, as its producer wrote it and as a kernel expects it; contents of padding are not compared.
bool fits(const TnFormat& tensor, TnFormat port) {
  port.padding = tensor.padding;
  return same_format(tensor, port);
}

class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan) {}

  Status run() {
    TENON_RETURN_IF_ERROR(check_totals());
    for (std::size_t i = 0; i < plan_.constants.size(); ++i) {
      if (plan_.constants[i] == nullptr) return wrong("constant {} is missing", i);
    }
    for (std::size_t i = 0; i < plan_.tensors.size(); ++i) TENON_RETURN_IF_ERROR(check_tensor(i));
    TENON_RETURN_IF_ERROR(check_ends(plan_.inputs, Storage::kInput, "input"));
    TENON_RETURN_IF_ERROR(check_ends(plan_.outputs, Storage::kOutput, "output"));
    written_.assign(plan_.tensors.size(), false);
    for (const PlanNode& node : plan_.nodes) TENON_RETURN_IF_ERROR(check_node(node));
    std::uint32_t position = 0;
    for (const ShapeNode& node : plan_.shape_nodes) {
      TENON_RETURN_IF_ERROR(check_shape_node(node, position).with_context("shape node '" + node.name + "'"));
      position = node.position;
    }
    for (const PlanIo& output : plan_.outputs) {
      if (!written_[output.tensor]) return wrong("output '{}' is written by no node", output.name);
    }
    return {};
  }

 private:
  Status check_totals() const {
    if (plan_.verbosity < Verbosity::kNone || plan_.verbosity > Verbosity::kDetailed) {
      return wrong("verbosity {} is unknown", static_cast<int>(plan_.verbosity));
    }
    if (plan_.threads < 0) return wrong("{} threads", plan_.threads);
    if (plan_.tensors.size() >= kNoTensor) return wrong("{} tensors are too many", plan_.tensors.size());
    TENON_RETURN_IF_ERROR(check_size(plan_.arena_bytes, "activation memory"));
    TENON_RETURN_IF_ERROR(check_size(plan_.workspace_bytes, "workspace"));
    TENON_RETURN_IF_ERROR(check_size(plan_.persistent_bytes, "persistent memory"));
    TENON_RETURN_IF_ERROR(check_size(plan_.context_host_bytes, "context memory on the host"));
    TENON_RETURN_IF_ERROR(check_size(plan_.scratch_bytes, "scratch memory"));
    return check_size(plan_.context_device_bytes, "context memory on the device");
  }

  Status check_tensor(std::size_t id) const {
    const PlanTensor& tensor = plan_.tensors[id];
    const std::string name = fmt::format("tensor {} '{}'", id, tensor.name);
    TENON_RETURN_IF_ERROR(check_format(tensor.format, name));
    std::uint64_t needed = 0;
    if (tensor.format.kind == TN_FORMAT_OPAQUE) {
      // Its size is its kernels' business, but a dtype and a shape it has.
      const Result<std::uint64_t> row = tensor_bytes(tensor.dtype, tensor.dims, row_format());
      if (!row.ok()) return row.status().with_context(name);
    } else {
      const Result<std::uint64_t> bytes = tensor_bytes(tensor.dtype, tensor.dims, tensor.format);
      if (!bytes.ok()) return bytes.status().with_context(name);
      needed = *bytes;
    }
    TENON_RETURN_IF_ERROR(check_size(tensor.bytes, "tensor"));
    if (tensor.bytes < needed) return wrong("{} has {} bytes, its shape needs {}", name, tensor.bytes, needed);
    if (tensor.first_use < 0 || tensor.last_use < tensor.first_use) {
      return wrong("{} lives from {} to {}", name, tensor.first_use, tensor.last_use);
    }
    switch (tensor.storage) {
      case Storage::kInput:
        return check_end(tensor, id, plan_.inputs, name);
      case Storage::kOutput:
        return check_end(tensor, id, plan_.outputs, name);
      case Storage::kArena:
        return check_arena(tensor, name);
      case Storage::kConstant:
        return check_constant(tensor, name);
    }
    return wrong("{}: storage {} is unknown", name, static_cast<int>(tensor.storage));
  }

  static Status check_end(const PlanTensor& tensor, std::size_t id, const std::vector<PlanIo>& list,
                          const std::string& name) {
    if (tensor.index >= list.size() || list[tensor.index].tensor != id) {
      return wrong("{} says it is the engine's input or output {}, which it is not", name, tensor.index);
    }
    if (tensor.format.kind != TN_FORMAT_ROW) return wrong("{} is the caller's, but not row-major", name);
    return {};
  }

  Status check_arena(const PlanTensor& tensor, const std::string& name) const {
    if (tensor.offset > plan_.arena_bytes || tensor.bytes > plan_.arena_bytes - tensor.offset) {
      return wrong("{} of {} bytes at {} lies outside the {} bytes of activation memory", name, tensor.bytes,
                   tensor.offset, plan_.arena_bytes);
    }
    const std::uint64_t element = static_cast<std::uint64_t>(dtype_bits(tensor.dtype) + 7) / 8;
    if (element > 1 && tensor.offset % element != 0) return wrong("{} at {} is not aligned", name, tensor.offset);
    return {};
  }

  Status check_constant(const PlanTensor& tensor, const std::string& name) const {
    if (tensor.index >= plan_.constants.size()) {
      return wrong("{} is constant {}, but there are {}", name, tensor.index, plan_.constants.size());
    }
    if (tensor.format.kind != TN_FORMAT_ROW) return wrong("{} is constant, but not row-major", name);
    const HostTensor& constant = *plan_.constants[tensor.index];
    if (constant.dtype() == tensor.dtype && same_dims(constant.dims(), tensor.dims)) return {};
    return wrong("{} is {}{}, its constant is {}{}", name, dtype_name(tensor.dtype), dims_text(tensor.dims),
                 dtype_name(constant.dtype()), dims_text(constant.dims()));
  }

  Status check_ends(const std::vector<PlanIo>& list, Storage storage, const char* what) const {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const PlanIo& io = list[i];
      if (io.tensor >= plan_.tensors.size()) {
        return wrong("{} '{}' is tensor {}, but there are {}", what, io.name, io.tensor, plan_.tensors.size());
      }
      const PlanTensor& tensor = plan_.tensors[io.tensor];
      if (tensor.storage != storage || tensor.index != i) {
        return wrong("{} {} '{}': tensor {} is not where the caller's memory is", what, i, io.name, io.tensor);
      }
      for (const TnDims& dims : {io.min, io.max}) {
        TENON_RETURN_IF_ERROR(element_count(dims).status().with_context(fmt::format("{} '{}'", what, io.name)));
      }
      if (!within(io.min, tensor.dims, io.max)) {
        return wrong("{} '{}' is {}, but its profile is {} to {}", what, io.name, dims_text(tensor.dims),
                     dims_text(io.min), dims_text(io.max));
      }
    }
    return {};
  }

  // What it writes are constants that nothing else writes.
  Status check_shape_node(const ShapeNode& node, std::uint32_t earliest) {
    if (node.position < earliest || node.position > plan_.nodes.size()) {
      return wrong("position {}, expected {} to {}", node.position, earliest, plan_.nodes.size());
    }
    for (const std::uint32_t input : node.inputs) {
      if (input != kNoTensor && input >= plan_.tensors.size()) return wrong("there is no tensor {}", input);
    }
    for (const std::uint32_t output : node.outputs) {
      if (output >= plan_.tensors.size()) return wrong("there is no tensor {}", output);
      if (plan_.tensors[output].storage != Storage::kConstant) {
        return wrong("its output '{}' is not constant", plan_.tensors[output].name);
      }
      if (written_[output]) return wrong("its output '{}' is written twice", plan_.tensors[output].name);
      written_[output] = true;
    }
    return {};
  }

  Status check_node(const PlanNode& node) {
    const auto in_node = [&](const Status& status) { return status.with_context("node '" + node.name + "'"); };
    if (node.inputs.size() != node.combo.inputs.size() || node.outputs.size() != node.combo.outputs.size()) {
      return in_node(wrong("{} inputs and {} outputs, but its kernel takes {} and {}", node.inputs.size(),
                           node.outputs.size(), node.combo.inputs.size(), node.combo.outputs.size()));
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoTensor) continue;
      TENON_RETURN_IF_ERROR(in_node(check_port(node.inputs[i], node.combo.inputs[i], fmt::format("input {}", i))));
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      TENON_RETURN_IF_ERROR(in_node(check_port(node.outputs[i], node.combo.outputs[i], fmt::format("output {}", i))));
      const PlanTensor& tensor = plan_.tensors[node.outputs[i]];
      if (tensor.storage == Storage::kInput || tensor.storage == Storage::kConstant) {
        return in_node(wrong("output {} is '{}', which is only read", i, tensor.name));
      }
      written_[node.outputs[i]] = true;
    }
    for (const TnAlias& alias : node.combo.aliases) {
      if (alias.output >= node.outputs.size() || alias.input >= node.inputs.size() ||
          (alias.kind != TN_MAY_ALIAS && alias.kind != TN_MUST_ALIAS)) {
        return in_node(wrong("alias of output {} and input {}, kind {}", alias.output, alias.input, alias.kind));
      }
    }
    if (node.num_extra > std::min<std::size_t>(node.inputs.size(), kMostExtra) ||
        (node.num_extra > 0 && node.outputs.size() != 1)) {
      return in_node(wrong("{} operands of epilogues among {} inputs", node.num_extra, node.inputs.size()));
    }
    for (std::size_t i = node.inputs.size() - node.num_extra; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoTensor) return in_node(wrong("operand {} of the epilogue is missing", i));
      const PlanTensor& operand = plan_.tensors[node.inputs[i]];
      const PlanTensor& output = plan_.tensors[node.outputs[0]];
      if (operand.dtype == output.dtype && same_dims(operand.dims, output.dims)) continue;
      return in_node(wrong("operand '{}' of the epilogue is not as the output '{}'", operand.name, output.name));
    }
    for (const Share& share : node.shares) {
      if (share.input < node.inputs.size() && share.output < node.outputs.size() &&
          node.inputs[share.input] != kNoTensor && share.offset <= kLargestSize) {
        continue;
      }
      return in_node(wrong("input {} and output {} share memory at {}", share.input, share.output, share.offset));
    }
    if (!node.epilogues.empty() && node.epilogues.size() != node.outputs.size()) {
      return in_node(wrong("{} epilogues for {} outputs", node.epilogues.size(), node.outputs.size()));
    }
    for (const Expression& epilogue : node.epilogues) {
      if (!epilogue.empty()) TENON_RETURN_IF_ERROR(in_node(epilogue.verify(1 + node.num_extra)));
    }
    if (!std::isfinite(node.ms)) return in_node(wrong("its time is {} ms", node.ms));
    if (node.stream < 0 || node.stream >= kMostStreams) return in_node(wrong("stream {}", node.stream));
    if (node.tactic.blob.size() > 256) return in_node(wrong("tactic blob of {} bytes", node.tactic.blob.size()));
    TENON_RETURN_IF_ERROR(in_node(check_size(node.tactic.workspace, "workspace")));
    TENON_RETURN_IF_ERROR(in_node(check_size(node.persistent_bytes, "persistent memory")));
    const std::size_t stored = node.persistent_data().size();
    if (node.has_persistent && stored != node.persistent_bytes) {
      return in_node(wrong("{} persistent bytes are stored, expected {}", stored, node.persistent_bytes));
    }
    return {};
  }

  Status check_port(std::uint32_t id, const TnPort& port, const std::string& name) const {
    if (id >= plan_.tensors.size()) {
      return wrong("{} is tensor {}, but there are {}", name, id, plan_.tensors.size());
    }
    if (port.memory != 0 && port.memory != TN_MEMORY_HOST && port.memory != TN_MEMORY_DEVICE) {
      return wrong("{}: memory kind {} is unknown", name, port.memory);
    }
    if (port.dtype == TN_DTYPE_NONE) return {};
    TENON_RETURN_IF_ERROR(check_format(port.format, name));
    const PlanTensor& tensor = plan_.tensors[id];
    if (port.dtype != tensor.dtype || !fits(tensor.format, port.format)) {
      return wrong("{} is {}:{}, its kernel takes {}:{}", name, dtype_name(tensor.dtype), format_text(tensor.format),
                   dtype_name(port.dtype), format_text(port.format));
    }
    return {};
  }

  const Plan& plan_;
  std::vector<bool> written_;
};

}  // namespace

Status check_plan(const Plan& plan) { return Checker(plan).run(); }

}  // namespace tenon
