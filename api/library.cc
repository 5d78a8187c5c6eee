#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <tenon/plugin/ext/ids.h>
#include <nlohmann/json.hpp>

#include "api/handles.h"
#include "core/builder/builder.h"
#include "core/graph/attributes.h"
#include "core/tuner/code_store.h"
#include "core/version.h"

namespace tenon::api {
namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

TnLibraryOptions complete(const TnLibraryOptions* given) {
  TnLibraryOptions options{};
  options.log_threshold = TN_LOG_INFO;
  if (given != nullptr) {
    // An older caller's struct is shorter: what it does not have keeps its default.
    std::memcpy(&options, given, std::min<std::size_t>(given->struct_size, sizeof(options)));
  }
  return options;
}

/// Everything that may rewrite a network; of the core's own passes `plugin` is empty.
nlohmann::json rules_json(const tenon::Registry& registry) {
  std::map<std::string, std::string> owners;
  for (const tenon::PluginInfo& plugin : registry.plugins()) {
    for (const std::string& rule : plugin.fusions) owners[rule] = plugin.id;
  }
  nlohmann::json rules = nlohmann::json::array();
  for (const tenon::CoreRule& rule : tenon::core_rules()) {
    rules.push_back({{"id", rule.id},
                     {"doc", rule.doc},
                     {"mode", rule.always ? "always" : "candidate"},
                     {"plugin", ""},
                     {"pattern", ""}});
  }
  for (const tenon::FusionRef& ref : registry.fusions()) {
    const TnFusion& rule = *ref.fusion;
    rules.push_back({{"id", rule.id},
                     {"doc", rule.doc != nullptr ? rule.doc : ""},
                     {"mode", rule.mode == TN_FUSION_ALWAYS ? "always" : "candidate"},
                     {"plugin", owners[rule.id]},
                     {"pattern", rule.pattern}});
  }
  return rules;
}

bool parse_ordinal(std::string_view text, int* ordinal) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *ordinal);
  return error == std::errc() && end == text.data() + text.size() && *ordinal >= 0;
}

}  // namespace

LibraryState::LibraryState(const TnLibraryOptions& options)
    : logger(options.log, options.log_context, static_cast<Severity>(options.log_threshold)) {
  if (options.record_error != nullptr) {
    recorder = std::make_unique<CallbackRecorder>(options.record_error, options.error_context);
  }
  if (options.allocate != nullptr) allocator = std::make_unique<CallbackAllocator>(options);
  if (options.allocate_cuda != nullptr) cuda_allocator = std::make_unique<CallbackCudaAllocator>(options);
  registry = Registry::create(logger, {{TN_IFACE_CODE, code_interface()}, {TN_IFACE_CUDA, cuda_interface()}});
}

Result<std::shared_ptr<Device>> LibraryState::device(const std::string& name, int threads) {
  int ordinal = 0;
  const bool on_gpu = name == "cuda" || (name.rfind("cuda:", 0) == 0 && parse_ordinal(name.substr(5), &ordinal));
  if (!on_gpu && name != "auto" && name != "cpu") {
    return Status(Code::kInvalid, fmt::format("device \"{}\" is unknown; expected auto, cpu or cuda[:N]", name));
  }
  if (threads < 0 || threads > 4096) {
    return Status(Code::kInvalid, fmt::format("threads must be 0 (all processors) to 4096, found {}", threads));
  }
  const std::lock_guard lock(mutex);
  if (on_gpu) {
    Result<std::shared_ptr<Device>> device = gpu(ordinal);
    if (device.ok()) return device;
    return Status(device.status().code(),
                  fmt::format("device {}: {}; use cpu or auto", name, device.status().message()));
  }
  if (name == "auto") {
    std::string why;
    const bool found = cuda_device_count(&why) > 0;
    if (!std::exchange(told_choice, true)) {
      logger.info(found ? "Device auto: took cuda:0" : "Device auto: took the CPU, since " + why);
    }
    if (found) return gpu(0);
  }
  std::shared_ptr<Device>& slot = devices[threads];
  if (slot == nullptr) slot = make_cpu_device({threads, allocator.get()});
  return slot;
}

/// REQUIRES: mutex is held.
Result<std::shared_ptr<Device>> LibraryState::gpu(int ordinal) {
  std::shared_ptr<Device>& slot = gpus[ordinal];
  if (slot == nullptr) {
    TENON_ASSIGN(slot, make_cuda_device(ordinal, cuda_allocator.get()));
  }
  return slot;
}

Status LibraryState::report(Status status) { return report_failure(std::move(status), logger, recorder.get()); }

