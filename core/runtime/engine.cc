#include "core/runtime/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/text.h"
#include "core/plan/plan_site.h"
#include "core/runtime/engine_impl.h"

namespace tenon {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;

const char* kind_name(int kind) { return kind == TN_CUDA ? "cuda" : "cpu"; }

std::string device_problem(const Plan& plan, const DeviceInfo& device) {
  if (plan.device_kind != kind_name(device.kind)) {
    return fmt::format("the engine was built for device {}, this one is {}; choose that device or build it again",
                       plan.device_kind, kind_name(device.kind));
  }
  if (plan.device_signature != device.signature) {
    return fmt::format("the engine was built on '{}', this device is '{}'; build it again here", plan.device_signature,
                       device.signature);
  }
  if (plan.threads != 0 && plan.threads != device.threads) {
    return fmt::format("the engine was built for {} threads, this device has {}; set the same number or build it again",
                       plan.threads, device.threads);
  }
  return "";
}

std::string plugin_problem(const std::vector<PluginNeed>& missing) {
  if (missing.empty()) return "";
  std::vector<std::string> lines;
  for (const PluginNeed& need : missing) {
    lines.push_back(fmt::format("{} version {} (built with {}, {})", need.id, need.version,
                                need.library.empty() ? "a plugin inside the program" : need.library, need.build_id));
  }
  return fmt::format("the engine needs {} plugin{} not loaded: {}; load {} and try again", missing.size(),
                     missing.size() == 1 ? " that is" : "s that are", join(lines, "; "),
                     missing.size() == 1 ? "it" : "them");
}

// Appends `bytes` of aligned memory to a total and gives where they begin.
Result<std::uint64_t> reserve(std::uint64_t* total, std::uint64_t bytes, const char* what) {
  const std::uint64_t offset = (*total + kRuntimeAlignment - 1) / kRuntimeAlignment * kRuntimeAlignment;
  if (bytes > kMostBytes || offset > kMostBytes) {
    return Status(Code::kInternal, fmt::format("{} of {} bytes; that is a fault of the kernel", what, bytes));
  }
  *total = offset + bytes;
  return offset;
}

// Makes a plan ready to run, step by step.
class PlanLoader {
 public:
  PlanLoader(const EngineOptions& options, Executable* out) : options_(options), device_(*options.device), out_(*out) {}

  Status run() {
    TENON_RETURN_IF_ERROR(check_needs());
    if (out_.base == nullptr) {
      TENON_ASSIGN(ShapeModel shapes, ShapeModel::create(out_.plan, options_.registry));
      if (out_.plan.has_varying_dims()) out_.shapes = std::move(shapes);
    }
    TENON_ASSIGN(stream_, device_.create_stream());
    TENON_RETURN_IF_ERROR(place_constants());
    for (std::size_t n = 0; n < out_.plan.nodes.size(); ++n) {
      const PlanNode& node = out_.plan.nodes[n];
      if (node.data_dependent) out_.stops.push_back(n);
      const Status status = add_layer(n);
      if (!status.ok()) return status.with_context("layer '" + node.name + "'");
    }
    TENON_RETURN_IF_ERROR(stream_->synchronize());
    return add_up_memory();
  }

 private:
  // Device and plugins together: a user should not learn of the second problem after solving the first.
  Status check_needs() const {
    const std::string device = device_problem(out_.plan, device_.info());
    const std::string plugins = plugin_problem(options_.registry->missing(out_.plan.plugins));
    if (!device.empty()) return {Code::kVersion, plugins.empty() ? device : device + "; also, " + plugins};
    if (!plugins.empty()) return {Code::kNotFound, plugins};
    return {};
  }

  bool on_host() const { return device_.info().kind == TN_CPU; }

