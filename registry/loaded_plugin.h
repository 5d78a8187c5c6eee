// LoadedPlugin: one plugin inside one registry: its library, its host table and what it registered. Whoever looks
// something up holds it through a shared_ptr; when the last holder lets go, unload runs and the library is closed.
//
// Thread rule: immutable once load has returned; the last holder may be any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <tenon/plugin/plugin.h>
#include <tenon/status.hpp>

#include "core/base/logger.h"
#include "core/graph/passes.h"
#include "registry/plugin_library.h"

namespace tenon {

class Registry;

/// Held around every load and unload in the process: static data of a library is shared by all registries, and the ABI
/// promises plugins one thread at a time. Recursive, since undoing a failed load may close a library.
struct LoadGate {
  std::recursive_mutex mutex;
  std::condition_variable_any closed;  ///< some plugin has been unloaded
};
LoadGate& load_gate();

/// A name that only one plugin of a registry may have. Op importers claim a range of opsets, all others everything.
struct Claim {
  const char* kind;  ///< "op", "kernel"...
  std::string id;
  std::uint32_t first = 0;
  std::uint32_t last = UINT32_MAX;

  bool clashes_with(const Claim& other) const {
    return std::string_view(kind) == other.kind && id == other.id && first <= other.last && other.first <= last;
  }
};

class LoadedPlugin {
 public:
  /// Says who has a claim already: kConflict, or ok if it is free.
  using ClaimCheck = std::function<Status(const Claim&)>;

  struct FusionRule {
    const TnFusion* fusion;
    Pattern pattern;
  };

  LoadedPlugin(PluginLibrary library, Logger& logger);
  /// A plugin that is linked into the program. REQUIRES: check_plugin accepts it.
  LoadedPlugin(const TnPlugin& linked, Logger& logger);
  /// Calls the plugin's unload if its load had succeeded, then closes the library.
  ~LoadedPlugin();
  LoadedPlugin(const LoadedPlugin&) = delete;
  LoadedPlugin& operator=(const LoadedPlugin&) = delete;

  /// Where the plugin finds the op importers of others; without it, it finds none. REQUIRES: before load.
  void set_registry(std::weak_ptr<const Registry> registry) { registry_ = std::move(registry); }
  /// Lets the plugin register what it has. Fails with the first registration that was refused (kInvalid, kConflict),
  /// even if the plugin went on regardless, otherwise with kInternal and the plugin's reason. REQUIRES: called once,
  /// with load_gate held.
  Status load(const ClaimCheck& is_free);

  /// Content of the file, or address of a linked TnPlugin: equal for the same plugin only.
  const std::string& identity() const { return identity_; }
  const std::string& id() const { return id_; }
  const std::string& version() const { return version_; }
  const std::string& build_id() const { return build_id_; }
  const std::string& path() const { return path_; }
  /// "plugin acme.relu 1.0 (/x/acme.tnp.so)", for messages.
  std::string label() const;
  const TnPlugin& plugin() const { return *plugin_; }
  const TnHost* host() const { return &host_; }
  /// Becomes true, under load_gate, when the library has been closed; outlives the plugin.
  std::shared_ptr<const bool> closed() const { return closed_; }

  const std::vector<const TnOp*>& ops() const { return ops_; }
  const std::vector<const TnKernel*>& kernels() const { return kernels_; }
  const std::vector<FusionRule>& fusions() const { return fusions_; }
  const std::vector<const TnImporter*>& importers() const { return importers_; }
  const std::vector<const TnOpImporter*>& op_importers() const { return op_importers_; }
  const std::vector<Claim>& claims() const { return claims_; }

 private:
  LoadedPlugin(const TnPlugin& plugin, std::string build_id, std::string path, std::string identity, Logger& logger);

  static LoadedPlugin& from(const TnHost* host) { return *static_cast<LoadedPlugin*>(host->impl); }
  static TnStatus TN_CALL fail(const TnHost* host, TnStatus code, const char* where, const char* message);
  static void TN_CALL log(const TnHost* host, std::int32_t level, const char* message);
  static void* TN_CALL allocate(const TnHost* host, std::uint64_t bytes, std::uint64_t align);
  static void TN_CALL release(const TnHost* host, void* memory);
  static const void* TN_CALL get_interface(const TnHost* host, const char* id);
  static const TnOpImporter* TN_CALL find_op_importer(const TnHost* host, const char* importer_id, const char* type,
                                                      std::uint32_t opset, const TnHost** owner);
  static void TN_CALL release_op_importer(const TnHost* host, const TnOpImporter* importer);
  static TnStatus TN_CALL register_op(const TnHost* host, const TnOp* op);
  static TnStatus TN_CALL register_kernel(const TnHost* host, const TnKernel* kernel);
  static TnStatus TN_CALL register_fusion(const TnHost* host, const TnFusion* fusion);
  static TnStatus TN_CALL register_importer(const TnHost* host, const TnImporter* importer);
  static TnStatus TN_CALL register_op_importer(const TnHost* host, const TnOpImporter* importer);

  /// The part that all register functions share: right time, valid, name free. `check` and `claim` look at the item,
  /// `keep` stores it.
  template <class Check, class MakeClaim, class Keep>
  TnStatus add(const char* function, Check check, MakeClaim make_claim, Keep keep);
  Status claim(Claim claim);

  Logger& logger_;
  TnHost host_{};
  std::string id_, version_, build_id_, path_, identity_;
  std::vector<const TnOp*> ops_;
  std::vector<const TnKernel*> kernels_;
  std::vector<FusionRule> fusions_;
  std::vector<const TnImporter*> importers_;
  std::vector<const TnOpImporter*> op_importers_;
  std::vector<Claim> claims_;

  std::weak_ptr<const Registry> registry_;
  std::mutex found_mutex_;
  /// What find_op_importer gave and nobody has released, with what keeps it loaded.
  std::multimap<const TnOpImporter*, std::shared_ptr<const void>> found_;

  std::atomic<std::thread::id> loading_thread_{};  ///< the thread inside load, none otherwise
  const ClaimCheck* is_free_ = nullptr;            ///< set inside load
  Status refused_;                                 ///< the first registration that was refused
  bool loaded_ = false;
  std::shared_ptr<bool> closed_ = std::make_shared<bool>(false);

  const TnPlugin* plugin_;
  std::optional<PluginLibrary> library_;  ///< none for a linked plugin
};

}  // namespace tenon