TnStatus answer(const Status& status) {
  if (!status.ok()) last_error() = status.message();
  return static_cast<TnStatus>(status.code());
}

Status need(const void* pointer, const char* what) {
  return pointer != nullptr ? Status() : Status(Code::kInvalid, fmt::format("{} is NULL", what));
}

}  // namespace tenon::api

using tenon::Code;
using tenon::Status;
using namespace tenon::api;

extern "C" {

const char* tn_last_error(void) { return last_error().c_str(); }
const char* tn_version(void) { return tenon::kVersion; }
const char* tn_text_data(const TnText* text) { return text != nullptr ? text->text.c_str() : ""; }
size_t tn_text_size(const TnText* text) { return text != nullptr ? text->text.size() : 0; }
void tn_text_release(TnText* text) { delete text; }

TnStatus tn_library_create(const TnLibraryOptions* options, TnLibrary** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(out, "out"));
    const TnLibraryOptions complete_options = complete(options);
    if ((complete_options.allocate == nullptr) != (complete_options.free == nullptr)) {
      return {Code::kInvalid, "allocate and free must be given both or neither"};
    }
    *out = new TnLibrary{std::make_shared<LibraryState>(complete_options)};
    return {};
  });
}

void tn_library_release(TnLibrary* library) { delete library; }

TnStatus tn_library_load_plugin(TnLibrary* library, const char* path) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(library, "library"));
    TENON_RETURN_IF_ERROR(need(path, "path"));
    return library->state->report(library->state->registry->load(path));
  });
}

TnStatus tn_library_add_plugin(TnLibrary* library, const TnPlugin* plugin) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(library, "library"));
    TENON_RETURN_IF_ERROR(need(plugin, "plugin"));
    return library->state->report(library->state->registry->add_linked(plugin));
  });
}

TnStatus tn_library_discover(TnLibrary* library, uint32_t* num_failed) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(library, "library"));
    LibraryState& state = *library->state;
    std::vector<tenon::LoadProblem> problems = state.registry->discover();
    for (const tenon::LoadProblem& problem : problems) state.logger.warning(problem.status.message());
    if (num_failed != nullptr) *num_failed = static_cast<uint32_t>(problems.size());
    const std::lock_guard lock(state.mutex);
    state.problems = std::move(problems);
    return {};
  });
}

TnStatus tn_library_unload_plugin(TnLibrary* library, const char* plugin_id) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(library, "library"));
    TENON_RETURN_IF_ERROR(need(plugin_id, "plugin_id"));
    return library->state->report(library->state->registry->unload(plugin_id));
  });
}

TnStatus tn_library_describe(const TnLibrary* library, TnText** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(library, "library"));
    TENON_RETURN_IF_ERROR(need(out, "json"));
    nlohmann::json plugins = nlohmann::json::array(), failed = nlohmann::json::array();
    for (const tenon::PluginInfo& plugin : library->state->registry->plugins()) {
      plugins.push_back({{"id", plugin.id},
                         {"version", plugin.version},
                         {"license", plugin.license},
                         {"url", plugin.url},
                         {"build", plugin.build},
                         {"path", plugin.path},
                         {"hash", plugin.build_id},
                         {"ops", plugin.ops},
                         {"kernels", plugin.kernels},
                         {"fusions", plugin.fusions},
                         {"importers", plugin.importers},
                         {"op_importers", plugin.op_importers}});
    }
    nlohmann::json importers = nlohmann::json::array();
    for (const tenon::ImporterRef& ref : library->state->registry->importers()) {
      nlohmann::json options = nlohmann::json::array();
      for (uint32_t i = 0; i < ref.importer->num_options; ++i) {
        const TnParam& param = *ref.importer->options[i];
        options.push_back({{"name", param.name},
                           {"type", tenon::attr_type_name(param.type)},
                           {"doc", param.doc != nullptr ? param.doc : ""}});
      }
      importers.push_back({{"id", ref.importer->id}, {"suffixes", ref.importer->suffixes}, {"options", options}});
    }
    const std::lock_guard lock(library->state->mutex);
    for (const tenon::LoadProblem& problem : library->state->problems) {
      failed.push_back({{"path", problem.path}, {"reason", problem.status.message()}});
    }
    const nlohmann::json rules = rules_json(*library->state->registry);
    *out = new TnText{
        nlohmann::json{{"plugins", plugins}, {"importers", importers}, {"rules", rules}, {"failed", failed}}.dump(2)};
    return {};
  });
}

}  // extern "C"