  // A copy in device memory that the executable owns.
  Result<void*> upload(const void* data, std::uint64_t bytes) {
    TENON_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(options_.device, bytes));
    if (data != nullptr) TENON_RETURN_IF_ERROR(device_.copy_to_device(buffer.data(), data, bytes, *stream_));
    out_.buffers.push_back(std::move(buffer));
    return out_.buffers.back().data();
  }

  // On the CPU constants stay where they are: in the mapped file.
  Status place_constants() {
    for (std::size_t i = 0; i < out_.plan.constants.size(); ++i) {
      const auto& constant = out_.plan.constants[i];
      void* memory = const_cast<void*>(constant->data());
      if (out_.base != nullptr && out_.base->plan.constants[i] == constant) {
        memory = out_.base->constants[i];
      } else if (!on_host()) {
        TENON_ASSIGN(memory, upload(constant->data(), constant->bytes()));
      }
      out_.constants.push_back(memory);
    }
    return {};
  }

  // With the engine's own dims a kernel gets the state that it stored; with others it is configured anew.
  Result<std::unique_ptr<Instance>> instance_of(const PlanNode& node) {
    const auto prepare = [&](Instance* instance) { return initialize(node, instance); };
    if (out_.base != nullptr) return configure_node(out_.plan, node, *options_.registry, device_, prepare);
    TENON_ASSIGN(const Candidate candidate, candidate_of(node, *options_.registry, device_));
    std::shared_ptr<const Site> site = Site::create(describe_site(out_.plan, node), device_);
    TENON_RETURN_IF_ERROR(check_offered(*site, candidate));
    TENON_ASSIGN(std::unique_ptr<Instance> instance,
                 Instance::deserialize(std::move(site), candidate, node.kernel_revision, node.state));
    TENON_RETURN_IF_ERROR(prepare(instance.get()));
    return instance;
  }

  /// Whether a layer is the same as in the base, contents of constants included.
  bool is_shared(const PlanNode& node) const {
    if (out_.base == nullptr) return false;
    const auto same = [&](std::uint32_t id) {
      if (id == kNoTensor) return true;
      const PlanTensor& tensor = out_.tensor(id);
      return same_dims(tensor.dims, out_.base->tensor(id).dims) &&
             (tensor.storage != Storage::kConstant ||
              out_.plan.constants[tensor.index] == out_.base->plan.constants[tensor.index]);
    };
    return std::all_of(node.inputs.begin(), node.inputs.end(), same) &&
           std::all_of(node.outputs.begin(), node.outputs.end(), same);
  }

  Status add_layer(std::size_t n) {
    const PlanNode& node = out_.plan.nodes[n];
    std::shared_ptr<const Instance> instance;
    if (is_shared(node)) {
      instance = out_.base->layers[n].instance;
    } else {
      TENON_ASSIGN(instance, instance_of(node));
    }

    Layer layer;
    const TnSizes& sizes = instance->sizes();
    layer.workspace = std::max(sizes.workspace, instance->candidate().tactic.workspace);
    TENON_ASSIGN(layer.context_host, reserve(&out_.context_host_bytes, sizes.context_host, "context memory"));
    TENON_ASSIGN(layer.context_device, reserve(&out_.context_device_bytes, sizes.context_device, "context memory"));
    layer.instance = std::move(instance);
    out_.layers.push_back(std::move(layer));
    return {};
  }

