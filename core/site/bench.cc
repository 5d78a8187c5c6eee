#include "core/site/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/graph/convert.h"
#include "core/site/elements.h"
#include "core/site/layout.h"

namespace tenon {
namespace {

std::string index_text(const std::int64_t* index, int rank) {
  std::string text = "[";
  for (int axis = 0; axis < rank; ++axis) text += fmt::format("{}{}", axis == 0 ? "" : ",", index[axis]);
  return text + "]";
}

/// Bytes of the site's tensors in row-major form: constants, other inputs, outputs.
struct Footprint {
  std::uint64_t constants = 0, inputs = 0, outputs = 0;
};

Result<Footprint> footprint_of(const SiteDesc& desc) {
  Footprint total;
  for (std::size_t i = 0; i < desc.dims.size(); ++i) {
    if (desc.dtypes[i] == TN_DTYPE_NONE) continue;
    TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(desc.dtypes[i], desc.dims[i], row_format()));
    (i >= desc.num_read() ? total.outputs : desc.constants[i] != nullptr ? total.constants : total.inputs) += bytes;
  }
  return total;
}

}  // namespace

// Weights that alone take an eighth of the cache belong to a network that does not fit in it, so they come from memory.
// Smaller sites find everything in the cache, unless all their tensors together take half of it.
Result<std::shared_ptr<BenchSetting>> BenchSetting::create(std::shared_ptr<const Site> site,
                                                           std::shared_ptr<Device> device,
                                                           std::vector<std::shared_ptr<const HostTensor>> inputs) {
  std::shared_ptr<BenchSetting> setting(new BenchSetting);
  setting->site_ = std::move(site);
  setting->device_ = std::move(device);
  setting->inputs_ = std::move(inputs);
  TENON_ASSIGN(setting->stream_, setting->device_->create_stream());
  const std::uint64_t cache = setting->device_->info().cache_bytes;
  TENON_ASSIGN(const Footprint bytes, footprint_of(setting->site_->desc()));
  setting->cold_ =
      cache > 0 && (bytes.constants >= cache / 8 || bytes.constants + bytes.inputs + bytes.outputs >= cache / 2);
  setting->warm_inputs_ = bytes.inputs <= cache / 2;
  if (setting->cold_) {
    TENON_ASSIGN(setting->flush_, DeviceBuffer::allocate(setting->device_, 2 * cache));
  }
  return setting;
}

const std::vector<char>& BenchSetting::bytes(std::size_t input, std::int32_t dtype, const TnFormat& format) {
  const auto [entry, added] = bytes_.try_emplace({input, dtype, format_text(format)});
  if (added) {
    TnTensor row = inputs_[input]->view();
    std::vector<std::uint16_t> narrowed;
    if (narrows(dtype, row.dtype)) {
      const std::int64_t count = element_count(row.dims).value();
      narrowed.resize(static_cast<std::size_t>(count));
      narrow(dtype, row.data, narrowed.data(), count);
      row = tensor_view(narrowed.data(), dtype, row.dims, row_format(), TN_MEMORY_HOST);
    }
    TnTensor tensor = tensor_view(nullptr, row.dtype, row.dims, format);
    entry->second.resize(tensor_bytes(row.dtype, row.dims, format).value());
    tensor.data = entry->second.data();
    reformat_host(row, tensor);
  }
  return entry->second;
}

Status BenchSetting::chill(const std::vector<DeviceBuffer>& inputs) {
  TENON_RETURN_IF_ERROR(device_->fill(flush_.data(), 0, flush_.size(), *stream_));
  for (std::size_t i = 0; warm_inputs_ && i < inputs.size(); ++i) {
    if (inputs[i].data() == nullptr || site_->desc().constants[i] != nullptr) continue;
    // Reading them is enough.
    const TnDims line = make_dims({static_cast<std::int64_t>(inputs[i].size())});
    const std::int64_t stride = 1;
    TENON_RETURN_IF_ERROR(device_->copy_strided(flush_.data(), &stride, inputs[i].data(), &stride, line, 1, *stream_));
  }
  return {};
}

struct Bench::Impl {
  std::shared_ptr<BenchSetting> setting;
  std::vector<DeviceBuffer> buffers;  // before the instance: it must be destroyed first
  std::vector<DeviceBuffer> output_buffers;
  DeviceBuffer persistent, workspace, context_host, context_device;
  std::unique_ptr<Instance> instance;
  std::vector<TnTensor> inputs, outputs;
  TnExec exec{};
  std::vector<std::unique_ptr<Event>> events;
  std::unique_ptr<Recording> recording;
  int recorded_repeats = 0;

  Device& device() const { return *setting->device_; }
  Stream& stream() const { return *setting->stream_; }
  const SiteDesc& desc() const { return setting->site_->desc(); }
  bool is_recordable() const { return (instance->candidate().kernel.kernel->flags & TN_KERNEL_GRAPH_CAPTURABLE) != 0; }
  Status enqueue() { return instance->enqueue(exec, inputs.data(), outputs.data()); }
  Status make_events(std::size_t count);
  Status record(int repeats);
  Result<double> ms_on_host(int repeats);
  Result<double> ms_on_device(int repeats);
  Result<double> ms_cold(int repeats);

