#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/handles.h"
#include "core/base/text.h"
#include "core/runtime/plan_timer.h"

using tenon::BuildOptions;
using tenon::BuildOutput;
using tenon::Code;
using tenon::Precision;
using tenon::Result;
using tenon::Status;
using namespace tenon::api;
using nlohmann::json;

namespace {

Result<bool> parse_flag(const std::string& key, const std::string& value) {
  if (value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  return Status(Code::kInvalid, fmt::format("config {}: expected 0 or 1, found \"{}\"", key, value));
}

template <class Number>
Result<Number> parse_number(const std::string& key, const std::string& value) {
  Number number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || value.empty()) {
    return Status(Code::kInvalid, fmt::format("config {}: expected a number, found \"{}\"", key, value));
  }
  return number;
}

Status set_precision(const std::string& value, BuildOptions* options) {
  const std::pair<const char*, Precision> known[] = {
      {"fp32", Precision::kF32}, {"tf32", Precision::kTf32}, {"bf16", Precision::kBf16}};
  for (const auto& [name, precision] : known) {
    options->precision = precision;
    if (value == name) return {};
  }
  return {Code::kInvalid, fmt::format("config precision: \"{}\" is not one that this version builds; expected fp32, "
                                      "tf32 or bf16",
                                      value)};
}

Status set_sources(const std::string& value, BuildOptions* options) {
  std::string_view rest = value;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    if (item.size() < 2 || (item[0] != '+' && item[0] != '-')) {
      return {Code::kInvalid, fmt::format("config tactic_sources: expected +name or -name, separated by commas, found "
                                          "\"{}\"",
                                          item)};
    }
    const std::string name(item.substr(1));
    std::erase(options->disabled_sources, name);
    if (item[0] == '-') options->disabled_sources.push_back(name);
  }
  return {};
}

Status set_verbosity(const std::string& value, BuildOptions* options) {
  if (value == "none") {
    options->verbosity = tenon::Verbosity::kNone;
  } else if (value == "layer_names") {
    options->verbosity = tenon::Verbosity::kLayerNames;
  } else if (value == "detailed") {
    options->verbosity = tenon::Verbosity::kDetailed;
  } else {
    return {Code::kInvalid,
            fmt::format("config verbosity: expected none, layer_names or detailed, found \"{}\"", value)};
  }
  return {};
}

Status set_on_fallback(const std::string& value, BuildOptions* options) {
  if (value == "warn") {
    options->on_fallback = tenon::OnFallback::kWarn;
  } else if (value == "forbid") {
    options->on_fallback = tenon::OnFallback::kForbid;
  } else if (value == "allow") {
    options->on_fallback = tenon::OnFallback::kAllow;
  } else {
    return {Code::kInvalid, fmt::format("config on_fallback: expected warn, forbid or allow, found \"{}\"", value)};
  }
  return {};
}

Status add_layer_rule(const std::string& value, BuildOptions* options) {
  const json object = json::parse(value, nullptr, false);
  if (!object.is_object()) {
    return {Code::kInvalid, fmt::format("config layer: expected a JSON object, found \"{}\"", value)};
  }
  tenon::LayerRule rule;
  for (const auto& [key, item] : object.items()) {
    if (!item.is_string()) return {Code::kInvalid, fmt::format("config layer: {} must be text", key)};
    const std::string text = item;
    if (key == "match") {
      rule.match = text;
    } else if (key == "kernel") {
      rule.kernel = text;
    } else if (key == "combo") {
      rule.combo = text;
    } else if (key == "tactic") {
      rule.tactic = tenon::parse_hash64(text);
      if (!rule.tactic) {
        return {Code::kInvalid, fmt::format("config layer: tactic must be 0x and hex digits, found \"{}\"", text)};
      }
    } else if (key == "precision") {
      BuildOptions parsed;
      TENON_RETURN_IF_ERROR(set_precision(text, &parsed).with_context(fmt::format("layers {}", rule.match)));
      rule.precision = parsed.precision;
    } else {
      return {Code::kInvalid, fmt::format("config layer: unknown key \"{}\"; expected match, kernel, combo, tactic or "
                                          "precision",
                                          key)};
    }
  }
  if (rule.match.empty()) return {Code::kInvalid, "config layer: \"match\" is missing"};
  options->layer_rules.push_back(std::move(rule));
  return {};
}