  Status initialize(const PlanNode& node, Instance* instance) {
    std::vector<void*> constants;
    for (const std::uint32_t id : node.inputs) {
      const bool constant = id != kNoTensor && out_.tensor(id).storage == Storage::kConstant;
      constants.push_back(constant ? out_.constants[out_.tensor(id).index] : nullptr);
    }
    const TnSizes& sizes = instance->sizes();
    const bool has_key = sizes.pack_key[0] != 0 || sizes.pack_key[1] != 0;
    const PackKey key(instance->candidate().kernel.plugin_id, sizes.pack_key[0], sizes.pack_key[1], sizes.persistent);
    void* memory = nullptr;
    bool filled = false;
    if (sizes.persistent > 0) {
      void* const shared = has_key ? find_packed(key) : nullptr;
      const std::span<const std::uint8_t> stored = node.persistent_data();
      // Another revision of the kernel may lay out its packed bytes in another way.
      const bool usable = node.has_persistent && stored.size() == sizes.persistent &&
                          instance->candidate().kernel.kernel->revision == node.kernel_revision;
      if (shared != nullptr) {
        memory = shared;
        filled = true;
      } else if (usable && on_host()) {
        memory = const_cast<std::uint8_t*>(stored.data());
        filled = true;
      } else {
        TENON_ASSIGN(memory, upload(usable ? stored.data() : nullptr, sizes.persistent));
        filled = usable;
      }
    }
    TENON_RETURN_IF_ERROR(instance->initialize(device_, *stream_, memory, filled, constants));
    if (has_key && memory != nullptr) out_.packed.emplace(key, memory);
    return {};
  }

  void* find_packed(const PackKey& key) const {
    for (const Executable* owner = &out_; owner != nullptr; owner = owner->base.get()) {
      const auto found = owner->packed.find(key);
      if (found != owner->packed.end()) return found->second;
    }
    return nullptr;
  }

  Status add_up_memory() {
    if (!out_.plan.has_varying_dims()) out_.order = memory_order(out_.plan);
    std::vector<std::uint64_t> workspaces(static_cast<std::size_t>(out_.order.count()), 0);
    if (out_.base == nullptr && workspaces.size() == 1) workspaces[0] = out_.plan.workspace_bytes;
    for (std::size_t n = 0; n < out_.layers.size(); ++n) {
      std::uint64_t& workspace = workspaces[static_cast<std::size_t>(out_.order.stream(n))];
      workspace = std::max(workspace, out_.layers[n].workspace);
    }
    out_.scratch_bytes = out_.plan.arena_bytes;
    for (const std::uint64_t workspace : workspaces) {
      TENON_ASSIGN(const std::uint64_t offset, reserve(&out_.scratch_bytes, workspace, "workspace"));
      out_.workspace_offsets.push_back(offset);
    }
    // A context gets memory for the largest dims at once.
    out_.scratch_bytes = std::max(out_.scratch_bytes, out_.plan.scratch_bytes);
    std::uint64_t own = 0;
    for (const DeviceBuffer& buffer : out_.buffers) own += buffer.size();
    options_.logger->verbose(
        fmt::format("Engine loaded{}: {} layers, {} bytes of weights and packed weights beside the file, {} bytes of "
                    "scratch memory per context",
                    out_.base != nullptr ? " for other dims" : "", out_.layers.size(), own, out_.scratch_bytes));
    return {};
  }

  const EngineOptions& options_;
  Device& device_;
  Executable& out_;
  std::unique_ptr<Stream> stream_;
};

Result<std::shared_ptr<const Executable>> load_plan(const EngineOptions& options, Plan plan,
                                                    std::shared_ptr<const Executable> base) {
  auto executable = std::make_shared<Executable>();
  executable->base = std::move(base);
  executable->plan = std::move(plan);
  TENON_RETURN_IF_ERROR(PlanLoader(options, executable.get()).run());
  return std::shared_ptr<const Executable>(std::move(executable));
}

bool same_dims_each(const std::vector<TnDims>& a, const std::vector<TnDims>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_dims);
}

}  // namespace

Result<std::shared_ptr<const Executable>> Engine::Impl::executable_for(const std::vector<TnDims>& dims,
                                                                       const std::vector<TnDims>& sizes) const {
  std::vector<TnDims> own;
  for (const PlanIo& input : base->plan.inputs) own.push_back(base->tensor(input.tensor).dims);
  std::shared_ptr<const Executable> bounded = base;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!same_dims_each(dims, own)) {
    TENON_ASSIGN(bounded, find_or_load(dims, base, [&] { return base->shapes->specialize(base->plan, dims); }));
  }
  if (sizes.empty()) return bounded;
  std::vector<TnDims> key = dims;
  key.insert(key.end(), sizes.begin(), sizes.end());
  return find_or_load(key, bounded, [&] { return base->shapes->specialize(bounded->plan, dims, sizes); });
}