  TnTensor port_tensor(const TnPort& port, std::size_t tensor, void* data) const {
    if (port.dtype == TN_DTYPE_NONE) return TnTensor{};
    return tensor_view(data, port.dtype, desc().dims[tensor], port.format);
  }

  Status add_input(std::size_t i) {
    TnTensor tensor = port_tensor(instance->candidate().combo.inputs[i], i, nullptr);
    if (setting->inputs_[i] == nullptr || tensor.dtype == TN_DTYPE_NONE) {
      inputs.push_back(TnTensor{});
      buffers.emplace_back();
      return {};
    }
    const std::vector<char>& bytes = setting->bytes(i, tensor.dtype, tensor.format);
    TENON_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(setting->device_, bytes.size()));
    TENON_RETURN_IF_ERROR(device().copy_to_device(buffer.data(), bytes.data(), bytes.size(), stream()));
    TENON_RETURN_IF_ERROR(stream().synchronize());
    tensor.data = buffer.data();
    inputs.push_back(tensor);
    buffers.push_back(std::move(buffer));
    return {};
  }

  Status add_output(std::size_t i) {
    TnTensor tensor = port_tensor(instance->candidate().combo.outputs[i], desc().num_read() + i, nullptr);
    TENON_ASSIGN(const std::uint64_t bytes, tensor_bytes(tensor.dtype, tensor.dims, tensor.format));
    TENON_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(setting->device_, bytes));
    tensor.data = buffer.data();
    outputs.push_back(tensor);
    output_buffers.push_back(std::move(buffer));
    return {};
  }

  /// The bytes of an output as it lies in memory.
  Result<std::vector<char>> read_back(std::uint32_t index) {
    std::vector<char> bytes(output_buffers[index].size());
    TENON_RETURN_IF_ERROR(device().copy_to_host(bytes.data(), outputs[index].data, bytes.size(), stream()));
    TENON_RETURN_IF_ERROR(stream().synchronize());
    return bytes;
  }

  /// Formats that promise zeros in padded blocks must keep the promise: later kernels add those cells up.
  Status check_padding(const TnTensor& tensor) const {
    if (tensor.format.padding != TN_PAD_ZERO) return {};
    if (tensor.dtype == TN_F32) return check_padding<std::uint32_t>(tensor);
    if (tensor.dtype == TN_BF16) return check_padding<std::uint16_t>(tensor);
    return {};
  }

  /// Word: the bits of an element, whose first one is its sign.
  template <class Word>
  static Status check_padding(const TnTensor& tensor) {
    const auto* words = static_cast<const Word*>(tensor.data);
    std::vector<Word> zeroed(words, words + physical_elements(tensor.dims, tensor.format));
    TnTensor copy = tensor;
    copy.data = zeroed.data();
    zero_padding(copy);
    constexpr Word kMinusZero = Word{1} << (8 * sizeof(Word) - 1);
    const bool clean = std::equal(zeroed.begin(), zeroed.end(), words,
                                  [](Word without, Word found) { return found == without || found == kMinusZero; });
    if (clean) return {};
    return {Code::kInternal, fmt::format("the padding of format {} is not zero", format_text(tensor.format))};
  }
};

Bench::Bench() : impl_(new Impl) {}
Bench::~Bench() {
  if (impl_->instance != nullptr) (void)impl_->stream().synchronize();
}

Result<std::unique_ptr<Bench>> Bench::create(const Candidate& candidate, std::shared_ptr<BenchSetting> setting) {
  std::unique_ptr<Bench> bench(new Bench);
  Impl& impl = *bench->impl_;
  impl.setting = std::move(setting);
  const std::shared_ptr<Device>& device = impl.setting->device_;
  TENON_ASSIGN(impl.instance, Instance::configure(impl.setting->site_, candidate));
  const TnSizes& sizes = impl.instance->sizes();
  TENON_ASSIGN(impl.persistent, DeviceBuffer::allocate(device, sizes.persistent));
  TENON_ASSIGN(impl.workspace, DeviceBuffer::allocate(device, sizes.workspace));
  TENON_ASSIGN(impl.context_host, DeviceBuffer::allocate(make_cpu_device({.threads = 1}), sizes.context_host));
  TENON_ASSIGN(impl.context_device, DeviceBuffer::allocate(device, sizes.context_device));

  const SiteDesc& desc = impl.desc();
  std::vector<void*> constants;
  for (std::size_t i = 0; i < desc.num_read(); ++i) {
    TENON_RETURN_IF_ERROR(impl.add_input(i));
    constants.push_back(desc.constants[i] != nullptr ? impl.inputs[i].data : nullptr);
  }
  for (std::size_t i = 0; i < desc.num_outputs; ++i) TENON_RETURN_IF_ERROR(impl.add_output(i));
  TENON_RETURN_IF_ERROR(
      impl.instance->initialize(impl.device(), impl.stream(), impl.persistent.data(), false, constants));

  impl.device().prepare_exec(impl.stream(), &impl.exec);
  impl.exec.workspace = impl.workspace.data();
  impl.exec.workspace_size = sizes.workspace;
  impl.exec.context_host = impl.context_host.data();
  impl.exec.context_device = impl.context_device.data();
  TENON_RETURN_IF_ERROR(impl.instance->set_shapes(impl.exec, impl.inputs.data(), impl.outputs.data()));
  return bench;
}

