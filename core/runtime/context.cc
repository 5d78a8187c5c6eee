// Running a context: nothing here allocates unless something fails or a size depends on data.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "core/device/strided_copy.h"
#include "core/runtime/context_impl.h"

namespace tenon {

TnExec ExecutionContext::Impl::exec_for(std::size_t layer, const TnExec& base) const {
  const Layer& ready_layer = ready->layers[layer];
  const TnSizes& sizes = ready_layer.instance->sizes();
  TnExec exec = base;
  const bool needs_workspace = ready_layer.workspace > 0 && scratch != nullptr;
  const std::uint64_t at = ready->workspace_offsets[static_cast<std::size_t>(ready->order.stream(layer))];
  exec.workspace = needs_workspace ? scratch + at : nullptr;
  exec.workspace_size = needs_workspace ? ready_layer.workspace : 0;
  exec.context_host = sizes.context_host > 0 ? context_host.get() + ready_layer.context_host : nullptr;
  auto* on_device = static_cast<std::uint8_t*>(context_device.data());
  exec.context_device = sizes.context_device > 0 ? on_device + ready_layer.context_device : nullptr;
  return exec;
}

Status ExecutionContext::Impl::check_ready() const {
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].ready()) missing.push_back("input '" + plan().inputs[i].name + "'");
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].ready()) missing.push_back("output '" + plan().outputs[i].name + "'");
  }
  if (!missing.empty()) {
    return {Code::kInvalid, fmt::format("no memory was given for {}; call set_tensor first", join(missing))};
  }
  if (!has_scratch) {
    return {Code::kInvalid,
            fmt::format("this context was created without scratch memory and has {} bytes of it; call set_scratch "
                        "with {} bytes first",
                        scratch_size, ready->scratch_bytes)};
  }
  return {};
}

Result<Stream*> ExecutionContext::Impl::stream_for(void* handle) {
  if (handle == nullptr) return own_stream.get();
  if (caller_stream == nullptr || caller_handle != handle) {
    TENON_ASSIGN(caller_stream, device().wrap_stream(handle));
    caller_handle = handle;
  }
  return caller_stream.get();
}

Status ExecutionContext::Impl::gather(Stream& stream) const {
  const bool stages = std::any_of(inputs.begin(), inputs.end(), [](const Binding& input) { return input.on_host; });
  if (stages) TENON_RETURN_IF_ERROR(staged->wait());  // an enqueue before this one may still read the staging memory
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Binding& binding = inputs[i];
    if (!binding.copied) continue;
    const PlanTensor& tensor = plan().tensors[plan().inputs[i].tensor];
    const auto element = static_cast<std::size_t>(dtype_bits(tensor.dtype)) / 8;
    std::int64_t packed[TN_MAX_RANK];
    packed_strides(tensor.dims, tensor.format, packed);
    if (!binding.on_host) {
      TENON_RETURN_IF_ERROR(device().copy_strided(binding.packed.data(), packed, binding.data, binding.strides,
                                                  tensor.dims, element, stream));
      continue;
    }
    strided_copy(binding.staging.data(), packed, binding.data, binding.strides, tensor.dims, element);
    TENON_RETURN_IF_ERROR(device().copy_to_device(binding.packed.data(), binding.staging.data(), tensor.bytes, stream));
  }
  return stages ? staged->record(stream) : Status();
}

Status ExecutionContext::Impl::scatter(Stream& stream) const {
  bool wait_for_host = false;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Binding& binding = outputs[i];
    if (!binding.copied) continue;
    const PlanTensor& tensor = plan().tensors[plan().outputs[i].tensor];
    if (binding.on_host) {
      wait_for_host = true;
      TENON_RETURN_IF_ERROR(device().copy_to_host(binding.staging.data(), binding.packed.data(), tensor.bytes, stream));
      continue;
    }
    std::int64_t packed[TN_MAX_RANK];
    packed_strides(tensor.dims, tensor.format, packed);
    TENON_RETURN_IF_ERROR(device().copy_strided(binding.data, binding.strides, binding.packed.data(), packed,
                                                tensor.dims, static_cast<std::size_t>(dtype_bits(tensor.dtype)) / 8,
                                                stream));
  }
  if (!wait_for_host) return {};
  TENON_RETURN_IF_ERROR(wait(stream));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Binding& binding = outputs[i];
    if (!binding.on_host) continue;
    const PlanTensor& tensor = plan().tensors[plan().outputs[i].tensor];
    std::int64_t packed[TN_MAX_RANK];
    packed_strides(tensor.dims, tensor.format, packed);
    strided_copy(binding.data, binding.strides, binding.staging.data(), packed, tensor.dims,
                 static_cast<std::size_t>(dtype_bits(tensor.dtype)) / 8);
  }
  return {};
}

