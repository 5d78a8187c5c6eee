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

bool same_inputs(const Plan& a, const Plan& b) {
  return std::all_of(a.inputs.begin(), a.inputs.end(), [&](const PlanIo& input) {
    return same_dims(a.tensors[input.tensor].dims, b.tensors[input.tensor].dims);
  });
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
  ready = engine->base;
  TENON_ASSIGN(own_stream, device().create_stream());
  if (!device().info().on_host()) {
    TENON_ASSIGN(staged, device().create_event());
    TENON_ASSIGN(done, device().create_event());
    const std::vector<PlanNode>& nodes = plan().nodes;
    activity = std::make_unique<Activity>(
        device(), nodes.empty() ? "an engine without layers"
                                : fmt::format("the engine of {} layers from '{}' to '{}'", nodes.size(),
                                              nodes.front().name, nodes.back().name));
  }
  for (const PlanIo& input : plan().inputs) input_dims.push_back(plan().tensors[input.tensor].dims);
  inputs.resize(plan().inputs.size());
  outputs.resize(plan().outputs.size());
  TENON_RETURN_IF_ERROR(side_streams.create(device(), ready->order));
  if (with_scratch) TENON_RETURN_IF_ERROR(allocate_scratch());
  return use(engine->base);
}

/// Takes over the plan for the dims that the caller wants.
Status ExecutionContext::Impl::refresh() {
  if (!stale) return {};
  TENON_ASSIGN(std::shared_ptr<const Executable> executable, engine->executable_for(input_dims));
  TENON_RETURN_IF_ERROR(use(std::move(executable)));
  stale = false;
  return {};
}

Status ExecutionContext::Impl::use(std::shared_ptr<const Executable> executable, std::size_t first_layer) {
  // What is still running uses the arguments and the memory that go now.
  TENON_RETURN_IF_ERROR(own_stream->synchronize());
  if (done != nullptr) TENON_RETURN_IF_ERROR(done->wait());
  const std::shared_ptr<const Executable> before = std::exchange(ready, std::move(executable));
  recording.reset();
  recorded = record_failed = false;
  decide_recording();
  make_arguments();
  TENON_RETURN_IF_ERROR(allocate_context_memory());
  if (first_layer > 0 && scratch_size < ready->scratch_bytes) {
    return {Code::kNoMemory, fmt::format("the layers from '{}' on need {} bytes of scratch memory for this size of the "
                                         "data, more than the {} bytes for the largest",
                                         plan().nodes[first_layer].name, ready->scratch_bytes, scratch_size)};
  }
  if (owns_scratch && scratch_size < ready->scratch_bytes) TENON_RETURN_IF_ERROR(allocate_scratch());
  has_scratch = has_scratch && scratch_size >= ready->scratch_bytes;
  for (std::size_t layer = first_layer; layer < ready->layers.size(); ++layer) {
    TENON_RETURN_IF_ERROR(set_shapes(layer));
  }
  for (std::uint32_t id = 0; id < plan().tensors.size(); ++id) {
    const PlanTensor& tensor = plan().tensors[id];
    if (tensor.storage == Storage::kConstant) bind(id, ready->constants[tensor.index], nullptr);
  }
  if (has_scratch) bind_arena();
  return bind_again(before->plan, !ready->stops.empty() && same_inputs(before->plan, plan()));
}

/// All or nothing: one kernel that cannot be recorded has the layers launched one by one.
void ExecutionContext::Impl::decide_recording() {
  recordable = wants_recording && !device().info().on_host() && ready->stops.empty();
  for (std::size_t layer = 0; recordable && layer < ready->layers.size(); ++layer) {
    const TnKernel& kernel = *ready->layers[layer].instance->candidate().kernel.kernel;
    if ((kernel.flags & TN_KERNEL_GRAPH_CAPTURABLE) != 0) continue;
    recordable = false;
    if (ready != engine->base) continue;  // said already
    engine->options.logger->warning(
        fmt::format("Layers are launched one by one: layer '{}' has kernel {}, which cannot "
                    "be captured in a CUDA graph",
                    plan().nodes[layer].name, kernel.name));
  }
}