Status set_option(TnBuilderConfig* config, const std::string& key, const std::string& value) {
  BuildOptions& options = config->options;
  if (key == "device") {
    config->device = value;
  } else if (key == "threads") {
    TENON_ASSIGN(config->threads, parse_number<int>(key, value));
  } else if (key == "workspace") {
    TENON_ASSIGN(options.workspace_limit, parse_number<std::uint64_t>(key, value));
  } else if (key == "max_streams") {
    TENON_ASSIGN(options.max_streams, parse_number<int>(key, value));
  } else if (key == "time_budget") {
    TENON_ASSIGN(const double seconds, parse_number<double>(key, value));
    options.time_budget = std::chrono::duration<double>(seconds);
  } else if (key == "editable_timing_cache") {
    TENON_ASSIGN(options.editable, parse_flag(key, value));
  } else if (key == "frozen_cache") {
    TENON_ASSIGN(options.frozen, parse_flag(key, value));
  } else if (key == "retune") {
    TENON_ASSIGN(options.retune, parse_flag(key, value));
  } else if (key == "allow_nondeterministic") {
    TENON_ASSIGN(options.allow_nondeterministic, parse_flag(key, value));
  } else if (key == "precision") {
    return set_precision(value, &options);
  } else if (key == "tactic_sources") {
    return set_sources(value, &options);
  } else if (key == "disable_rule") {
    options.disabled_rules.insert(value);
  } else if (key == "force_rule") {
    options.forced_rules.insert(value);
  } else if (key == "verbosity") {
    return set_verbosity(value, &options);
  } else if (key == "on_fallback") {
    return set_on_fallback(value, &options);
  } else if (key == "journal") {
    options.journal = value;
  } else if (key == "layer") {
    return add_layer_rule(value, &options);
  } else {
    const std::vector<std::string> known = {"device",       "threads",
                                            "workspace",    "time_budget",
                                            "max_streams",  "editable_timing_cache",
                                            "frozen_cache", "retune",
                                            "layer",        "allow_nondeterministic",
                                            "precision",    "tactic_sources",
                                            "disable_rule", "force_rule",
                                            "verbosity",    "on_fallback",
                                            "journal"};
    const std::string near = tenon::nearest(key, known);
    return {Code::kInvalid,
            fmt::format("config key \"{}\" is unknown; {}", key,
                        near.empty() ? "expected one of " + tenon::join(known) : "did you mean \"" + near + "\"?")};
  }
  return {};
}

/// A wish that the device cannot fulfil at all is a mistake, though any layer may stay in f32.
Status check_precision(const BuildOptions& options) {
  const auto wants = [](const tenon::LayerRule& rule) { return rule.precision == Precision::kBf16; };
  const bool wanted = options.precision == Precision::kBf16 ||
                      std::any_of(options.layer_rules.begin(), options.layer_rules.end(), wants);
  const tenon::DeviceInfo& device = options.device->info();
  if (!wanted || device.bf16) return {};
  if (!device.on_host()) {
    return {Code::kInvalid,
            fmt::format("precision bf16: expected a CPU, found {}; this version builds for GPUs in fp32 or tf32",
                        device.name)};
  }
  return {Code::kInvalid, fmt::format("precision bf16: this processor ({}) has no bf16 instructions: expected "
                                      "avx512_bf16 or AMX, found {}; build with precision fp32",
                                      device.name, device.instructions)};
}

