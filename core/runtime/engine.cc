#include "core/runtime/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/text.h"
#include "core/runtime/engine_impl.h"
#include "core/runtime/node_check.h"

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

}  // namespace

// Builds an Engine::Impl from a plan, step by step.
class EngineLoader {
 public:
  explicit EngineLoader(Engine::Impl* impl) : impl_(*impl), device_(*impl->options.device) {}

  Status run() {
    TENON_RETURN_IF_ERROR(check_needs());
    TENON_ASSIGN(stream_, device_.create_stream());
    TENON_RETURN_IF_ERROR(place_constants());
    for (const PlanNode& node : impl_.plan.nodes) {
      const Status status = add_layer(node);
      if (!status.ok()) return status.with_context("layer '" + node.name + "'");
    }
    TENON_RETURN_IF_ERROR(stream_->synchronize());
    return add_up_memory();
  }

 private:
  // Device and plugins together: a user should not learn of the second problem after solving the first.
  Status check_needs() const {
    const std::string device = device_problem(impl_.plan, device_.info());
    const std::string plugins = plugin_problem(impl_.options.registry->missing(impl_.plan.plugins));
    if (!device.empty()) return {Code::kVersion, plugins.empty() ? device : device + "; also, " + plugins};
    if (!plugins.empty()) return {Code::kNotFound, plugins};
    return {};
  }

  bool on_host() const { return device_.info().kind == TN_CPU; }

