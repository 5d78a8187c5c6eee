// Making a context and giving it memory: everything that may allocate.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/device/strided_copy.h"
#include "core/runtime/context_impl.h"

namespace tenon {
namespace {

// The caller's memory is only promised to be aligned to its elements.
std::size_t element_bytes(const PlanTensor& tensor) {
  return static_cast<std::size_t>(std::max(1, dtype_bits(tensor.dtype) / 8));
}

std::string list_of(const std::vector<PlanIo>& ends) {
  std::vector<std::string> names;
  for (const PlanIo& end : ends) names.push_back(end.name);
  return names.empty() ? "none" : join(names);
}

}  // namespace

ExecutionContext::ExecutionContext() : impl_(std::make_unique<Impl>()) {}
ExecutionContext::~ExecutionContext() {
  // What is still running uses the memory that goes now.
  if (impl_->own_stream != nullptr) (void)impl_->own_stream->synchronize();
  if (impl_->done != nullptr) (void)impl_->done->wait();
}

Result<std::shared_ptr<ExecutionContext>> Engine::create_context(bool own_scratch) const {
  std::shared_ptr<ExecutionContext> context(new ExecutionContext);
  ExecutionContext::Impl& impl = *context->impl_;
  impl.owner = shared_from_this();
  impl.engine = impl_.get();
  impl.recorder = impl_->options.recorder;
  const Status status = impl.create(own_scratch);
  if (!status.ok()) return impl.report(status.with_context("cannot create an execution context"));
  return context;
}

Status ExecutionContext::Impl::create(bool with_scratch) {
  TENON_ASSIGN(own_stream, device().create_stream());
  if (!device().info().on_host()) {
    TENON_ASSIGN(staged, device().create_event());
    TENON_ASSIGN(done, device().create_event());
    const std::vector<PlanNode>& nodes = plan().nodes;
    activity = std::make_unique<Activity>(
        device(), nodes.empty() ? "an engine without layers"
                                : fmt::format("the engine of {} layers from '{}' to '{}'", nodes.size(),
                                              nodes.front().name, nodes.back().name));
    decide_recording();
  }
  make_arguments();
  inputs.resize(plan().inputs.size());
  outputs.resize(plan().outputs.size());
  TENON_RETURN_IF_ERROR(allocate(with_scratch));
  for (std::size_t layer = 0; layer < engine->layers.size(); ++layer) TENON_RETURN_IF_ERROR(set_shapes(layer));
  for (std::uint32_t id = 0; id < plan().tensors.size(); ++id) {
    const PlanTensor& tensor = plan().tensors[id];
    if (tensor.storage == Storage::kConstant) bind(id, engine->constants[tensor.index], nullptr);
  }
  if (with_scratch) bind_scratch(own_scratch.data());
  return {};
}

/// All or nothing: one kernel that cannot be recorded has the layers launched one by one.
void ExecutionContext::Impl::decide_recording() {
  recordable = true;
  for (std::size_t layer = 0; layer < engine->layers.size(); ++layer) {
    const TnKernel& kernel = *engine->layers[layer].instance->candidate().kernel.kernel;
    if ((kernel.flags & TN_KERNEL_GRAPH_CAPTURABLE) != 0) continue;
    recordable = false;
    engine->options.logger->warning(
        fmt::format("Layers are launched one by one: layer '{}' has kernel {}, which cannot "
                    "be captured in a CUDA graph",
                    plan().nodes[layer].name, kernel.name));
    return;
  }
}

void ExecutionContext::Impl::make_arguments() {
  uses.resize(plan().tensors.size());
  const auto add = [&](std::size_t layer, std::uint32_t id, const TnPort& port) {
    if (id == kNoTensor) {
      arguments.emplace_back();
      return;
    }
    const PlanTensor& tensor = plan().tensors[id];
    const bool row = tensor.format.kind == TN_FORMAT_ROW;
    uses[id].push_back({layer, arguments.size(), row && (port.flags & TN_PORT_ANY_STRIDES) != 0});
    arguments.push_back(tensor_view(nullptr, tensor.dtype, tensor.dims, tensor.format,
                                    port.memory != 0 ? port.memory : static_cast<std::int32_t>(TN_MEMORY_DEVICE)));
  };
  for (std::size_t layer = 0; layer < plan().nodes.size(); ++layer) {
    const PlanNode& node = plan().nodes[layer];
    first_argument.push_back(arguments.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) add(layer, node.inputs[i], node.combo.inputs[i]);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) add(layer, node.outputs[i], node.combo.outputs[i]);
  }
}

