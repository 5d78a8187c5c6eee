#include "core/site/run_once.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "core/base/failure.h"
#include "core/site/elements.h"
#include "core/site/layout.h"

namespace tenon {
namespace {

/// Normal numbers with the standard library's exactly specified generator; Box-Muller, since the distributions of the
/// library are not specified bit for bit.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : engine_(seed) {}
  double next() {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }
  std::uint64_t word() { return engine_(); }

 private:
  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) / 9007199254740992.0; }
  std::mt19937_64 engine_;
};

bool is_float(std::int32_t dtype) { return dtype == TN_F32 || dtype == TN_F64 || dtype == TN_F16 || dtype == TN_BF16; }

/// Boxes of one output that cover about `budget` elements: both corners, then random places.
std::vector<TnBox> sample_boxes(const TnDims& dims, std::int64_t count, std::int64_t budget, Normal* random) {
  TnBox whole{};
  for (int axis = 0; axis < dims.rank; ++axis) whole.size[axis] = dims.d[axis];
  if (count <= budget) return {whole};
  constexpr int kBoxes = 16;
  TnBox shape{};
  std::int64_t left = std::max<std::int64_t>(1, budget / kBoxes);
  for (int axis = dims.rank - 1; axis >= 0; --axis) {
    const std::int64_t want = axis == dims.rank - 1 ? 16 : 4;
    shape.size[axis] = std::max<std::int64_t>(1, std::min({dims.d[axis], want, left}));
    left /= shape.size[axis];
  }
  std::vector<TnBox> boxes;
  for (int i = 0; i < kBoxes; ++i) {
    TnBox box = shape;
    for (int axis = 0; axis < dims.rank; ++axis) {
      const std::int64_t room = dims.d[axis] - shape.size[axis];
      if (i == 1) {
        box.start[axis] = room;
      } else if (i > 1 && room > 0) {
        box.start[axis] = static_cast<std::int64_t>(random->word() % static_cast<std::uint64_t>(room + 1));
      }
    }
    boxes.push_back(box);
  }
  return boxes;
}

std::int64_t box_elements(const TnBox& box, int rank) {
  std::int64_t count = 1;
  for (int axis = 0; axis < rank; ++axis) count *= box.size[axis];
  return count;
}

std::string index_text(const std::int64_t* index, int rank) {
  std::string text = "[";
  for (int axis = 0; axis < rank; ++axis) text += fmt::format("{}{}", axis == 0 ? "" : ",", index[axis]);
  return text + "]";
}

}  // namespace

Result<std::vector<std::shared_ptr<const HostTensor>>> make_inputs(const Site& site, const OpRef& op,
                                                                   std::uint64_t seed) {
  const SiteDesc& desc = site.desc();
  std::vector<std::vector<char>> storage(desc.num_inputs);
  std::vector<TnTensor> tensors(desc.num_inputs, TnTensor{});
  Normal random(seed);
  for (std::uint32_t i = 0; i < desc.num_inputs; ++i) {
    if (desc.dtypes[i] == TN_DTYPE_NONE) continue;
    TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(desc.dtypes[i], desc.dims[i], row_format()));
    TENON_ASSIGN(const std::int64_t count, element_count(desc.dims[i]));
    storage[i].resize(bytes);
    tensors[i] = tensor_view(storage[i].data(), desc.dtypes[i], desc.dims[i], row_format(), TN_MEMORY_HOST);
    if (desc.constants[i] != nullptr) {
      // A copy: the generator fills every input that it is given, and the constant belongs to the network.
      std::memcpy(storage[i].data(), desc.constants[i]->data(), bytes);
      continue;
    }
    for (std::int64_t e = 0; e < count; ++e) {
      // Integers stay small enough to be valid almost anywhere; ops that need more bring a generator.
      const double value = is_float(desc.dtypes[i]) ? random.next() : static_cast<double>(random.word() % 4);
      store_element(storage[i].data(), desc.dtypes[i], e, value);
    }
  }
  if (op.op->generate != nullptr) {
    clear_failure();
    TENON_RETURN_IF_ERROR(
        take_failure(op.op->generate(op.host, op.op, &desc.attrs, seed, tensors.data(), desc.num_inputs),
                     fmt::format("op {}: generate", desc.op_id)));
  }
  std::vector<std::shared_ptr<const HostTensor>> inputs(desc.num_inputs);
  for (std::uint32_t i = 0; i < desc.num_inputs; ++i) {
    if (desc.dtypes[i] == TN_DTYPE_NONE) continue;
    inputs[i] = desc.constants[i];
    if (inputs[i] == nullptr) {
      TENON_ASSIGN(inputs[i], HostTensor::create(desc.dtypes[i], desc.dims[i], storage[i].data(), storage[i].size()));
    }
  }
  return inputs;
}