Status ExecutionContext::Impl::run_layer(std::size_t layer, const TnExec& base) const {
  Status status =
      ready->layers[layer].instance->enqueue(exec_for(layer, base), layer_inputs(layer), layer_outputs(layer));
  if (status.ok()) return status;
  return status.with_context("layer '" + plan().nodes[layer].name + "'");
}

Status ExecutionContext::Impl::run_layers(Stream& stream) {
  const RunLayer run = [&](std::size_t layer, const TnExec& base) { return run_layer(layer, base); };
  if (ready->order.count() == 1) return run_layers(stream, run);
  if (!recordable) TENON_RETURN_IF_ERROR(allocate_outputs(0, ready->layers.size()));
  return side_streams.run(device(), ready->order, stream, run);
}

Status ExecutionContext::Impl::run_layers(Stream& stream, const RunLayer& run) {
  TnExec base{};
  device().prepare_exec(stream, &base);
  const std::vector<std::size_t> stops = ready->stops;
  std::vector<TnDims> sizes;
  std::size_t layer = 0;
  for (std::size_t stop = 0; stop <= stops.size(); ++stop) {
    const std::size_t end = stop < stops.size() ? stops[stop] : ready->layers.size();
    if (!recordable) TENON_RETURN_IF_ERROR(allocate_outputs(layer, end));
    for (; layer < end; ++layer) TENON_RETURN_IF_ERROR(run(layer, base));
    if (stop == stops.size()) break;
    const Status status = learn_sizes(layer, stream, &sizes);
    if (!status.ok()) return status.with_context("layer '" + plan().nodes[layer].name + "'");
    TENON_ASSIGN(std::shared_ptr<const Executable> executable, engine->executable_for(input_dims, sizes));
    TENON_RETURN_IF_ERROR(use(std::move(executable), layer));
  }
  return {};
}

/// Looks at the inputs of a layer that decide the dims of its outputs.
Status ExecutionContext::Impl::learn_sizes(std::size_t layer, Stream& stream, std::vector<TnDims>* sizes) {
  const PlanNode& node = plan().nodes[layer];
  const OpRef op = engine->options.registry->find_op(node.op_id);
  if (!op) return {Code::kNotFound, fmt::format("no loaded plugin has op {}", node.op_id)};
  TENON_RETURN_IF_ERROR(wait(stream));
  std::vector<std::shared_ptr<const HostTensor>> contents(node.inputs.size());
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoTensor || (input_flags(*op.op, i) & TN_PORT_HOST_VALUE) == 0) continue;
    const PlanTensor& tensor = plan().tensors[node.inputs[i]];
    if (tensor.storage == Storage::kConstant) continue;  // known to the shape model
    // The tensor may be smaller than its place.
    TENON_ASSIGN(const std::uint64_t size, tensor_bytes(tensor.dtype, tensor.dims, tensor.format));
    std::vector<std::uint8_t> bytes(size);
    TENON_RETURN_IF_ERROR(device().copy_to_host(bytes.data(), layer_inputs(layer)[i].data, bytes.size(), stream));
    TENON_RETURN_IF_ERROR(wait(stream));
    TENON_ASSIGN(contents[i], HostTensor::create(tensor.dtype, tensor.dims, bytes.data(), bytes.size()));
  }
  TENON_ASSIGN(const std::vector<TnDims> found, engine->base->shapes->next_sizes(input_dims, *sizes, layer, contents));
  sizes->insert(sizes->end(), found.begin(), found.end());
  return {};
}

/// Asks the caller for memory of outputs that the layers from `begin` to `end` write.
Status ExecutionContext::Impl::allocate_outputs(std::size_t begin, std::size_t end) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Binding& binding = outputs[i];
    const PlanIo& output = plan().outputs[i];
    const PlanTensor& tensor = plan().tensors[output.tensor];
    const auto writer = static_cast<std::size_t>(tensor.first_use);
    if (binding.allocate == nullptr || writer < begin || writer >= end) continue;
    TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(tensor.dtype, tensor.dims, tensor.format));
    void* memory = binding.allocate(output.name, bytes, tensor.dims);
    if (memory == nullptr) {
      return {Code::kNoMemory,
              fmt::format("output '{}': its allocator gave no memory for {} bytes", output.name, bytes)};
    }
    TENON_RETURN_IF_ERROR(bind_end("output '" + output.name + "'", output.tensor, true, memory, nullptr, &binding));
  }
  return {};
}

/// The sizes that data had in the latest run are no more. Where nothing can be allocated between layers, it is now.
Status ExecutionContext::Impl::begin_run() {
  if (recordable) return allocate_outputs(0, ready->layers.size());
  if (ready->stops.empty()) return {};
  TENON_ASSIGN(std::shared_ptr<const Executable> executable, engine->executable_for(input_dims));
  return ready == executable ? Status() : use(std::move(executable));
}

