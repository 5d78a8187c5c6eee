#include "registry/registry.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/base/text.h"
#include "registry/loaded_plugin.h"
#include "registry/plugin_library.h"

namespace tenon {
namespace fs = std::filesystem;

namespace {

using PluginPtr = std::shared_ptr<LoadedPlugin>;

template <class T>
struct Entry {
  const T* item = nullptr;
  PluginPtr plugin;
};

template <class T>
using EntryMap = std::map<std::string, Entry<T>, std::less<>>;

/// A plugin that was taken out of the look-ups. While somebody still holds it, loading the same file brings it back.
struct Retired {
  std::string identity;
  std::weak_ptr<LoadedPlugin> plugin;
  std::shared_ptr<const bool> closed;  ///< guarded by load_gate
};

std::string op_importer_key(std::string_view importer_id, std::string_view type) {
  return std::string(importer_id) + ":" + std::string(type);
}

std::uint32_t last_opset(const TnOpImporter& importer) {
  return importer.opset_max == 0 ? UINT32_MAX : importer.opset_max;
}

PluginNeed need_of(const LoadedPlugin& plugin) {
  return {plugin.id(), plugin.version(), fs::path(plugin.path()).filename().string(), plugin.build_id()};
}

KernelRef kernel_ref(const Entry<TnKernel>& entry) {
  return {entry.item, entry.plugin->host(), entry.plugin, entry.plugin->id(), entry.plugin->build_id()};
}

}  // namespace

struct Registry::Impl {
  Impl(Logger& log, Interfaces given) : logger(log), interfaces(std::move(given)) {}

  Logger& logger;
  const Interfaces interfaces;
  mutable std::shared_mutex mutex;  ///< guards everything below; never held while a plugin or the logger is called
  std::vector<PluginPtr> plugins;   ///< in the order in which they were loaded
  std::vector<Retired> retired;
  EntryMap<TnOp> ops;
  EntryMap<TnKernel> kernels;
  EntryMap<TnImporter> importers;
  std::multimap<std::string, Entry<TnOpImporter>, std::less<>> op_importers;
  std::vector<FusionRef> fusions;  ///< by priority (higher first), then id

  /// kConflict if a plugin of this id is there. REQUIRES: mutex.
  Status id_is_free(const LoadedPlugin& plugin) const {
    for (const PluginPtr& other : plugins) {
      if (other->id() != plugin.id()) continue;
      const std::string what = other->path() == plugin.path() && !plugin.path().empty()
                                   ? "the file has changed since it was loaded"
                                   : "both have this id, but not the same content";
      return {Code::kConflict, "plugin id " + plugin.id() + " is taken: " + other->label() + " is loaded, " +
                                   plugin.label() + " cannot be loaded beside it: " + what +
                                   "; remove one of them, or unload the first"};
    }
    return {};
  }

  /// kConflict if somebody has the name. REQUIRES: mutex.
  Status claim_is_free(const LoadedPlugin& plugin, const Claim& claim) const {
    for (const PluginPtr& other : plugins) {
      for (const Claim& taken : other->claims()) {
        if (!taken.clashes_with(claim)) continue;
        return {Code::kConflict, std::string(claim.kind) + " " + claim.id + " is taken: " + other->label() +
                                     " has registered it, " + plugin.label() +
                                     " wants it too; rename it, or load only one of them"};
      }
    }
    return {};
  }

  /// Makes the plugin's things visible if all its names are still free. REQUIRES: mutex, exclusively.
  Status commit(const PluginPtr& plugin) {
    TENON_RETURN_IF_ERROR(id_is_free(*plugin));
    for (const Claim& claim : plugin->claims()) TENON_RETURN_IF_ERROR(claim_is_free(*plugin, claim));
    for (const TnOp* op : plugin->ops()) ops[op->id] = {op, plugin};
    for (const TnKernel* kernel : plugin->kernels()) kernels[kernel->name] = {kernel, plugin};
    for (const TnImporter* importer : plugin->importers()) importers[importer->id] = {importer, plugin};
    for (const TnOpImporter* importer : plugin->op_importers()) {
      op_importers.insert({op_importer_key(importer->importer_id, importer->type), {importer, plugin}});
    }
    for (const LoadedPlugin::FusionRule& rule : plugin->fusions()) {
      fusions.push_back({rule.fusion, plugin->host(), rule.pattern, plugin});
    }
    std::sort(fusions.begin(), fusions.end(), [](const FusionRef& a, const FusionRef& b) {
      if (a.fusion->priority != b.fusion->priority) return a.fusion->priority > b.fusion->priority;
      return std::string_view(a.fusion->id) < b.fusion->id;
    });
    plugins.push_back(plugin);
    return {};
  }