void ExecutionContext::Impl::make_arguments() {
  arguments.clear();
  first_argument.clear();
  uses.assign(plan().tensors.size(), {});
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

Status ExecutionContext::Impl::allocate_scratch() {
  TENON_ASSIGN(own_scratch, DeviceBuffer::allocate(engine->options.device, ready->scratch_bytes));
  scratch = static_cast<std::uint8_t*>(own_scratch.data());
  scratch_size = ready->scratch_bytes;
  has_scratch = owns_scratch = true;
  return {};
}

Status ExecutionContext::Impl::allocate_context_memory() {
  if (context_device.size() < ready->context_device_bytes) {
    TENON_ASSIGN(context_device, DeviceBuffer::allocate(engine->options.device, ready->context_device_bytes));
  }
  if (context_host_size >= ready->context_host_bytes) return {};
  void* memory =
      ::operator new(ready->context_host_bytes, static_cast<std::align_val_t>(kRuntimeAlignment), std::nothrow);
  if (memory == nullptr) {
    return {Code::kNoMemory, fmt::format("could not allocate {} bytes of host memory", ready->context_host_bytes)};
  }
  context_host.reset(static_cast<std::uint8_t*>(memory));
  context_host_size = ready->context_host_bytes;
  return {};
}

Status ExecutionContext::Impl::set_shapes(std::size_t layer) {
  const PlanNode& node = plan().nodes[layer];
  const std::size_t count = node.inputs.size() + node.outputs.size();
  std::vector<TnTensor> shapes(layer_inputs(layer), layer_inputs(layer) + count);
  for (TnTensor& shape : shapes) shape.data = nullptr;
  // Library handles are made for the stream that the layer will run on.
  Stream& stream = side_streams.stream(ready->order.stream(layer), *own_stream);
  TnExec base{};
  device().prepare_exec(stream, &base);
  TnExec exec = exec_for(layer, base);
  exec.workspace = nullptr;
  exec.workspace_size = 0;
  TENON_RETURN_IF_ERROR(ready->layers[layer]
                            .instance->set_shapes(exec, shapes.data(), shapes.data() + node.inputs.size())
                            .with_context("layer '" + node.name + "'"));
  // A recorded run does not wait for the stream.
  return &stream == own_stream.get() ? Status() : stream.synchronize();
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

void ExecutionContext::Impl::bind_arena() {
  for (std::uint32_t id = 0; id < plan().tensors.size(); ++id) {
    const PlanTensor& tensor = plan().tensors[id];
    if (tensor.storage == Storage::kArena) bind(id, scratch != nullptr ? scratch + tensor.offset : nullptr, nullptr);
  }
}

Status ExecutionContext::Impl::bind_again(const Plan& before, bool keep) {
  for (const bool is_output : {false, true}) {
    std::vector<Binding>& bindings = is_output ? outputs : inputs;
    const std::vector<PlanIo>& ends = is_output ? plan().outputs : plan().inputs;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      Binding& binding = bindings[i];
      const std::uint32_t id = ends[i].tensor;
      const bool same = same_dims(before.tensors[id].dims, plan().tensors[id].dims);
      if (!same && !keep) binding.data = nullptr;
      if (binding.data == nullptr) continue;
      std::int64_t strides[TN_MAX_RANK];
      std::copy_n(binding.strides, TN_MAX_RANK, strides);
      TENON_RETURN_IF_ERROR(bind_end(ends[i].name, id, is_output, binding.data, same ? strides : nullptr, &binding));
    }
  }
  return {};
}

Status ExecutionContext::Impl::set_input_dims(const std::string& name, const TnDims& dims) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const PlanIo& input = plan().inputs[i];
    if (input.name != name) continue;
    TENON_RETURN_IF_ERROR(check_dims(input, dims));
    stale = stale || !same_dims(input_dims[i], dims);
    input_dims[i] = dims;
    return {};
  }
  return {Code::kNotFound,
          fmt::format("the engine has no input '{}'; its inputs are: {}", name, list_of(plan().inputs))};
}

Result<TnDims> ExecutionContext::Impl::dims(const std::string& name) {
  TENON_RETURN_IF_ERROR(refresh());
  for (const std::vector<PlanIo>* ends : {&plan().inputs, &plan().outputs}) {
    for (const PlanIo& end : *ends) {
      if (end.name == name) return plan().tensors[end.tensor].dims;
    }
  }
  return Status(Code::kNotFound,
                fmt::format("the engine has no input or output '{}'; its inputs are: {}; its outputs: {}", name,
                            list_of(plan().inputs), list_of(plan().outputs)));
}

Status ExecutionContext::Impl::set_tensor(const std::string& name, void* data, const std::int64_t* strides) {
  TENON_RETURN_IF_ERROR(refresh());
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

Status ExecutionContext::set_input_dims(const std::string& name, const TnDims& dims) {
  const InUse in_use(&impl_->busy);
  Status status = in_use.status();
  if (status.ok()) status = impl_->set_input_dims(name, dims);
  return impl_->report(std::move(status));
}

Result<TnDims> ExecutionContext::dims(const std::string& name) {
  const InUse in_use(&impl_->busy);
  if (!in_use.status().ok()) return impl_->report(in_use.status());
  Result<TnDims> dims = impl_->dims(name);
  if (!dims.ok()) return impl_->report(dims.status());
  return dims;
}

Status ExecutionContext::Impl::set_output_allocator(const std::string& name,
                                                    ExecutionContext::OutputAllocator allocate) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (plan().outputs[i].name != name) continue;
    outputs[i].allocate = std::move(allocate);
    outputs[i].data = nullptr;
    return {};
  }
  return {Code::kNotFound,
          fmt::format("the engine has no output '{}'; its outputs are: {}", name, list_of(plan().outputs))};
}

Status ExecutionContext::set_output_allocator(const std::string& name, OutputAllocator allocate) {
  const InUse in_use(&impl_->busy);
  Status status = in_use.status();
  if (status.ok()) status = impl_->set_output_allocator(name, std::move(allocate));
  return impl_->report(std::move(status));
}

Status ExecutionContext::set_scratch(void* memory, std::uint64_t bytes) {
  const InUse in_use(&impl_->busy);
  Status status = in_use.status();
  if (status.ok()) status = impl_->refresh();
  const std::uint64_t needed = impl_->ready->scratch_bytes;
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
  impl_->scratch = static_cast<std::uint8_t*>(memory);
  impl_->scratch_size = bytes;
  impl_->has_scratch = true;
  impl_->bind_arena();
  impl_->own_scratch = DeviceBuffer();
  impl_->owns_scratch = false;
  return {};
}

Status ExecutionContext::use_graph(bool use) {
  const InUse in_use(&impl_->busy);
  if (!in_use.status().ok()) return impl_->report(in_use.status());
  impl_->wants_recording = use;
  impl_->decide_recording();
  impl_->recorded = impl_->recorded && impl_->recordable;
  return {};
}

void ExecutionContext::set_recorder(ErrorRecorder* recorder) { impl_->recorder = recorder; }

}  // namespace tenon