  // A copy in device memory that the engine owns.
  Result<void*> upload(const void* data, std::uint64_t bytes) {
    TENON_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(impl_.options.device, bytes));
    if (data != nullptr) TENON_RETURN_IF_ERROR(device_.copy_to_device(buffer.data(), data, bytes, *stream_));
    impl_.buffers.push_back(std::move(buffer));
    return impl_.buffers.back().data();
  }

  // On the CPU constants stay where they are: in the mapped file.
  Status place_constants() {
    for (const auto& constant : impl_.plan.constants) {
      void* memory = const_cast<void*>(constant->data());
      if (!on_host()) {
        TENON_ASSIGN(memory, upload(constant->data(), constant->bytes()));
      }
      impl_.constants.push_back(memory);
    }
    return {};
  }

  Status add_layer(const PlanNode& node) {
    TENON_ASSIGN(Candidate candidate, candidate_of(node));
    TENON_RETURN_IF_ERROR(check_node(impl_.plan, node, impl_.options.registry));
    std::vector<void*> constants;
    std::shared_ptr<const Site> site = Site::create(site_of(node, &constants), device_);
    TENON_RETURN_IF_ERROR(check_offered(*site, candidate));
    TENON_ASSIGN(std::unique_ptr<Instance> instance,
                 Instance::deserialize(std::move(site), candidate, node.kernel_revision, node.state));
    TENON_RETURN_IF_ERROR(initialize(node, constants, instance.get()));

    Layer layer;
    const TnSizes& sizes = instance->sizes();
    layer.workspace = std::max(sizes.workspace, node.tactic.workspace);
    TENON_ASSIGN(layer.context_host, reserve(&impl_.context_host_bytes, sizes.context_host, "context memory"));
    TENON_ASSIGN(layer.context_device, reserve(&impl_.context_device_bytes, sizes.context_device, "context memory"));
    layer.instance = std::move(instance);
    impl_.layers.push_back(std::move(layer));
    return {};
  }

  Result<Candidate> candidate_of(const PlanNode& node) const {
    Candidate candidate;
    candidate.kernel = find_kernel(*impl_.options.registry, node.op_id, node.kernel, *impl_.options.device);
    if (!candidate.kernel) {
      return Status(
          Code::kNotFound,
          fmt::format("kernel {} of {} is not among the loaded plugins{}; load the version of the plugin that "
                      "the engine was built with, or build it again",
                      node.kernel, node.op_id,
                      node.plugin_id.empty() ? "" : ", though plugin " + node.plugin_id + " is"));
    }
    candidate.combo = node.combo;
    candidate.tactic = node.tactic;
    candidate.hash = node.tactic_hash;
    candidate.fused_epilogue = node.fused_epilogue;
    candidate.combo_text = node.combo.text();
    return candidate;
  }

  SiteDesc site_of(const PlanNode& node, std::vector<void*>* device_constants) const {
    SiteDesc desc;
    desc.op_id = node.op_id;
    desc.attrs = node.attrs;
    desc.num_inputs = static_cast<std::uint32_t>(node.inputs.size());
    desc.num_outputs = static_cast<std::uint32_t>(node.outputs.size());
    desc.epilogues = node.epilogues;
    desc.flags = node.site_flags;
    for (const std::uint32_t id : node.inputs) {
      const bool constant = id != kNoTensor && impl_.tensor(id).storage == Storage::kConstant;
      desc.dims.push_back(id == kNoTensor ? TnDims{} : impl_.tensor(id).dims);
      desc.dtypes.push_back(id == kNoTensor ? static_cast<std::int32_t>(TN_DTYPE_NONE) : impl_.tensor(id).dtype);
      desc.constants.push_back(constant ? impl_.plan.constants[impl_.tensor(id).index] : nullptr);
      device_constants->push_back(constant ? impl_.constants[impl_.tensor(id).index] : nullptr);
    }
    for (const std::uint32_t id : node.outputs) {
      desc.dims.push_back(impl_.tensor(id).dims);
      desc.dtypes.push_back(impl_.tensor(id).dtype);
    }
    return desc;
  }

  Status initialize(const PlanNode& node, const std::vector<void*>& constants, Instance* instance) {
    const TnSizes& sizes = instance->sizes();
    const bool has_key = sizes.pack_key[0] != 0 || sizes.pack_key[1] != 0;
    // Keys of different plugins are not comparable: nothing stops two of them from hashing the same constants.
    const PackKey key(instance->candidate().kernel.plugin_id, sizes.pack_key[0], sizes.pack_key[1], sizes.persistent);
    void* memory = nullptr;
    bool filled = false;
    if (sizes.persistent > 0) {
      const auto shared = has_key ? packed_.find(key) : packed_.end();
      const std::span<const std::uint8_t> stored = node.persistent_data();
      // Another revision of the kernel may lay out its packed bytes in another way.
      const bool usable = node.has_persistent && stored.size() == sizes.persistent &&
                          instance->candidate().kernel.kernel->revision == node.kernel_revision;
      if (shared != packed_.end()) {
        memory = shared->second;
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
    if (has_key && memory != nullptr) packed_.emplace(key, memory);
    return {};
  }

  Status add_up_memory() {
    std::uint64_t workspace = impl_.plan.workspace_bytes;
    for (const Layer& layer : impl_.layers) workspace = std::max(workspace, layer.workspace);
    impl_.scratch_bytes = impl_.plan.arena_bytes;
    TENON_ASSIGN(impl_.workspace_offset, reserve(&impl_.scratch_bytes, workspace, "workspace"));
    std::uint64_t own = 0;
    for (const DeviceBuffer& buffer : impl_.buffers) own += buffer.size();
    impl_.options.logger->verbose(
        fmt::format("Engine loaded: {} layers, {} bytes of weights and packed weights beside the file, {} bytes of "
                    "scratch memory per context",
                    impl_.layers.size(), own, impl_.scratch_bytes));
    return {};
  }

  using PackKey = std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t>;

  Engine::Impl& impl_;
  Device& device_;
  std::unique_ptr<Stream> stream_;
  std::map<PackKey, void*> packed_;
};

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
  engine->impl_->plan = std::move(*plan);
  const Status status = EngineLoader(engine->impl_.get()).run();
  if (!status.ok()) return fail(status);
  return engine;
}

const Plan& Engine::plan() const { return impl_->plan; }

std::vector<IoInfo> Engine::inputs() const {
  std::vector<IoInfo> result;
  for (const PlanIo& io : impl_->plan.inputs) {
    result.push_back({io.name, impl_->tensor(io.tensor).dtype, impl_->tensor(io.tensor).dims});
  }
  return result;
}

std::vector<IoInfo> Engine::outputs() const {
  std::vector<IoInfo> result;
  for (const PlanIo& io : impl_->plan.outputs) {
    result.push_back({io.name, impl_->tensor(io.tensor).dtype, impl_->tensor(io.tensor).dims});
  }
  return result;
}

Device& Engine::device() const { return *impl_->options.device; }

std::uint64_t Engine::scratch_bytes() const { return impl_->scratch_bytes; }

}  // namespace tenon