  /// Undoes commit. The caller holds a reference of its own, so nothing is closed here. REQUIRES: mutex, exclusively.
  void withdraw(const PluginPtr& plugin) {
    const auto is_its = [&](const auto& item) { return item.second.plugin == plugin; };
    std::erase_if(ops, is_its);
    std::erase_if(kernels, is_its);
    std::erase_if(importers, is_its);
    std::erase_if(op_importers, is_its);
    std::erase_if(fusions, [&](const FusionRef& rule) { return rule.host == plugin->host(); });
    std::erase(plugins, plugin);
    retired.push_back({plugin->identity(), plugin, plugin->closed()});
  }

  /// Deals with a plugin that this registry has, or had and somebody still holds: nothing, or what loading it gives.
  /// Waits for one that is just being closed, so that its unload does not run after the next load.
  std::optional<Status> load_known(const std::string& identity, std::unique_lock<std::recursive_mutex>& gate) {
    while (true) {
      PluginPtr held;  // outlives the lock below: it may turn out to be the last reference
      {
        const std::unique_lock lock(mutex);
        for (const PluginPtr& plugin : plugins) {
          if (plugin->identity() == identity) return Status();
        }
        std::erase_if(retired, [](const Retired& entry) { return *entry.closed; });
        const auto entry = std::find_if(retired.begin(), retired.end(),
                                        [&](const Retired& candidate) { return candidate.identity == identity; });
        if (entry == retired.end()) return std::nullopt;
        held = entry->plugin.lock();
        if (held) {
          const Status status = commit(held);
          if (status.ok()) retired.erase(entry);
          return status;
        }
      }
      load_gate().closed.wait(gate);
    }
  }

  /// Loads a plugin that is new here, all or nothing. REQUIRES: load_gate.
  Status admit(const PluginPtr& plugin) {
    {
      const std::shared_lock lock(mutex);
      TENON_RETURN_IF_ERROR(id_is_free(*plugin));
    }
    TENON_RETURN_IF_ERROR(plugin->load([&](const Claim& claim) {
      const std::shared_lock lock(mutex);
      return claim_is_free(*plugin, claim);
    }));
    {
      const std::unique_lock lock(mutex);
      TENON_RETURN_IF_ERROR(commit(plugin));
    }
    logger.verbose("loaded " + plugin->label() + ": " + std::to_string(plugin->ops().size()) + " ops, " +
                   std::to_string(plugin->kernels().size()) + " kernels, " + std::to_string(plugin->fusions().size()) +
                   " fusion rules, " + std::to_string(plugin->importers().size() + plugin->op_importers().size()) +
                   " importers");
    return {};
  }
};

Registry::Registry(Logger& logger, Interfaces interfaces)
    : impl_(std::make_unique<Impl>(logger, std::move(interfaces))) {}

std::shared_ptr<Registry> Registry::create(Logger& logger, Interfaces interfaces) {
  return std::shared_ptr<Registry>(new Registry(logger, std::move(interfaces)));
}

const void* Registry::find_interface(std::string_view id) const {
  const auto found = impl_->interfaces.find(id);
  return found == impl_->interfaces.end() ? nullptr : found->second;
}

Registry::~Registry() {
  // Later plugins go first, as they may build on earlier ones.
  while (!impl_->plugins.empty()) {
    const PluginPtr last = impl_->plugins.back();
    impl_->withdraw(last);
  }
}

Status Registry::load(const fs::path& path) {
  TENON_ASSIGN(const LibraryFile file, examine_library(path));
  std::unique_lock gate(load_gate().mutex);
  if (const std::optional<Status> known = impl_->load_known(file.build_id, gate)) return *known;
  TENON_ASSIGN(PluginLibrary library, PluginLibrary::open(file));
  const PluginPtr loaded = std::make_shared<LoadedPlugin>(std::move(library), impl_->logger);
  loaded->set_registry(weak_from_this());
  return impl_->admit(loaded);
}

Status Registry::add_linked(const TnPlugin* plugin) {
  if (plugin == nullptr) return {Code::kInvalid, "plugin linked into the program: the TnPlugin is NULL"};
  TENON_RETURN_IF_ERROR(check_plugin(plugin, "plugin linked into the program"));
  std::unique_lock gate(load_gate().mutex);
  const PluginPtr loaded = std::make_shared<LoadedPlugin>(*plugin, impl_->logger);
  loaded->set_registry(weak_from_this());
  if (const std::optional<Status> known = impl_->load_known(loaded->identity(), gate)) return *known;
  return impl_->admit(loaded);
}

void Registry::load_folder(const fs::path& folder, std::vector<LoadProblem>* problems) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(".tnp.so")) files.push_back(entry->path());
  }
  if (error) {
    const Code code = error == std::errc::no_such_file_or_directory ? Code::kNotFound : Code::kIo;
    problems->push_back({folder.string(), {code, "plugin folder " + folder.string() + ": " + error.message()}});
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    Status status = load(file);
    if (!status.ok()) problems->push_back({file.string(), std::move(status)});
  }
}

