// Registry: the plugins that one program, or one load of a model, works with, and what they registered.
//
// Thread rule: thread-safe; loads, look-ups and unloads may run at once. Several registries may live side by side, each
// with its own set and its own host tables. What a look-up returns keeps its plugin loaded for as long as it is held.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/plugin/plugin.h>
#include <tenon/status.hpp>

#include "core/base/logger.h"
#include "core/graph/graph.h"
#include "core/graph/passes.h"

namespace tenon {

/// The build id of every plugin that is linked into the program: it does not tell one build from another.
inline constexpr char kLinkedBuild[] = "linked";

/// A registered kernel with its plugin's host table and identity.
struct KernelRef {
  const TnKernel* kernel = nullptr;
  const TnHost* host = nullptr;
  std::shared_ptr<const void> library;
  std::string plugin_id;  ///< "tenon.matmul"; "" for the core's reference kernel
  std::string build_id;   ///< content hash of the library file, "0x...", or kLinkedBuild
  explicit operator bool() const { return kernel != nullptr; }
};

struct ImporterRef {
  const TnImporter* importer = nullptr;
  const TnHost* host = nullptr;
  std::shared_ptr<const void> library;
  explicit operator bool() const { return importer != nullptr; }
};

struct OpImporterRef {
  const TnOpImporter* importer = nullptr;
  const TnHost* host = nullptr;
  std::shared_ptr<const void> library;
  explicit operator bool() const { return importer != nullptr; }
};

struct PluginInfo {
  std::string id, version, license, url, build;  ///< as in TnPlugin
  std::string path;                              ///< canonical path of the library; "" if linked into the program
  std::string build_id;
  std::vector<std::string> ops, kernels, fusions, importers;
  std::vector<std::string> op_importers;  ///< "tenon.darknet:roialign"
};

/// A plugin that an engine needs.
struct PluginNeed {
  std::string id, version, library, build_id;
  auto operator<=>(const PluginNeed&) const = default;
};

/// One library that discovery could not load.
struct LoadProblem {
  std::string path;
  Status status;
};

class Registry final : public OpSource, public std::enable_shared_from_this<Registry> {
 public:
  /// Interfaces of the host that plugins may ask for, beside the registry's own; a null one is not there.
  using Interfaces = std::map<std::string, const void*, std::less<>>;

  /// `logger` and `interfaces` outlive the registry and everything taken from it.
  static std::shared_ptr<Registry> create(Logger& logger, Interfaces interfaces = {});
  ~Registry() override;

  /// Loads one library and registers what it has, all or nothing. The same file content twice is one plugin without a
  /// message. Errors (each names the path): kNotFound no such file; kInvalid not a loadable library, missing symbol
  /// (with its name), no entry point, entry refused, malformed TnPlugin; kVersion ABI numbers of both sides; kConflict
  /// the plugin's or an op's id is taken (names both files); kInternal load failed.
  Status load(const std::filesystem::path& path);
  /// Registers a plugin that is linked into the program. Same rules; `plugin` and its strings live until it is
  /// unloaded.
  Status add_linked(const TnPlugin* plugin);
  /// Loads every "*.tnp.so" of a folder in name order; one bad library does not stop the others. Appends what failed,
  /// the folder itself included.
  void load_folder(const std::filesystem::path& folder, std::vector<LoadProblem>* problems);
  /// load_folder over discovery_folders().
  std::vector<LoadProblem> discover();
  /// Takes a plugin out of the look-ups; its library is unloaded when nobody holds anything of it any more. Until then,
  /// loading the same file again brings the same instance back. kNotFound names the nearest id.
  Status unload(std::string_view plugin_id);

  OpRef find_op(std::string_view id) const override;
  std::vector<std::string> op_ids() const override;
  /// Kernels of an op for a device kind, in the order of their names.
  std::vector<KernelRef> find_kernels(std::string_view op_id, std::int32_t device) const;
  KernelRef find_kernel(std::string_view kernel_name) const;
  /// Rules by priority (higher first), then id.
  std::vector<FusionRef> fusions() const;
  std::vector<ImporterRef> importers() const;
  ImporterRef find_importer(std::string_view id) const;
  /// For one opset (0: any, then the one for the newest). `type` is the foreign op's name, without brackets.
  OpImporterRef find_op_importer(std::string_view importer_id, std::string_view type, std::uint32_t opset = 0) const;
  /// All of them, by importer id, type and opset.
  std::vector<OpImporterRef> op_importers() const;

  /// What TnHost.get_interface gives for an id; nullptr if there is none.
  const void* find_interface(std::string_view id) const;

  /// In the order in which they were loaded.
  std::vector<PluginInfo> plugins() const;
  /// Of `needs`, those that are not loaded with equal id and version (both compared as text).
  std::vector<PluginNeed> missing(const std::vector<PluginNeed>& needs) const;
  /// The plugin that an op or kernel came from, as an engine records it; empty id if unknown.
  PluginNeed owner_of_op(std::string_view op_id) const;
  PluginNeed owner_of_kernel(std::string_view kernel_name) const;

 private:
  struct Impl;
  Registry(Logger& logger, Interfaces interfaces);
  std::unique_ptr<Impl> impl_;
};

/// Folders that discovery searches: $TENON_PLUGIN_PATH (colon-separated) if set and not empty, then the plugin folder
/// of this installation, found from the path of libtenon or the program: <prefix>/lib/tenon/plugins.
std::vector<std::filesystem::path> discovery_folders();

}  // namespace tenon