Result<std::shared_ptr<const Executable>> Engine::Impl::find_or_load(
    const std::vector<TnDims>& key, const std::shared_ptr<const Executable>& from,
    const std::function<Result<Plan>()>& specialize) const {
  constexpr std::size_t kMostKept = 8;
  for (auto entry = recent.begin(); entry != recent.end(); ++entry) {
    if (!same_dims_each(entry->first, key)) continue;
    recent.splice(recent.begin(), recent, entry);
    return recent.front().second;
  }
  TENON_ASSIGN(Plan plan, specialize());
  TENON_ASSIGN(std::shared_ptr<const Executable> executable, load_plan(options, std::move(plan), from));
  recent.emplace_front(key, executable);
  if (recent.size() > kMostKept) recent.pop_back();
  return executable;
}

Engine::Engine() : impl_(std::make_unique<Impl>()) {}
Engine::~Engine() = default;

Result<std::shared_ptr<Engine>> Engine::load(const void* bytes, std::size_t size,
                                             std::shared_ptr<const void> keep_alive, EngineOptions options) {
  return load_named("", bytes, size, std::move(keep_alive), std::move(options));
}

Result<std::shared_ptr<Engine>> Engine::load_file(const std::filesystem::path& path, EngineOptions options) {
  Result<std::shared_ptr<const MappedFile>> file = map_file(path);
  if (!file.ok()) return report_failure(file.status(), *options.logger, options.recorder);
  const std::shared_ptr<const MappedFile> mapped = std::move(*file);
  return load_named(path.string(), mapped->data, mapped->size, mapped, std::move(options));
}

Result<std::shared_ptr<Engine>> Engine::load_named(const std::string& name, const void* bytes, std::size_t size,
                                                   std::shared_ptr<const void> keep_alive, EngineOptions options) {
  Logger& logger = *options.logger;
  ErrorRecorder* recorder = options.recorder;
  const auto fail = [&](const Status& status) {
    return report_failure(name.empty() ? status : status.with_context(name), logger, recorder);
  };
  if (options.device == nullptr || options.registry == nullptr || bytes == nullptr) {
    return fail({Code::kInvalid, "loading an engine needs its bytes, a device and a registry; one of them is null"});
  }
  std::shared_ptr<Engine> engine(new Engine);
  engine->impl_->options = std::move(options);
  Result<Plan> plan = read_plan(bytes, size, std::move(keep_alive));
  if (!plan.ok()) return fail(plan.status());
  auto loaded = load_plan(engine->impl_->options, std::move(*plan), nullptr);
  if (!loaded.ok()) return fail(loaded.status());
  engine->impl_->base = std::move(*loaded);
  return engine;
}

const Plan& Engine::plan() const { return impl_->base->plan; }

namespace {

std::vector<IoInfo> info_of(const Plan& plan, const std::vector<PlanIo>& ends) {
  std::vector<IoInfo> result;
  for (const PlanIo& io : ends) {
    const PlanTensor& tensor = plan.tensors[io.tensor];
    result.push_back({io.name, tensor.dtype, tensor.dims, io.min, io.max});
  }
  return result;
}

}  // namespace

std::vector<IoInfo> Engine::inputs() const { return info_of(plan(), plan().inputs); }

std::vector<IoInfo> Engine::outputs() const { return info_of(plan(), plan().outputs); }

Device& Engine::device() const { return *impl_->options.device; }

std::uint64_t Engine::scratch_bytes() const { return impl_->base->scratch_bytes; }

}  // namespace tenon