std::vector<LoadProblem> Registry::discover() {
  std::vector<LoadProblem> problems;
  const std::vector<fs::path> folders = discovery_folders();
  for (std::size_t i = 0; i < folders.size(); ++i) {
    // The last one is the installation's; a program may well be installed without plugins.
    std::error_code error;
    if (i + 1 == folders.size() && !fs::exists(folders[i], error)) continue;
    load_folder(folders[i], &problems);
  }
  return problems;
}

Status Registry::unload(std::string_view plugin_id) {
  PluginPtr plugin;  // let go after the lock: this may run the plugin's unload
  std::vector<std::string> ids;
  {
    const std::unique_lock lock(impl_->mutex);
    for (const PluginPtr& candidate : impl_->plugins) {
      ids.push_back(candidate->id());
      if (candidate->id() == plugin_id) plugin = candidate;
    }
    if (plugin) impl_->withdraw(plugin);
  }
  if (plugin) return {};
  const std::string near = nearest(plugin_id, ids);
  return {Code::kNotFound, "plugin " + std::string(plugin_id) + " is not loaded; " +
                               (!near.empty() ? "did you mean " + near + "?"
                                : ids.empty() ? "no plugin is"
                                              : "loaded are " + join(ids))};
}

OpRef Registry::find_op(std::string_view id) const {
  const std::shared_lock lock(impl_->mutex);
  const auto found = impl_->ops.find(id);
  if (found == impl_->ops.end()) return {};
  return {found->second.item, found->second.plugin->host(), found->second.plugin};
}

std::vector<std::string> Registry::op_ids() const {
  const std::shared_lock lock(impl_->mutex);
  std::vector<std::string> ids;
  for (const auto& item : impl_->ops) ids.push_back(item.first);
  return ids;
}

std::vector<KernelRef> Registry::find_kernels(std::string_view op_id, std::int32_t device) const {
  const std::shared_lock lock(impl_->mutex);
  std::vector<KernelRef> result;
  for (const auto& [name, entry] : impl_->kernels) {
    if (entry.item->device == device && op_id == entry.item->op_id) result.push_back(kernel_ref(entry));
  }
  return result;
}

KernelRef Registry::find_kernel(std::string_view kernel_name) const {
  const std::shared_lock lock(impl_->mutex);
  const auto found = impl_->kernels.find(kernel_name);
  return found == impl_->kernels.end() ? KernelRef() : kernel_ref(found->second);
}

std::vector<FusionRef> Registry::fusions() const {
  const std::shared_lock lock(impl_->mutex);
  return impl_->fusions;
}