/// Builds with everything that a config says. `config` may be NULL.
Result<BuildOutput> run_build(TnLibrary* library, const TnNetwork* network, const TnBuilderConfig* config) {
  TENON_RETURN_IF_ERROR(need(library, "library"));
  TENON_RETURN_IF_ERROR(need(network, "network"));
  const TnBuilderConfig defaults;
  const TnBuilderConfig& given = config != nullptr ? *config : defaults;
  LibraryState& state = *library->state;
  BuildOptions options = given.options;
  TENON_ASSIGN(options.device, state.device(given.device, given.threads));
  TENON_RETURN_IF_ERROR(check_precision(options));
  options.registry = state.registry;
  options.logger = &state.logger;
  if (options.frozen && options.cache == nullptr) {
    return Status(Code::kInvalid, "a frozen build needs a timing cache; give one or turn frozen_cache off");
  }
  std::atomic<bool> cancelled = false;
  if (given.progress != nullptr) {
    options.cancel = &cancelled;
    options.progress = [&](const tenon::TuneProgress& p) {
      if (given.progress(given.progress_context, p.layer, p.layers, p.tactic, p.tactics, p.name.c_str(), p.elapsed_s,
                         p.eta_s) != 0) {
        cancelled = true;
      }
    };
  }
  options.time_plan = [&](const tenon::Plan& plan) {
    tenon::EngineOptions engine;
    engine.device = options.device;
    engine.registry = options.registry;
    return tenon::make_plan_timer(plan, engine);
  };
  return tenon::build(network->graph, options);
}

}  // namespace

extern "C" {

TnStatus tn_config_create(TnBuilderConfig** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(out, "out"));
    *out = new TnBuilderConfig;
    return {};
  });
}

void tn_config_release(TnBuilderConfig* config) { delete config; }

TnStatus tn_config_set(TnBuilderConfig* config, const char* key, const char* value) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(config, "config"));
    TENON_RETURN_IF_ERROR(need(key, "key"));
    TENON_RETURN_IF_ERROR(need(value, "value"));
    return set_option(config, key, value);
  });
}

TnStatus tn_config_set_cache(TnBuilderConfig* config, TnTimingCache* cache) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(config, "config"));
    config->options.cache = cache != nullptr ? cache->cache : nullptr;
    return {};
  });
}

TnStatus tn_config_set_progress(TnBuilderConfig* config, TnProgressFn progress, void* context) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(config, "config"));
    config->progress = progress;
    config->progress_context = context;
    return {};
  });
}

TnStatus tn_build(TnLibrary* library, const TnNetwork* network, const TnBuilderConfig* config, TnBuildResult** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(out, "out"));
    auto output = run_build(library, network, config);
    if (!output.ok()) return library != nullptr ? library->state->report(output.status()) : output.status();
    auto result = std::make_unique<TnBuildResult>();
    TENON_ASSIGN(result->engine, tenon::write_plan(output->plan));
    result->report = tenon::report_json(*output).dump(2);
    *out = result.release();
    return {};
  });
}

void tn_build_release(TnBuildResult* result) { delete result; }
const void* tn_build_engine_data(const TnBuildResult* result) {
  return result != nullptr ? result->engine.data() : nullptr;
}
size_t tn_build_engine_size(const TnBuildResult* result) { return result != nullptr ? result->engine.size() : 0; }
const char* tn_build_report(const TnBuildResult* result) { return result != nullptr ? result->report.c_str() : ""; }

TnStatus tn_explain(TnLibrary* library, const TnNetwork* network, const TnBuilderConfig* config, const char* name,
                    TnText** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(out, "json"));
    TENON_RETURN_IF_ERROR(need(name, "name"));
    TENON_ASSIGN(const BuildOutput output, run_build(library, network, config));
    TENON_ASSIGN(const json explained, tenon::explain_json(output, name));
    *out = new TnText{explained.dump(2)};
    return {};
  });
}

}  // extern "C"
