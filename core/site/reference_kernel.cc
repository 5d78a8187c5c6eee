// The plain reference of an op, dressed as a kernel: what makes a new op run before anybody wrote a fast kernel for it.
// On a GPU it waits for the stream, copies the inputs to the host and the outputs back.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <tenon/plugin/kernel.h>

#include "core/graph/convert.h"
#include "core/site/candidate.h"

namespace tenon {
namespace {

struct ReferenceKernel {
  TnKernel kernel{};  // first: callbacks get a pointer to it
  OpRef op;
  std::string name;
  Device* device = nullptr;  // whose memory the host does not reach; nullptr: it does
};

struct ReferenceInstance {
  OpRef op;
  Device* device = nullptr;
  Attrs attrs;
  std::vector<TnBox> boxes;  // one whole output each
  std::uint32_t num_inputs = 0;
  std::uint64_t workspace = 0;  // for tensors that the reference sees in another dtype, one after the other
};

constexpr std::uint64_t kWorkspaceAlignment = 64;

/// Bytes that a tensor takes in the workspace; 0 if the reference sees it as it is.
Result<std::uint64_t> wide_bytes(std::int32_t dtype, const TnDims& dims) {
  const std::int32_t wide = reference_dtype(dtype);
  if (wide == dtype) return std::uint64_t{0};
  TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(wide, dims, row_format()));
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

/// Places a tensor in the workspace at `*at` if it needs it; what the reference gets.
TnTensor placed(const TnTensor& tensor, char** at) {
  const std::int32_t wide = reference_dtype(tensor.dtype);
  if (wide == tensor.dtype) return tensor;
  TnTensor result = tensor_view(*at, wide, tensor.dims, row_format(), TN_MEMORY_HOST);
  *at += wide_bytes(tensor.dtype, tensor.dims).value();
  return result;
}

const ReferenceKernel& self(const TnKernel* kernel) { return *reinterpret_cast<const ReferenceKernel*>(kernel); }

TnStatus TN_CALL supports(const TnHost* host, const TnKernel*, const TnSite* site) {
  for (std::uint32_t i = 0; i < site->num_inputs + site->num_extra + site->num_outputs; ++i) {
    if (site->dtypes[i] != TN_DTYPE_NONE && dtype_bits(site->dtypes[i]) == 0) {
      return TN_FAIL(host, TN_DECLINED, "the plain reference computes numbers and bool only");
    }
  }
  return TN_OK;
}

TnStatus TN_CALL more_combos(const TnHost*, const TnKernel*, const TnSite* site, TnComboSink* sink) {
  std::vector<TnPort> ports(site->num_inputs + site->num_outputs, TnPort{});
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::int32_t dtype = site->dtypes[i < site->num_inputs ? i : i + site->num_extra];
    if (dtype == TN_DTYPE_NONE) continue;
    ports[i].dtype = dtype;
    ports[i].format = row_format();
  }
  const TnCombo combo{ports.data(), site->num_inputs, site->num_outputs, nullptr, 0, 0};
  return sink->add(sink, &combo);
}

TnStatus TN_CALL configure(const TnHost* host, const TnKernel* kernel, const TnConfig* config, TnInst** out) {
  const TnSite& site = *config->site;
  auto instance = std::make_unique<ReferenceInstance>();
  instance->op = self(kernel).op;
  instance->device = self(kernel).device;
  instance->attrs = *site.attrs;
  instance->num_inputs = site.num_inputs;
  for (std::uint32_t i = 0; i < site.num_outputs; ++i) {
    const TnDims& dims = site.max_dims[site.num_inputs + site.num_extra + i];
    TnBox box{};
    for (int axis = 0; axis < dims.rank; ++axis) box.size[axis] = dims.d[axis];
    instance->boxes.push_back(box);
  }
  for (std::uint32_t i = 0; i < site.num_inputs + site.num_outputs; ++i) {
    const std::uint32_t tensor = i < site.num_inputs ? i : i + site.num_extra;
    const Result<std::uint64_t> bytes = wide_bytes(site.dtypes[tensor], site.max_dims[tensor]);
    if (!bytes.ok()) return TN_FAIL(host, TN_INVALID, bytes.status().message().c_str());
    instance->workspace += *bytes;
  }
  *out = reinterpret_cast<TnInst*>(instance.release());
  return TN_OK;
}

TnStatus TN_CALL sizes(const TnHost*, const TnInst* inst, TnSizes* out) {
  const auto& instance = *reinterpret_cast<const ReferenceInstance*>(inst);
  out->workspace = instance.device == nullptr ? instance.workspace : 0;
  return TN_OK;
}

/// `workspace`: ReferenceInstance::workspace bytes.
TnStatus evaluate(const TnHost* host, const ReferenceInstance& instance, void* workspace, const TnTensor* inputs,
                  const TnTensor* outputs) {
  const auto num_outputs = static_cast<std::uint32_t>(instance.boxes.size());
  const TnReference call{TN_HEADER(TnReference), instance.num_inputs, num_outputs, 0, &instance.attrs, inputs, outputs,
                         instance.boxes.data()};
  const OpRef& op = instance.op;
  if (instance.workspace == 0) return op.op->reference(host, op.op, &call);

  auto* at = static_cast<char*>(workspace);
  std::vector<TnTensor> wide_inputs, wide_outputs;
  for (std::uint32_t i = 0; i < instance.num_inputs; ++i) {
    wide_inputs.push_back(placed(inputs[i], &at));
    if (wide_inputs[i].dtype == inputs[i].dtype) continue;
    widen(inputs[i].dtype, inputs[i].data, wide_inputs[i].data, element_count(inputs[i].dims).value());
  }
  for (std::uint32_t i = 0; i < num_outputs; ++i) wide_outputs.push_back(placed(outputs[i], &at));
  TnReference wide = call;
  wide.inputs = wide_inputs.data();
  wide.outputs = wide_outputs.data();
  const TnStatus status = op.op->reference(host, op.op, &wide);
  for (std::uint32_t i = 0; i < num_outputs && status == TN_OK; ++i) {
    if (wide_outputs[i].dtype == outputs[i].dtype) continue;
    narrow(outputs[i].dtype, wide_outputs[i].data, outputs[i].data, element_count(outputs[i].dims).value());
  }
  return status;
}

TnStatus TN_CALL enqueue(const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* inputs,
                         const TnTensor* outputs) {
  return evaluate(host, *reinterpret_cast<const ReferenceInstance*>(inst), exec->workspace, inputs, outputs);
}

/// Tensors of a device with host memory behind them.
struct Copies {
  std::vector<TnTensor> tensors;
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<std::uint64_t> bytes;

