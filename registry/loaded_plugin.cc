#include "registry/loaded_plugin.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <sstream>
#include <utility>

#include <tenon/plugin/ext/ids.h>
#include <tenon/plugin/ext/op_importers.h>

#include "core/base/failure.h"
#include "core/graph/attributes.h"
#include "core/graph/graph.h"
#include "registry/registry.h"
#include "registry/validate.h"

namespace tenon {
namespace {

std::string address_text(const void* address) {
  std::ostringstream text;
  text << address;
  return text.str();
}

}  // namespace

LoadGate& load_gate() {
  // Never destroyed: a static object of the program may hold the last reference to a plugin until the very end.
  static LoadGate* const gate = new LoadGate;
  return *gate;
}

LoadedPlugin::LoadedPlugin(const TnPlugin& plugin, std::string build_id, std::string path, std::string identity,
                           Logger& logger)
    : logger_(logger),
      id_(plugin.id),
      version_(plugin.version),
      build_id_(std::move(build_id)),
      path_(std::move(path)),
      identity_(std::move(identity)),
      plugin_(&plugin) {
  host_.struct_size = TN_HEADER(TnHost);
  host_.abi_major = TN_ABI_MAJOR;
  host_.abi_minor = TN_ABI_MINOR_LATEST;
  host_.name = "tenon";
  host_.version = TENON_VERSION;
  host_.impl = this;
  host_.fail = fail;
  host_.log = log;
  host_.alloc = allocate;
  host_.free = release;
  host_.get_interface = get_interface;
  host_.register_op = register_op;
  host_.register_kernel = register_kernel;
  host_.register_fusion = register_fusion;
  host_.register_importer = register_importer;
  host_.register_op_importer = register_op_importer;
  host_.attrs = &attr_api();
  host_.graph = &graph_api();
}

LoadedPlugin::LoadedPlugin(PluginLibrary library, Logger& logger)
    : LoadedPlugin(library.plugin(), library.file().build_id, library.file().path.string(), library.file().build_id,
                   logger) {
  library_ = std::move(library);
}

LoadedPlugin::LoadedPlugin(const TnPlugin& linked, Logger& logger)
    : LoadedPlugin(linked, kLinkedBuild, "", "linked at " + address_text(&linked), logger) {}

LoadedPlugin::~LoadedPlugin() {
  LoadGate& gate = load_gate();
  const std::lock_guard lock(gate.mutex);
  if (loaded_ && plugin_->unload != nullptr) plugin_->unload(&host_);
  // The library goes before the host table: what runs while it is closed may still call the host.
  library_.reset();
  *closed_ = true;
  gate.closed.notify_all();
}

std::string LoadedPlugin::label() const {
  return "plugin " + id_ + " " + version_ + " (" + (path_.empty() ? "linked into the program" : path_) + ")";
}

Status LoadedPlugin::load(const ClaimCheck& is_free) {
  is_free_ = &is_free;
  loading_thread_ = std::this_thread::get_id();
  clear_failure();
  Status answer;
  try {
    const TnStatus code = plugin_->load(&host_);
    loaded_ = code == TN_OK;
    answer = take_failure(code, "load failed");
  } catch (const std::exception& error) {  // a C++ plugin that breaks the rule must not end the program
    answer = Status(Code::kInternal, std::string("load let an exception out: ") + error.what());
  } catch (...) {
    answer = Status(Code::kInternal, "load let an exception out");
  }
  loading_thread_ = std::thread::id();
  is_free_ = nullptr;
  if (!refused_.ok()) return refused_.with_context(label());
  if (answer.ok()) return {};
  return {Code::kInternal, label() + ": " + answer.message()};
}

TnStatus LoadedPlugin::fail(const TnHost*, TnStatus code, const char* where, const char* message) {
  record_failure(code, where, message);
  return code;
}

void LoadedPlugin::log(const TnHost* host, std::int32_t level, const char* message) {
  if (message == nullptr) return;
  const LoadedPlugin& self = from(host);
  const auto severity = static_cast<Severity>(std::clamp<std::int32_t>(level, TN_LOG_ERROR, TN_LOG_VERBOSE));
  try {
    if (severity <= self.logger_.threshold()) self.logger_.log(severity, "[" + self.id_ + "] " + message);
  } catch (...) {
    // Nothing may leave through the C ABI, and a message that could not be written has nobody to report to.
  }
}

void* LoadedPlugin::allocate(const TnHost*, std::uint64_t bytes, std::uint64_t align) {
  if ((align & (align - 1)) != 0) return nullptr;
  void* memory = nullptr;
  const std::uint64_t alignment = std::max<std::uint64_t>(align, alignof(std::max_align_t));
  return posix_memalign(&memory, alignment, std::max<std::uint64_t>(bytes, 1)) == 0 ? memory : nullptr;
}

void LoadedPlugin::release(const TnHost*, void* memory) { std::free(memory); }

// The CPU pool is reached through TnExec.parallel.
const void* LoadedPlugin::get_interface(const TnHost* host, const char* id) {
  static constexpr TnOpImporterSource op_importers = {TN_HEADER(TnOpImporterSource), 0, find_op_importer,
                                                      release_op_importer};
  if (id == nullptr) return nullptr;
  if (std::string_view(id) == TN_IFACE_OP_IMPORTERS) return &op_importers;
  const std::shared_ptr<const Registry> registry = from(host).registry_.lock();
  return registry != nullptr ? registry->find_interface(id) : nullptr;
}

const TnOpImporter* LoadedPlugin::find_op_importer(const TnHost* host, const char* importer_id, const char* type,
                                                   std::uint32_t opset, const TnHost** owner) {
  try {
    LoadedPlugin& self = from(host);
    const std::shared_ptr<const Registry> registry = self.registry_.lock();
    if (registry == nullptr || importer_id == nullptr || type == nullptr) return nullptr;
    OpImporterRef found = registry->find_op_importer(importer_id, type, opset);
    if (!found) return nullptr;
    if (owner != nullptr) *owner = found.host;
    const std::lock_guard lock(self.found_mutex_);
    self.found_.emplace(found.importer, std::move(found.library));
    return found.importer;
  } catch (const std::bad_alloc&) {
    record_failure(TN_NOMEM, "find", "out of memory");
    return nullptr;
  }
}

void LoadedPlugin::release_op_importer(const TnHost* host, const TnOpImporter* importer) {
  LoadedPlugin& self = from(host);
  std::shared_ptr<const void> last;  // may unload the plugin, so it goes after the lock
  const std::lock_guard lock(self.found_mutex_);
  const auto found = self.found_.find(importer);
  if (found == self.found_.end()) return;
  last = std::move(found->second);
  self.found_.erase(found);
}

Status LoadedPlugin::claim(Claim claim) {
  for (const Claim& own : claims_) {
    if (own.clashes_with(claim)) {
      return {Code::kConflict, std::string(claim.kind) + " " + claim.id + " is registered twice by " + label()};
    }
  }
  TENON_RETURN_IF_ERROR((*is_free_)(claim));
  claims_.push_back(std::move(claim));
  return {};
}

template <class Check, class MakeClaim, class Keep>
TnStatus LoadedPlugin::add(const char* function, Check check, MakeClaim make_claim, Keep keep) {
  try {
    Status status;
    if (loading_thread_.load() != std::this_thread::get_id()) {
      // refused_ belongs to the thread that loads, so it is left alone here.
      status = Status(Code::kInvalid, std::string(function) + " of " + label() +
                                          " was called outside its load; register everything in TnPlugin.load, on the "
                                          "thread that calls it");
      record_failure(TN_INVALID, function, status.message().c_str());
      return TN_INVALID;
    }
    status = check();
    if (status.ok()) status = claim(make_claim());
    if (status.ok()) {
      keep();
      return TN_OK;
    }
    if (refused_.ok()) refused_ = status;
    const auto code = static_cast<TnStatus>(status.code());
    record_failure(code, function, status.message().c_str());
    return code;
  } catch (const std::exception& error) {
    record_failure(TN_NOMEM, function, error.what());
    return TN_NOMEM;
  }
}

TnStatus LoadedPlugin::register_op(const TnHost* host, const TnOp* op) {
  LoadedPlugin& self = from(host);
  return self.add(
      "register_op", [&] { return check_op(op); },
      [&] {
        return Claim{"op", op->id};
      },
      [&] { self.ops_.push_back(op); });
}

TnStatus LoadedPlugin::register_kernel(const TnHost* host, const TnKernel* kernel) {
  LoadedPlugin& self = from(host);
  return self.add(
      "register_kernel", [&] { return check_kernel(kernel); },
      [&] {
        return Claim{"kernel", kernel->name};
      },
      [&] { self.kernels_.push_back(kernel); });
}

TnStatus LoadedPlugin::register_fusion(const TnHost* host, const TnFusion* fusion) {
  LoadedPlugin& self = from(host);
  Pattern pattern;
  return self.add(
      "register_fusion", [&] { return check_fusion(fusion, &pattern); },
      [&] {
        return Claim{"fusion rule", fusion->id};
      },
      [&] {
        self.fusions_.push_back({fusion, std::move(pattern)});
      });
}

TnStatus LoadedPlugin::register_importer(const TnHost* host, const TnImporter* importer) {
  LoadedPlugin& self = from(host);
  return self.add(
      "register_importer", [&] { return check_importer(importer); },
      [&] {
        return Claim{"importer", importer->id};
      },
      [&] { self.importers_.push_back(importer); });
}

TnStatus LoadedPlugin::register_op_importer(const TnHost* host, const TnOpImporter* importer) {
  LoadedPlugin& self = from(host);
  return self.add(
      "register_op_importer", [&] { return check_op_importer(importer); },
      [&] {
        return Claim{"op importer", std::string(importer->importer_id) + ":" + importer->type, importer->opset_min,
                     importer->opset_max == 0 ? UINT32_MAX : importer->opset_max};
      },
      [&] { self.op_importers_.push_back(importer); });
}

}  // namespace tenon