Result<std::vector<ReferenceSample>> sample_reference(const Site& site, const OpRef& op,
                                                      const std::vector<std::shared_ptr<const HostTensor>>& inputs,
                                                      std::uint64_t max_elements) {
  const SiteDesc& desc = site.desc();
  if (op.op->reference == nullptr) {
    return Status(Code::kInvalid,
                  fmt::format("op {} has no reference, so no tactic of it can be verified", desc.op_id));
  }
  std::vector<std::shared_ptr<const HostTensor>> widened(inputs.size());
  std::vector<TnTensor> input_views(inputs.size(), TnTensor{});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    TENON_ASSIGN(widened[i], widen_for_reference(inputs[i]));
    input_views[i] = widened[i]->view();
  }
  const std::int64_t budget = static_cast<std::int64_t>(max_elements) / std::max(1u, desc.num_outputs);
  Normal random(0x7e404);
  std::vector<ReferenceSample> samples;
  for (std::uint32_t output = 0; output < desc.num_outputs; ++output) {
    const TnDims& dims = desc.dims[desc.num_inputs + output];
    const std::int32_t dtype = widened_dtype(desc.dtypes[desc.num_inputs + output]);
    TENON_ASSIGN(const std::int64_t count, element_count(dims));
    if (count == 0) continue;
    for (const TnBox& box : sample_boxes(dims, count, budget, &random)) {
      ReferenceSample sample;
      sample.output = output;
      sample.box = box;
      const std::int64_t elements = box_elements(box, dims.rank);
      std::vector<char> bytes(static_cast<std::size_t>(elements) * static_cast<std::size_t>(dtype_bits(dtype) / 8));
      // Only this output is asked for: the others get empty boxes.
      std::vector<TnBox> boxes(desc.num_outputs, TnBox{});
      std::vector<TnTensor> outputs;
      for (std::uint32_t i = 0; i < desc.num_outputs; ++i) {
        outputs.push_back(tensor_view(i == output ? bytes.data() : nullptr,
                                      widened_dtype(desc.dtypes[desc.num_inputs + i]), desc.dims[desc.num_inputs + i],
                                      row_format(), TN_MEMORY_HOST));
      }
      boxes[output] = box;
      const TnReference call{TN_HEADER(TnReference), desc.num_inputs, desc.num_outputs, 0, &desc.attrs,
                             input_views.data(),     outputs.data(),  boxes.data()};
      clear_failure();
      TENON_RETURN_IF_ERROR(
          take_failure(op.op->reference(op.host, op.op, &call), fmt::format("op {}: reference", desc.op_id)));
      for (std::int64_t e = 0; e < elements; ++e) {
        sample.expected.push_back(load_element(bytes.data(), dtype, e));
      }
      if (output < desc.epilogues.size() && !desc.epilogues[output].empty()) {
        std::vector<float> values(sample.expected.begin(), sample.expected.end());
        const float* const operand = values.data();
        evaluate_f32(desc.epilogues[output], {&operand, 1}, values.data(), elements);
        sample.expected.assign(values.begin(), values.end());
      }
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

Result<TnTolerance> tolerance_of(const OpRef& op, const Attrs& attrs, std::int32_t dtype) {
  TnTolerance tolerance{0, 0};
  if (op.op->tolerance != nullptr) {
    clear_failure();
    TENON_RETURN_IF_ERROR(take_failure(op.op->tolerance(op.host, op.op, &attrs, dtype, &tolerance),
                                       fmt::format("op {}: tolerance", op.op->id)));
    return tolerance;
  }
  if (dtype == TN_F32) return TnTolerance{1e-5, 1e-4};
  if (dtype == TN_F64) return TnTolerance{1e-12, 1e-10};
  if (dtype == TN_F16) return TnTolerance{1e-3, 1e-2};
  if (dtype == TN_BF16) return TnTolerance{1e-2, 5e-2};
  return tolerance;
}

struct Bench::Impl {
  std::shared_ptr<const Site> site;
  std::shared_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::vector<DeviceBuffer> buffers;  // before the instance: it must be destroyed first
  std::vector<DeviceBuffer> output_buffers;
  DeviceBuffer persistent, workspace, context_host, context_device;
  std::unique_ptr<Instance> instance;
  std::vector<TnTensor> inputs, outputs;
  TnExec exec{};
  std::vector<std::unique_ptr<Event>> events;
  std::unique_ptr<Recording> recording;
  int recorded_repeats = 0;

  Status enqueue() { return instance->enqueue(exec, inputs.data(), outputs.data()); }
  Result<double> ms_on_host(int repeats);
  Result<double> ms_on_device(int repeats);

  TnTensor port_tensor(const TnPort& port, std::size_t tensor, void* data) const {
    if (port.dtype == TN_DTYPE_NONE) return TnTensor{};
    return tensor_view(data, port.dtype, site->desc().dims[tensor], port.format);
  }

  Status add_input(std::size_t i, const std::shared_ptr<const HostTensor>& contents) {
    TnTensor tensor = port_tensor(instance->candidate().combo.inputs[i], i, nullptr);
    if (contents == nullptr || tensor.dtype == TN_DTYPE_NONE) {
      inputs.push_back(TnTensor{});
      buffers.emplace_back();
      return {};
    }
    TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(tensor.dtype, tensor.dims, tensor.format));
    TENON_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, bytes));
    std::vector<char> staged(bytes);
    tensor.data = staged.data();
    reformat_host(contents->view(), tensor);
    TENON_RETURN_IF_ERROR(device->copy_to_device(buffer.data(), staged.data(), bytes, *stream));
    TENON_RETURN_IF_ERROR(stream->synchronize());
    tensor.data = buffer.data();
    inputs.push_back(tensor);
    buffers.push_back(std::move(buffer));
    return {};
  }

  Status add_output(std::size_t i) {
    TnTensor tensor = port_tensor(instance->candidate().combo.outputs[i], site->desc().num_inputs + i, nullptr);
    TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(tensor.dtype, tensor.dims, tensor.format));
    TENON_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, bytes));
    tensor.data = buffer.data();
    outputs.push_back(tensor);
    output_buffers.push_back(std::move(buffer));
    return {};
  }

  /// The bytes of an output as it lies in memory.
  Result<std::vector<char>> read_back(std::uint32_t index) {
    std::vector<char> bytes(output_buffers[index].size());
    TENON_RETURN_IF_ERROR(device->copy_to_host(bytes.data(), outputs[index].data, bytes.size(), *stream));
    TENON_RETURN_IF_ERROR(stream->synchronize());
    return bytes;
  }

  /// Formats that promise zeros in padded blocks must keep the promise: later kernels add those cells up.
  Status check_padding(const TnTensor& tensor) const {
    if (tensor.format.padding != TN_PAD_ZERO || tensor.dtype != TN_F32) return {};
    TnTensor copy = tensor;
    std::vector<char> zeroed(static_cast<const char*>(tensor.data),
                             static_cast<const char*>(tensor.data) + physical_elements(tensor.dims, tensor.format) * 4);
    copy.data = zeroed.data();
    zero_padding(copy);
    const auto* left = static_cast<const float*>(tensor.data);
    const auto* right = reinterpret_cast<const float*>(zeroed.data());
    for (std::int64_t i = 0; i < physical_elements(tensor.dims, tensor.format); ++i) {
      if (left[i] != right[i] && !(std::isnan(left[i]) && std::isnan(right[i]))) {
        return {Code::kInternal, fmt::format("the padding of format {} is not zero", format_text(tensor.format))};
      }
    }
    return {};
  }
};

