// Looking at tensors while they are computed: layer by layer, on the plan as it is.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/device/strided_copy.h"
#include "core/graph/convert.h"
#include "core/plan/removed_tensors.h"
#include "core/runtime/context_impl.h"
#include "core/site/layout.h"

namespace tenon {
namespace {

/// The dtype in which a C program gets the elements: it has none for small floats and for elements below a byte.
std::int32_t observed_dtype(std::int32_t dtype) { return dtype == TN_F16 ? dtype : reference_dtype(dtype); }

/// What tensors of a plan are values of the network, and not weights: also constants that follow from dims.
std::vector<bool> values_of(const Plan& plan) {
  std::vector<bool> values;
  for (const PlanTensor& tensor : plan.tensors) values.push_back(tensor.storage != Storage::kConstant);
  for (const ShapeNode& node : plan.shape_nodes) {
    for (const std::uint32_t output : node.outputs) values[output] = true;
  }
  return values;
}

/// The tensor of a name; of two, the one that is computed.
std::uint32_t find_tensor(const Plan& plan, const std::string& name) {
  std::uint32_t found = kNoTensor;
  for (std::uint32_t id = 0; id < plan.tensors.size(); ++id) {
    if (plan.tensors[id].name != name) continue;
    if (plan.tensors[id].storage != Storage::kConstant) return id;
    found = id;
  }
  // An output that a conversion writes: its tensor has the conversion's name.
  for (const PlanIo& output : plan.outputs) {
    if (output.name == name && found == kNoTensor) found = output.tensor;
  }
  return found;
}

const char* storage_name(Storage storage) {
  constexpr const char* kNames[] = {"input", "output", "inner", "constant"};  // in the order of Storage
  return kNames[static_cast<int>(storage)];
}

constexpr char kNoNames[] =
    "the engine keeps no names of tensors; build it with profiling verbosity \"layer_names\" or \"detailed\"";

Status not_in_plan(const Plan& plan, const std::vector<std::string>& names) {
  const RemovedTensors removed = removed_tensors(plan);
  std::vector<std::string> known, unknown, fused;
  for (const PlanTensor& tensor : plan.tensors) known.push_back(tensor.name);
  for (const auto& [name, layer] : removed) known.push_back(name);
  for (const std::string& name : names) {
    const auto found = removed.find(name);
    if (found == removed.end()) {
      const std::string near = nearest(name, known);
      unknown.push_back(fmt::format("'{}'{}", name, near.empty() ? "" : " (did you mean '" + near + "'?)"));
    } else {
      fused.push_back(found->second < 0 ? fmt::format("'{}'", name)
                                        : fmt::format("'{}' (part of layer '{}')", name,
                                                      plan.nodes[static_cast<std::size_t>(found->second)].name));
    }
  }
  if (!unknown.empty()) {
    return {Code::kNotFound,
            fmt::format("the engine has no tensor {}; inspect tells the names of the inputs and outputs "
                        "of its layers",
                        join(unknown))};
  }
  return {Code::kDeclined, fmt::format("the engine does not compute tensor {}, for fusion removed it; an engine of the "
                                       "same network with the tensor marked as an output computes it",
                                       join(fused))};
}

}  // namespace

std::string inspect_tensors(const Plan& plan) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array(), removed = tensors;
  const bool named = plan.verbosity != Verbosity::kNone;
  for (std::size_t id = 0; named && id < plan.tensors.size(); ++id) {
    const PlanTensor& tensor = plan.tensors[id];
    tensors.push_back({{"name", tensor.name},
                       {"dtype", dtype_name(tensor.dtype)},
                       {"dims", to_vector(tensor.dims)},
                       {"format", format_text(tensor.format)},
                       {"storage", storage_name(tensor.storage)}});
  }
  for (const auto& [name, layer] : removed_tensors(plan)) {
    removed.push_back({{"name", name}, {"layer", layer < 0 ? "" : plan.nodes[static_cast<std::size_t>(layer)].name}});
  }
  nlohmann::ordered_json json = {{"tensors", tensors}, {"removed", removed}};
  if (!named) json["note"] = kNoNames;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Status ExecutionContext::Impl::set_observer(const std::vector<std::string>& names,
                                            ExecutionContext::Observer observer) {
  if (observer == nullptr) {
    observation.reset();
    return {};
  }
  if (plan().verbosity == Verbosity::kNone) {
    return {Code::kInvalid, kNoNames};
  }
  auto wanted = names.empty() ? values_of(plan()) : std::vector<bool>(plan().tensors.size(), false);
  std::map<std::uint32_t, std::string> called;
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    const std::uint32_t id = find_tensor(plan(), name);
    if (id == kNoTensor) {
      missing.push_back(name);
      continue;
    }
    wanted[id] = true;
    called[id] = name;
  }
  if (!missing.empty()) return not_in_plan(plan(), missing);
  observation = std::make_unique<Observation>();
  observation->call = std::move(observer);
  observation->wanted = std::move(wanted);
  observation->called = std::move(called);
  return {};
}