Status ExecutionContext::Impl::allocate(bool with_scratch) {
  const std::shared_ptr<Device>& shared_device = engine->options.device;
  if (with_scratch) {
    TENON_ASSIGN(own_scratch, DeviceBuffer::allocate(shared_device, engine->scratch_bytes));
  }
  TENON_ASSIGN(context_device, DeviceBuffer::allocate(shared_device, engine->context_device_bytes));
  if (engine->context_host_bytes > 0) {
    void* memory =
        ::operator new(engine->context_host_bytes, static_cast<std::align_val_t>(kRuntimeAlignment), std::nothrow);
    if (memory == nullptr) {
      return {Code::kNoMemory, fmt::format("could not allocate {} bytes of host memory", engine->context_host_bytes)};
    }
    context_host.reset(static_cast<std::uint8_t*>(memory));
  }
  return {};
}

Status ExecutionContext::Impl::set_shapes(std::size_t layer) {
  const PlanNode& node = plan().nodes[layer];
  const std::size_t count = node.inputs.size() + node.outputs.size();
  std::vector<TnTensor> shapes(layer_inputs(layer), layer_inputs(layer) + count);
  for (TnTensor& shape : shapes) shape.data = nullptr;
  TnExec base{};
  device().prepare_exec(*own_stream, &base);
  TnExec exec = exec_for(layer, base);
  exec.workspace = nullptr;
  exec.workspace_size = 0;
  return engine->layers[layer]
      .instance->set_shapes(exec, shapes.data(), shapes.data() + node.inputs.size())
      .with_context("layer '" + node.name + "'");
}

void ExecutionContext::Impl::bind(std::uint32_t tensor, void* data, const std::int64_t* strides) {
  for (const TensorUse& use : uses[tensor]) {
    TnTensor& argument = arguments[use.argument];
    const std::int64_t* wanted = strides != nullptr ? strides : argument.strides;
    if (argument.data != data || !std::equal(wanted, wanted + TN_MAX_RANK, argument.strides)) recorded = false;
    argument.data = data;
    if (strides != nullptr) std::copy_n(strides, TN_MAX_RANK, argument.strides);
  }
}

void ExecutionContext::Impl::bind_scratch(void* memory) {
  scratch = static_cast<std::uint8_t*>(memory);
  has_scratch = true;
  for (std::uint32_t id = 0; id < plan().tensors.size(); ++id) {
    const PlanTensor& tensor = plan().tensors[id];
    if (tensor.storage == Storage::kArena) bind(id, scratch != nullptr ? scratch + tensor.offset : nullptr, nullptr);
  }
}

Status ExecutionContext::Impl::set_tensor(const std::string& name, void* data, const std::int64_t* strides) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const PlanIo& end = plan().inputs[i];
    if (end.name == name) return bind_end("input '" + name + "'", end.tensor, false, data, strides, &inputs[i]);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const PlanIo& end = plan().outputs[i];
    if (end.name == name) return bind_end("output '" + name + "'", end.tensor, true, data, strides, &outputs[i]);
  }
  return {Code::kNotFound, fmt::format("the engine has no input or output '{}'; its inputs are: {}; its outputs: {}",
                                       name, list_of(plan().inputs), list_of(plan().outputs))};
}