Bench::Bench() : impl_(new Impl) {}
Bench::~Bench() {
  if (impl_->stream != nullptr) (void)impl_->stream->synchronize();
}

Result<std::unique_ptr<Bench>> Bench::create(std::shared_ptr<const Site> site, const Candidate& candidate,
                                             std::shared_ptr<Device> device,
                                             const std::vector<std::shared_ptr<const HostTensor>>& inputs) {
  std::unique_ptr<Bench> bench(new Bench);
  Impl& impl = *bench->impl_;
  impl.site = site;
  impl.device = std::move(device);
  TENON_ASSIGN(impl.stream, impl.device->create_stream());
  TENON_ASSIGN(impl.instance, Instance::configure(std::move(site), candidate));
  const TnSizes& sizes = impl.instance->sizes();
  TENON_ASSIGN(impl.persistent, DeviceBuffer::allocate(impl.device, sizes.persistent));
  TENON_ASSIGN(impl.workspace, DeviceBuffer::allocate(impl.device, sizes.workspace));
  TENON_ASSIGN(impl.context_host, DeviceBuffer::allocate(make_cpu_device({.threads = 1}), sizes.context_host));
  TENON_ASSIGN(impl.context_device, DeviceBuffer::allocate(impl.device, sizes.context_device));

  const SiteDesc& desc = impl.site->desc();
  std::vector<void*> constants;
  for (std::size_t i = 0; i < desc.num_inputs; ++i) {
    TENON_RETURN_IF_ERROR(impl.add_input(i, inputs[i]));
    constants.push_back(desc.constants[i] != nullptr ? impl.inputs[i].data : nullptr);
  }
  for (std::size_t i = 0; i < desc.num_outputs; ++i) TENON_RETURN_IF_ERROR(impl.add_output(i));
  TENON_RETURN_IF_ERROR(
      impl.instance->initialize(*impl.device, *impl.stream, impl.persistent.data(), false, constants));

  impl.device->prepare_exec(*impl.stream, &impl.exec);
  impl.exec.workspace = impl.workspace.data();
  impl.exec.workspace_size = sizes.workspace;
  impl.exec.context_host = impl.context_host.data();
  impl.exec.context_device = impl.context_device.data();
  TENON_RETURN_IF_ERROR(impl.instance->set_shapes(impl.exec, impl.inputs.data(), impl.outputs.data()));
  return bench;
}