  Status make(const TnTensor* originals, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      TnTensor tensor = originals[i];
      std::uint64_t size = 0;
      if (tensor.dtype != TN_DTYPE_NONE) {
        TENON_ASSIGN(size, tensor_bytes(tensor.dtype, tensor.dims, row_format()));
      }
      memory.push_back(std::make_unique<char[]>(std::max<std::uint64_t>(size, 1)));
      bytes.push_back(size);
      tensor.data = tensor.dtype != TN_DTYPE_NONE ? memory.back().get() : nullptr;
      tensor.memory = TN_MEMORY_HOST;
      tensors.push_back(tensor);
    }
    return {};
  }
};

Status evaluate_by_copies(const TnHost* host, const ReferenceInstance& instance, const TnExec& exec,
                          const TnTensor* inputs, const TnTensor* outputs, TnStatus* evaluated) {
  Device& device = *instance.device;
  TENON_ASSIGN(const std::unique_ptr<Stream> stream, device.wrap_stream(exec.stream));
  Copies from, to;
  TENON_RETURN_IF_ERROR(from.make(inputs, instance.num_inputs));
  TENON_RETURN_IF_ERROR(to.make(outputs, instance.boxes.size()));
  for (std::size_t i = 0; i < from.tensors.size(); ++i) {
    if (from.bytes[i] == 0) continue;
    TENON_RETURN_IF_ERROR(device.copy_to_host(from.tensors[i].data, inputs[i].data, from.bytes[i], *stream));
  }
  TENON_RETURN_IF_ERROR(stream->synchronize());
  std::vector<char> workspace(instance.workspace + kWorkspaceAlignment);
  auto address = reinterpret_cast<std::uintptr_t>(workspace.data());
  address = (address + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  *evaluated = evaluate(host, instance, reinterpret_cast<void*>(address), from.tensors.data(), to.tensors.data());
  if (*evaluated != TN_OK) return {};
  for (std::size_t i = 0; i < to.tensors.size(); ++i) {
    if (to.bytes[i] == 0) continue;
    TENON_RETURN_IF_ERROR(device.copy_to_device(outputs[i].data, to.tensors[i].data, to.bytes[i], *stream));
  }
  return stream->synchronize();
}

TnStatus TN_CALL enqueue_by_copies(const TnHost* host, const TnInst* inst, const TnExec* exec, const TnTensor* inputs,
                                   const TnTensor* outputs) {
  TnStatus evaluated = TN_OK;
  const Status status =
      evaluate_by_copies(host, *reinterpret_cast<const ReferenceInstance*>(inst), *exec, inputs, outputs, &evaluated);
  if (!status.ok()) return TN_FAIL(host, static_cast<TnStatus>(status.code()), status.message().c_str());
  return evaluated;
}

void TN_CALL destroy(const TnHost*, TnInst* inst) { delete reinterpret_cast<ReferenceInstance*>(inst); }

}  // namespace

KernelRef reference_kernel(const OpRef& op, Device& device) {
  auto owner = std::make_shared<ReferenceKernel>();
  owner->op = op;
  if (!device.info().on_host()) owner->device = &device;
  const std::string id = op.op->id;
  owner->name = id.substr(0, id.rfind('/')) + ".reference";
  TnKernel& kernel = owner->kernel;
  kernel.struct_size = TN_HEADER(TnKernel);
  kernel.flags = (op.op->flags & TN_OP_RANDOM) != 0 ? 0u : unsigned{TN_KERNEL_DETERMINISTIC};
  kernel.op_id = op.op->id;
  kernel.name = owner->name.c_str();
  kernel.device = device.info().kind;
  kernel.supports = &supports;
  kernel.more_combos = &more_combos;
  kernel.configure = &configure;
  kernel.sizes = &sizes;
  kernel.enqueue = owner->device == nullptr ? &enqueue : &enqueue_by_copies;
  kernel.destroy = &destroy;
  KernelRef ref;
  ref.kernel = &kernel;
  ref.host = op.host;
  ref.library = owner;
  return ref;
}

bool is_reference_kernel(const KernelRef& ref) {
  return ref.kernel->enqueue == &enqueue || ref.kernel->enqueue == &enqueue_by_copies;
}

}  // namespace tenon