std::vector<ImporterRef> Registry::importers() const {
  const std::shared_lock lock(impl_->mutex);
  std::vector<ImporterRef> result;
  for (const auto& [id, entry] : impl_->importers) result.push_back({entry.item, entry.plugin->host(), entry.plugin});
  return result;
}

ImporterRef Registry::find_importer(std::string_view id) const {
  const std::shared_lock lock(impl_->mutex);
  const auto found = impl_->importers.find(id);
  if (found == impl_->importers.end()) return {};
  return {found->second.item, found->second.plugin->host(), found->second.plugin};
}

OpImporterRef Registry::find_op_importer(std::string_view importer_id, std::string_view type,
                                         std::uint32_t opset) const {
  const std::shared_lock lock(impl_->mutex);
  const auto [begin, end] = impl_->op_importers.equal_range(op_importer_key(importer_id, type));
  const Entry<TnOpImporter>* best = nullptr;
  for (auto item = begin; item != end; ++item) {
    const TnOpImporter& candidate = *item->second.item;
    if (opset != 0 && (opset < candidate.opset_min || opset > last_opset(candidate))) continue;
    if (best == nullptr || candidate.opset_min > best->item->opset_min) best = &item->second;
  }
  if (best == nullptr) return {};
  return {best->item, best->plugin->host(), best->plugin};
}

std::vector<OpImporterRef> Registry::op_importers() const {
  const std::shared_lock lock(impl_->mutex);
  std::vector<OpImporterRef> result;
  for (const auto& [key, entry] : impl_->op_importers) {
    result.push_back({entry.item, entry.plugin->host(), entry.plugin});
  }
  std::sort(result.begin(), result.end(), [](const OpImporterRef& a, const OpImporterRef& b) {
    const auto key = [](const OpImporterRef& ref) {
      return std::tuple(std::string_view(ref.importer->importer_id), std::string_view(ref.importer->type),
                        ref.importer->opset_min);
    };
    return key(a) < key(b);
  });
  return result;
}

std::vector<PluginInfo> Registry::plugins() const {
  std::vector<PluginPtr> loaded;
  {
    const std::shared_lock lock(impl_->mutex);
    loaded = impl_->plugins;
  }
  std::vector<PluginInfo> result;
  for (const PluginPtr& plugin : loaded) {
    PluginInfo info;
    info.id = plugin->id();
    info.version = plugin->version();
    info.license = plugin->plugin().license;
    info.url = plugin->plugin().url;
    info.build = plugin->plugin().build;
    info.path = plugin->path();
    info.build_id = plugin->build_id();
    for (const TnOp* op : plugin->ops()) info.ops.emplace_back(op->id);
    for (const TnKernel* kernel : plugin->kernels()) info.kernels.emplace_back(kernel->name);
    for (const LoadedPlugin::FusionRule& rule : plugin->fusions()) info.fusions.emplace_back(rule.fusion->id);
    for (const TnImporter* importer : plugin->importers()) info.importers.emplace_back(importer->id);
    for (const TnOpImporter* importer : plugin->op_importers()) {
      info.op_importers.push_back(op_importer_key(importer->importer_id, importer->type));
    }
    result.push_back(std::move(info));
  }
  return result;
}

std::vector<PluginNeed> Registry::missing(const std::vector<PluginNeed>& needs) const {
  const std::shared_lock lock(impl_->mutex);
  std::vector<PluginNeed> result;
  for (const PluginNeed& need : needs) {
    const bool found = std::any_of(impl_->plugins.begin(), impl_->plugins.end(), [&](const PluginPtr& plugin) {
      return plugin->id() == need.id && plugin->version() == need.version;
    });
    if (!found) result.push_back(need);
  }
  return result;
}

PluginNeed Registry::owner_of_op(std::string_view op_id) const {
  const std::shared_lock lock(impl_->mutex);
  const auto found = impl_->ops.find(op_id);
  return found == impl_->ops.end() ? PluginNeed() : need_of(*found->second.plugin);
}

PluginNeed Registry::owner_of_kernel(std::string_view kernel_name) const {
  const std::shared_lock lock(impl_->mutex);
  const auto found = impl_->kernels.find(kernel_name);
  return found == impl_->kernels.end() ? PluginNeed() : need_of(*found->second.plugin);
}

}  // namespace tenon