Status Bench::run() {
  TENON_RETURN_IF_ERROR(impl_->enqueue());
  return impl_->stream->synchronize();
}

Result<double> Bench::Impl::ms_on_host(int repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) TENON_RETURN_IF_ERROR(enqueue());
  TENON_RETURN_IF_ERROR(stream->synchronize());
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  return taken.count() / repeats;
}

Result<double> Bench::Impl::ms_on_device(int repeats) {
  if (events.empty()) {
    for (int i = 0; i < 2; ++i) {
      TENON_ASSIGN(std::unique_ptr<Event> event, device->create_event());
      events.push_back(std::move(event));
    }
  }
  if (recorded_repeats != repeats) {
    recording.reset();
    recorded_repeats = repeats;
    if ((instance->candidate().kernel.kernel->flags & TN_KERNEL_GRAPH_CAPTURABLE) != 0) {
      auto recorded = device->record(*stream, [&]() -> Status {
        for (int i = 0; i < repeats; ++i) TENON_RETURN_IF_ERROR(enqueue());
        return {};
      });
      if (!recorded.ok()) return recorded.status();
      recording = std::move(*recorded);
      TENON_RETURN_IF_ERROR(recording->launch(*stream));  // the first launch uploads it
    }
  }
  TENON_RETURN_IF_ERROR(events[0]->record(*stream));
  if (recording != nullptr) {
    TENON_RETURN_IF_ERROR(recording->launch(*stream));
  } else {
    for (int i = 0; i < repeats; ++i) TENON_RETURN_IF_ERROR(enqueue());
  }
  TENON_RETURN_IF_ERROR(events[1]->record(*stream));
  TENON_RETURN_IF_ERROR(stream->synchronize());
  TENON_ASSIGN(const double ms, events[1]->elapsed_ms(*events[0]));
  return ms / repeats;
}