Status ExecutionContext::Impl::bind_end(const std::string& name, std::uint32_t id, bool output, void* data,
                                        const std::int64_t* strides, Binding* binding) {
  const PlanTensor& tensor = plan().tensors[id];
  if (data == nullptr) return {Code::kInvalid, name + ": the memory is null; give its address"};
  if (reinterpret_cast<std::uintptr_t>(data) % element_bytes(tensor) != 0) {
    return {Code::kInvalid, fmt::format("{}: its address is not a multiple of {}, the size of an element of {}", name,
                                        element_bytes(tensor), dtype_name(tensor.dtype))};
  }
  std::int64_t packed_form[TN_MAX_RANK];
  packed_strides(tensor.dims, tensor.format, packed_form);
  const bool strided = strides != nullptr && !is_packed(tensor.dims, strides);
  std::int64_t wanted[TN_MAX_RANK] = {};
  std::copy_n(strided ? strides : packed_form, tensor.dims.rank, wanted);
  const bool on_host = !device().reaches(data);
  const bool direct = !on_host && (!strided || std::all_of(uses[id].begin(), uses[id].end(),
                                                           [](const TensorUse& use) { return use.any_strides; }));
  if (strided || on_host) {
    if (dtype_bits(tensor.dtype) % 8 != 0) {
      return {Code::kInvalid, fmt::format("{}: {} elements are smaller than a byte; they need packed memory that the "
                                          "device reaches",
                                          name, dtype_name(tensor.dtype))};
    }
    for (int axis = 0; output && axis < tensor.dims.rank; ++axis) {
      if (wanted[axis] == 0 && tensor.dims.d[axis] > 1) {
        return {Code::kInvalid, fmt::format("{}: stride 0 along axis {} would write {} elements to one place", name,
                                            axis, tensor.dims.d[axis])};
      }
    }
  }

  if (!direct && binding->packed.size() < tensor.bytes) {
    TENON_ASSIGN(binding->packed, DeviceBuffer::allocate(engine->options.device, tensor.bytes));
  }
  if (on_host && binding->staging.size() < tensor.bytes) {
    TENON_ASSIGN(binding->staging, StagingBuffer::allocate(engine->options.device, tensor.bytes));
  }
  const std::int64_t* seen = direct ? wanted : packed_form;
  const bool changed = std::any_of(uses[id].begin(), uses[id].end(), [&](const TensorUse& use) {
    return !std::equal(seen, seen + tensor.dims.rank, arguments[use.argument].strides);
  });
  binding->data = data;
  binding->copied = !direct;
  binding->on_host = on_host;
  std::copy_n(wanted, TN_MAX_RANK, binding->strides);
  bind(id, direct ? data : binding->packed.data(), seen);
  if (!changed) return {};
  // Launch data in context memory may hold strides.
  for (const TensorUse& use : uses[id]) TENON_RETURN_IF_ERROR(set_shapes(use.layer));
  return {};
}

Status ExecutionContext::set_tensor(const std::string& name, void* data, const std::int64_t* strides) {
  const InUse in_use(&impl_->busy);
  Status status = in_use.status();
  if (status.ok()) status = impl_->set_tensor(name, data, strides);
  return impl_->report(std::move(status));
}

Status ExecutionContext::set_scratch(void* memory, std::uint64_t bytes) {
  const InUse in_use(&impl_->busy);
  Status status = in_use.status();
  const std::uint64_t needed = impl_->engine->scratch_bytes;
  if (status.ok() && memory != nullptr && !impl_->device().reaches(memory)) {
    status = {Code::kInvalid, "the scratch memory is not memory of " + impl_->device().info().name};
  }
  if (status.ok() && bytes < needed) {
    status = {Code::kInvalid, fmt::format("the scratch memory has {} bytes, this engine needs {}; give as many as "
                                          "scratch_bytes() says",
                                          bytes, needed)};
  }
  if (status.ok() && needed > 0 && memory == nullptr) {
    status = {Code::kInvalid, "the scratch memory is null; give its address"};
  }
  if (status.ok() && reinterpret_cast<std::uintptr_t>(memory) % kRuntimeAlignment != 0) {
    status = {Code::kInvalid, fmt::format("the scratch memory's address is not a multiple of {}", kRuntimeAlignment)};
  }
  if (!status.ok()) return impl_->report(std::move(status));
  impl_->bind_scratch(memory);
  impl_->own_scratch = DeviceBuffer();
  return {};
}

Status ExecutionContext::use_graph(bool use) {
  const InUse in_use(&impl_->busy);
  if (!in_use.status().ok()) return impl_->report(in_use.status());
  impl_->recordable = false;
  if (use && !impl_->device().info().on_host()) impl_->decide_recording();
  impl_->recorded = impl_->recorded && impl_->recordable;
  return {};
}

void ExecutionContext::set_recorder(ErrorRecorder* recorder) { impl_->recorder = recorder; }

}  // namespace tenon