Status ExecutionContext::Impl::run_observed(Stream& stream) {
  const auto show = [&](std::uint32_t id, const TnTensor& tensor) {
    Status status = show_tensor(id, tensor, stream);
    return status.ok() ? status : status.with_context("tensor '" + plan().tensors[id].name + "'");
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::uint32_t id = plan().inputs[i].tensor;
    if (!observation->wanted[id]) continue;
    const PlanTensor& tensor = plan().tensors[id];
    const Binding& binding = inputs[i];
    TnTensor view =
        tensor_view(binding.copied ? binding.packed.data() : binding.data, tensor.dtype, tensor.dims, tensor.format);
    if (!binding.copied) std::copy_n(binding.strides, TN_MAX_RANK, view.strides);
    TENON_RETURN_IF_ERROR(show(id, view));
  }
  const Status status = run_layers(stream, [&](std::size_t layer, const TnExec& base) {
    Status shown = run_layer(layer, base);
    const std::vector<std::uint32_t>& written = plan().nodes[layer].outputs;
    for (std::size_t i = 0; shown.ok() && i < written.size(); ++i) {
      if (observation->wanted[written[i]]) shown = show(written[i], layer_outputs(layer)[i]);
    }
    return shown;
  });
  if (!status.ok()) return status;
  // Constants may follow from sizes that the data decided, so they are known last.
  for (std::uint32_t id = 0; id < plan().tensors.size(); ++id) {
    const PlanTensor& tensor = plan().tensors[id];
    if (!observation->wanted[id] || tensor.storage != Storage::kConstant) continue;
    const TnTensor view = plan().constants[tensor.index]->view();
    TENON_RETURN_IF_ERROR(show_host_tensor(id, view));
  }
  return {};
}

Status ExecutionContext::Impl::show_tensor(std::uint32_t id, TnTensor tensor, Stream& stream) {
  if (device().info().on_host()) return show_host_tensor(id, tensor);
  TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(tensor.dtype, tensor.dims, tensor.format));
  DeviceBuffer packed;
  if (tensor.format.kind == TN_FORMAT_ROW && !is_packed(tensor.dims, tensor.strides)) {
    TENON_ASSIGN(packed, DeviceBuffer::allocate(engine->options.device, bytes));
    TnTensor copy = tensor_view(packed.data(), tensor.dtype, tensor.dims, tensor.format);
    TENON_RETURN_IF_ERROR(device().copy_strided(copy.data, copy.strides, tensor.data, tensor.strides, tensor.dims,
                                                static_cast<std::size_t>(dtype_bits(tensor.dtype)) / 8, stream));
    tensor = copy;
  }
  std::vector<std::uint8_t>& stored = observation->stored;
  stored.resize(bytes);
  if (bytes > 0) TENON_RETURN_IF_ERROR(device().copy_to_host(stored.data(), tensor.data, bytes, stream));
  TENON_RETURN_IF_ERROR(stream.synchronize());
  tensor.data = stored.data();
  return show_host_tensor(id, tensor);
}

Status ExecutionContext::Impl::show_host_tensor(std::uint32_t id, TnTensor tensor) {
  TENON_ASSIGN(const std::int64_t count, element_count(tensor.dims));
  if (tensor.format.kind != TN_FORMAT_ROW || !is_packed(tensor.dims, tensor.strides)) {
    TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(tensor.dtype, tensor.dims, row_format()));
    observation->row.resize(bytes);
    const TnTensor row = tensor_view(observation->row.data(), tensor.dtype, tensor.dims, row_format());
    reformat_host(tensor, row);
    tensor = row;
  }
  const std::int32_t dtype = observed_dtype(tensor.dtype);
  TnTensor shown = tensor_view(tensor.data, dtype, tensor.dims, row_format(), TN_MEMORY_HOST);
  if (dtype != tensor.dtype) {
    TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(dtype, tensor.dims, row_format()));
    observation->wide.resize(bytes);
    widen(tensor.dtype, tensor.data, observation->wide.data(), count);
    shown.data = observation->wide.data();
  }
  const auto called = observation->called.find(id);
  observation->call(called != observation->called.end() ? called->second : plan().tensors[id].name, shown);
  return {};
}

Status ExecutionContext::set_observer(const std::vector<std::string>& names, Observer observer) {
  const InUse in_use(&impl_->busy);
  Status status = in_use.status();
  if (status.ok()) status = impl_->set_observer(names, std::move(observer));
  return impl_->report(std::move(status));
}

}  // namespace tenon