Result<double> Bench::ms_per_run(int repeats) {
  return impl_->device->info().on_host() ? impl_->ms_on_host(repeats) : impl_->ms_on_device(repeats);
}

Status Bench::poison() {
  for (std::size_t i = 0; i < impl_->output_buffers.size(); ++i) {
    TENON_RETURN_IF_ERROR(
        impl_->device->fill(impl_->outputs[i].data, 0xFF, impl_->output_buffers[i].size(), *impl_->stream));
  }
  return impl_->stream->synchronize();
}

Status Bench::compare(const std::vector<ReferenceSample>& samples, const TnTolerance& tolerance) {
  double squares = 0;
  std::int64_t count = 0;
  for (const ReferenceSample& sample : samples) {
    for (const double value : sample.expected) {
      if (std::isfinite(value)) squares += value * value;
      ++count;
    }
  }
  const double rms = count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0;
  for (std::uint32_t output = 0; output < impl_->outputs.size(); ++output) {
    TENON_ASSIGN(std::vector<char> bytes, impl_->read_back(output));
    TnTensor tensor = impl_->outputs[output];
    tensor.data = bytes.data();
    TENON_RETURN_IF_ERROR(impl_->check_padding(tensor).with_context(fmt::format("output {}", output)));
    for (const ReferenceSample& sample : samples) {
      if (sample.output != output) continue;
      std::int64_t index[TN_MAX_RANK] = {};
      std::size_t e = 0;
      do {
        std::int64_t full[TN_MAX_RANK];
        for (int axis = 0; axis < tensor.dims.rank; ++axis) full[axis] = sample.box.start[axis] + index[axis];
        const double expected = sample.expected[e++];
        const double found = load_element(bytes.data(), tensor.dtype, element_offset(tensor, full));
        const double limit = tolerance.absolute + tolerance.relative * std::max(std::abs(expected), rms);
        const bool same = found == expected || (std::isnan(found) && std::isnan(expected));
        if (!same && !(std::abs(found - expected) <= limit)) {
          return {Code::kInternal,
                  fmt::format("output {} element {}: expected {:.9g}, found {:.9g}, allowed difference {:.3g}", output,
                              index_text(full, tensor.dims.rank), expected, found, limit)};
        }
      } while (next_index(index, sample.box.size, tensor.dims.rank));
    }
  }
  return {};
}

Result<std::shared_ptr<const HostTensor>> Bench::output(std::uint32_t index) {
  TENON_ASSIGN(std::vector<char> bytes, impl_->read_back(index));
  TnTensor from = impl_->outputs[index];
  from.data = bytes.data();
  TENON_ASSIGN(const std::uint64_t size, tensor_bytes(from.dtype, from.dims, row_format()));
  std::vector<char> row(size);
  reformat_host(from, tensor_view(row.data(), from.dtype, from.dims, row_format(), TN_MEMORY_HOST));
  return HostTensor::create(from.dtype, from.dims, row.data(), row.size());
}

const Instance& Bench::instance() const { return *impl_->instance; }
Stream& Bench::stream() { return *impl_->stream; }

}  // namespace tenon