/// What a library does at the first launch of a kernel, such as loading its code, cannot be recorded. So when recording
/// fails, the layers are launched one by one, and it is tried once more in the next run; then it is said why not.
Status ExecutionContext::Impl::record() {
  auto fresh = device().record(
      *own_stream, [&] { return run_layers(*own_stream); }, std::move(recording));
  if (fresh.ok()) {
    recording = std::move(*fresh);
    recorded = true;
    return {};
  }
  if (!std::exchange(record_failed, true)) return {};
  recordable = false;
  if (fresh.status().code() != Code::kDeclined) return fresh.status();
  engine->options.logger->warning("Layers are launched one by one: " + fresh.status().message());
  return {};
}

Status ExecutionContext::Impl::enqueue(Stream& stream) {
  if (activity != nullptr) activity->begin();
  TENON_RETURN_IF_ERROR(begin_run());
  TENON_RETURN_IF_ERROR(gather(stream));
  if (observation != nullptr) {
    TENON_RETURN_IF_ERROR(run_observed(stream));
  } else {
    if (recordable && !recorded) TENON_RETURN_IF_ERROR(record());
    TENON_RETURN_IF_ERROR(recorded ? recording->launch(stream) : run_layers(stream));
  }
  TENON_RETURN_IF_ERROR(scatter(stream));
  return done != nullptr && &stream != own_stream.get() ? done->record(stream) : Status();
}

Status ExecutionContext::Impl::wait(Stream& stream) const {
  const Status status = stream.synchronize();
  if (status.ok()) {
    if (activity != nullptr) activity->end();
    return status;
  }
  // The device does not say which launch failed: it may be any that was under way.
  std::vector<std::string> names;
  for (const PlanNode& node : plan().nodes) names.push_back(node.name);
  return status.with_context("one of the layers in flight (" + join(names) + ")");
}

Result<std::vector<LayerTime>> ExecutionContext::Impl::profile() {
  TENON_RETURN_IF_ERROR(refresh());
  TENON_RETURN_IF_ERROR(check_ready());
  std::vector<std::unique_ptr<Event>> events;
  for (std::size_t i = 0; i <= ready->layers.size(); ++i) {
    TENON_ASSIGN(std::unique_ptr<Event> event, device().create_event());
    events.push_back(std::move(event));
  }
  TENON_RETURN_IF_ERROR(begin_run());
  TENON_RETURN_IF_ERROR(gather(*own_stream));
  TENON_RETURN_IF_ERROR(events[0]->record(*own_stream));
  const Status status = run_layers(*own_stream, [&](std::size_t layer, const TnExec& base) {
    Status done_layer = run_layer(layer, base);
    return done_layer.ok() ? events[layer + 1]->record(*own_stream) : done_layer;
  });
  if (!status.ok()) return status;
  TENON_RETURN_IF_ERROR(scatter(*own_stream));
  TENON_RETURN_IF_ERROR(wait(*own_stream));
  std::vector<LayerTime> times;
  for (std::size_t layer = 0; layer < ready->layers.size(); ++layer) {
    TENON_ASSIGN(const double ms, events[layer + 1]->elapsed_ms(*events[layer]));
    times.push_back({plan().nodes[layer].name, ms, {}});
    if (!recordable) continue;
    TnExec base{};
    device().prepare_exec(*own_stream, &base);
    const auto alone = device().record(*own_stream, [&] { return run_layer(layer, base); });
    if (alone.ok()) times.back().launches = (*alone)->launches();
  }
  return times;
}

Status ExecutionContext::Impl::report(Status status) const {
  if (status.code() == Code::kDevice) {
    const std::vector<std::string> others = device().under_way(activity.get());
    if (!others.empty()) {
      status = {Code::kDevice, fmt::format("{}; also under way on the device: {}", status.message(), join(others))};
    }
  }
  return report_failure(std::move(status), *engine->options.logger, recorder);
}

Status ExecutionContext::enqueue(void* stream) {
  const InUse in_use(&impl_->busy);
  Status status = in_use.status();
  if (status.ok()) status = impl_->refresh();
  if (status.ok()) status = impl_->check_ready();
  if (!status.ok()) return impl_->report(std::move(status));
  const Result<Stream*> chosen = impl_->stream_for(stream);
  if (!chosen.ok()) return impl_->report(chosen.status());
  return impl_->report(impl_->enqueue(**chosen));
}

Status ExecutionContext::execute() {
  const InUse in_use(&impl_->busy);
  Status status = in_use.status();
  if (status.ok()) status = impl_->refresh();
  if (status.ok()) status = impl_->check_ready();
  if (status.ok()) status = impl_->enqueue(*impl_->own_stream);
  if (status.ok()) status = impl_->wait(*impl_->own_stream);
  return impl_->report(std::move(status));
}

Result<std::vector<LayerTime>> ExecutionContext::profile() {
  const InUse in_use(&impl_->busy);
  if (!in_use.status().ok()) return impl_->report(in_use.status());
  Result<std::vector<LayerTime>> times = impl_->profile();
  if (!times.ok()) return impl_->report(times.status());
  return times;
}

}  // namespace tenon