Status Bench::run() {
  TENON_RETURN_IF_ERROR(impl_->enqueue());
  return impl_->stream().synchronize();
}

Result<double> Bench::Impl::ms_on_host(int repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) TENON_RETURN_IF_ERROR(enqueue());
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  return taken.count() / repeats;
}

Status Bench::Impl::make_events(std::size_t count) {
  while (events.size() < count) {
    TENON_ASSIGN(std::unique_ptr<Event> event, device().create_event());
    events.push_back(std::move(event));
  }
  return {};
}

Status Bench::Impl::record(int repeats) {
  if (recorded_repeats == repeats) return {};
  recording.reset();
  recorded_repeats = repeats;
  if (!is_recordable()) return {};
  const auto launches = [&]() -> Status {
    for (int i = 0; i < repeats; ++i) TENON_RETURN_IF_ERROR(enqueue());
    return {};
  };
  TENON_ASSIGN(recording, device().record(stream(), launches));
  return recording->launch(stream());  // the first launch uploads it
}

Result<double> Bench::Impl::ms_on_device(int repeats) {
  TENON_RETURN_IF_ERROR(make_events(2));
  TENON_RETURN_IF_ERROR(events[0]->record(stream()));
  if (recording != nullptr) {
    TENON_RETURN_IF_ERROR(recording->launch(stream()));
  } else {
    for (int i = 0; i < repeats; ++i) TENON_RETURN_IF_ERROR(enqueue());
  }
  TENON_RETURN_IF_ERROR(events[1]->record(stream()));
  TENON_RETURN_IF_ERROR(stream().synchronize());
  TENON_ASSIGN(const double ms, events[1]->elapsed_ms(*events[0]));
  return ms / repeats;
}

/// Not recorded: chilling takes longer than launching, so that launches are always waiting.
Result<double> Bench::Impl::ms_cold(int repeats) {
  TENON_RETURN_IF_ERROR(make_events(2 * static_cast<std::size_t>(repeats)));
  for (std::size_t i = 0; i < 2 * static_cast<std::size_t>(repeats); i += 2) {
    TENON_RETURN_IF_ERROR(setting->chill(buffers));
    TENON_RETURN_IF_ERROR(events[i]->record(stream()));
    TENON_RETURN_IF_ERROR(enqueue());
    TENON_RETURN_IF_ERROR(events[i + 1]->record(stream()));
  }
  TENON_RETURN_IF_ERROR(stream().synchronize());
  double total = 0;
  for (std::size_t i = 0; i < 2 * static_cast<std::size_t>(repeats); i += 2) {
    TENON_ASSIGN(const double ms, events[i + 1]->elapsed_ms(*events[i]));
    total += ms;
  }
  return total / repeats;
}

Result<double> Bench::ms_per_run(int repeats) {
  if (impl_->device().info().on_host()) return impl_->ms_on_host(repeats);
  if (impl_->setting->cold_) return impl_->ms_cold(repeats);
  TENON_RETURN_IF_ERROR(impl_->record(repeats));
  return impl_->ms_on_device(repeats);
}

Result<double> Bench::quick_ms() {
  constexpr double kShortMs = 0.2;
  constexpr int kShortRuns = 8;
  if (impl_->device().info().on_host() || impl_->setting->cold_) return ms_per_run(1);
  impl_->recording.reset();
  impl_->recorded_repeats = 0;
  TENON_ASSIGN(const double once, impl_->ms_on_device(1));
  return once < kShortMs ? impl_->ms_on_device(kShortRuns) : once;
}

Result<int> Bench::launches() {
  if (impl_->device().info().on_host() || !impl_->is_recordable()) return 1;
  if (impl_->recording == nullptr) TENON_RETURN_IF_ERROR(impl_->record(1));
  return static_cast<int>(impl_->recording->launches()) / impl_->recorded_repeats;
}

Status Bench::poison() {
  for (std::size_t i = 0; i < impl_->output_buffers.size(); ++i) {
    TENON_RETURN_IF_ERROR(
        impl_->device().fill(impl_->outputs[i].data, 0xFF, impl_->output_buffers[i].size(), impl_->stream()));
  }
  return impl_->stream().synchronize();
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
Stream& Bench::stream() { return impl_->stream(); }

}  // namespace tenon
