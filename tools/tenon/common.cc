#include "tools/tenon/common.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>

#include "pipeline/files.h"
#include "pipeline/units.h"

namespace tenon::cli {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr char kEngineMagic[] = "TENON ENGINE";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<std::int64_t> parse_shape(const std::string& option, const std::string& text) {
  std::vector<std::int64_t> dims;
  for (const std::string& part : split(text, 'x')) {
    const auto size = pipeline::parse_integer(part);
    if (!size.ok() || *size < 0)
      throw UsageError("--shape " + option + ": expected sizes such as 1x3x224x224, found \"" + part + "\"");
    dims.push_back(*size);
  }
  return dims;
}

void apply_shapes(const std::vector<std::string>& shapes, pipeline::BuildRequest* request) {
  for (const std::string& option : shapes) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos) throw UsageError("--shape " + option + ": expected NAME=1x3x224x224");
    const std::vector<std::string> parts = split(option.substr(equals + 1), ',');
    if (parts.size() != 1 && parts.size() != 3) {
      throw UsageError("--shape " + option + ": expected one shape, or three: MIN,OPT,MAX");
    }
    const std::string name = option.substr(0, equals);
    request->shapes[name] = parse_shape(option, parts[parts.size() / 2]);
    if (parts.size() == 3) request->profiles[name] = {parse_shape(option, parts[0]), parse_shape(option, parts[2])};
  }
}

std::atomic<bool> interrupted = false;

/// The first Ctrl-C ends tuning between two tactics, with a valid cache; a second one ends the program at once.
void catch_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
}

/// The severities' names in front of messages on stderr.
const char* prefix(int severity) {
  switch (severity) {
    case TN_LOG_ERROR:
      return "error: ";
    case TN_LOG_WARNING:
      return "warning: ";
    default:
      return "";
  }
}

}  // namespace

void check(const Status& status) {
  if (!status.ok()) throw WorkError(status.message());
}

void ModelOptions::add_to(CLI::App* command, const std::string& target_help) {
  command->add_option("target", target, target_help)->required();
  command->add_option("--device", device, "auto, cpu, cuda[:N] (default auto)");
  command->add_option("--weights", weights, "file with the weights, where the model's own file has none");
  command->add_option("--importer", importer, "name of the importer (default: the one that recognises the file)");
  command->add_option("--import-option", import_options, "KEY=VALUE for the importer, repeatable");
  command->add_option(
      "--shape", shapes,
      "NAME=1x3x224x224: dims of an input, repeatable; NAME=MIN,OPT,MAX: they vary at run time, tuned for OPT");
  command->add_option("--batch", batch, "first dim of every input")->check(CLI::PositiveNumber);
  command->add_option("--precision", precision,
                      "fp32, tf32 (GPUs) or bf16 (CPUs that have it): what may be computed in (default fp32)");
  command->add_option("--workspace", workspace, "limit of scratch memory of one layer, such as 256MiB");
  command->add_option("--timing-cache", timing_cache, "file of recorded choices and times; read and written");
  command->add_flag("--editable-timing-cache", editable, "each layer has its own record in the timing cache");
  command->add_flag("--frozen-cache", frozen, "measure nothing: what the timing cache lacks is an error");
  command->add_option("--time-budget", time_budget, "stop measuring after this long, such as 30s");
  command->add_option("--threads", threads, "threads of the CPU pool (default: all processors)")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--max-streams", max_streams,
                   "streams on which independent layers may run at once, where that is faster (default: 4 on GPUs)")
      ->check(CLI::PositiveNumber);
  command->add_option("--tactic-sources", tactic_sources, "+a,-b: switch libraries on or off, such as -onednn");
  command->add_flag("--allow-nondeterministic", allow_nondeterministic,
                    "let kernels take part that may vary in the last bits");
  command->add_flag("--retune", retune, "decide anew what is not pinned");
  command->add_option("--disable-rule", disable_rules, "a fusion rule that is not applied, repeatable");
  command->add_option("--force-rule", force_rules, "a fusion rule that must apply somewhere, repeatable");
  command->add_option("--plugin", plugins, "a further plugin library, repeatable");
  command->add_option("--mark-output", mark_outputs, "an inner tensor that becomes an output, repeatable");
  command->add_flag("--verbose", verbose, "log every tactic that was timed");
}

Library open_library(const std::vector<std::string>& plugins, bool verbose) {
  LibraryOptions options;
  options.log_threshold = verbose ? TN_LOG_VERBOSE : TN_LOG_WARNING;
  options.log = [](int severity, const std::string& message) {
    // Failures come back as statuses too, and are printed once, by whoever ends the program.
    if (severity != TN_LOG_ERROR) std::fprintf(stderr, "%s%s\n", prefix(severity), message.c_str());
  };
  Library library = check(Library::create(std::move(options)));
  check(library.discover());
  for (const std::string& plugin : plugins) check(library.load_plugin(plugin));
  return library;
}

TargetKind kind_of(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) throw WorkError(path + ": no such file");
  if (fs::is_directory(path, error))
    throw WorkError(path + " is a folder; expected an engine, a model or a pipeline file");
  const std::string suffix = fs::path(path).extension().string();
  if (suffix == ".yaml" || suffix == ".yml") return TargetKind::kPipeline;
  std::ifstream file(path, std::ios::binary);
  char magic[sizeof(kEngineMagic) - 1] = {};
  file.read(magic, sizeof(magic));
  return std::string(magic, sizeof(magic)) == kEngineMagic || suffix == ".tenon" ? TargetKind::kEngine
                                                                                 : TargetKind::kModel;
}

pipeline::BuildRequest make_request(const Library& library, const ModelOptions& options) {
  pipeline::BuildRequest request;
  if (kind_of(options.target) == TargetKind::kPipeline) {
    const pipeline::PipelineConfig config = check(pipeline::load_config(options.target));
    for (const fs::path& plugin : config.plugins) check(Library(library).load_plugin(plugin.string()));
    request = pipeline::request_of(config);
    request.metadata["pipeline"] = pipeline::settings_text(check(pipeline::settings_of(config)));
  } else {
    request.model = options.target;
  }
  if (!options.weights.empty()) request.weights = options.weights;
  if (!options.importer.empty()) request.importer = options.importer;
  if (!options.device.empty()) request.device = options.device;
  if (!options.timing_cache.empty()) request.timing_cache = options.timing_cache;
  if (options.batch > 0) request.batch = options.batch;
  if (options.threads > 0) request.threads = options.threads;
  request.editable = request.editable || options.editable;
  request.frozen = request.frozen || options.frozen;
  request.mark_outputs = options.mark_outputs;
  for (const std::string& option : options.import_options) {
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos) throw UsageError("--import-option " + option + ": expected KEY=VALUE");
    request.import_options[option.substr(0, equals)] = option.substr(equals + 1);
  }
  apply_shapes(options.shapes, &request);
  const auto set = [&](const char* key, const std::string& value) {
    if (!value.empty()) request.config.emplace_back(key, value);
  };
  set("precision", options.precision);
  if (!options.workspace.empty()) {
    const auto bytes = pipeline::parse_size(options.workspace);
    if (!bytes.ok()) throw UsageError("--workspace: " + bytes.status().message());
    set("workspace", std::to_string(*bytes));
  }
  if (!options.time_budget.empty()) {
    const auto seconds = pipeline::parse_duration(options.time_budget);
    if (!seconds.ok()) throw UsageError("--time-budget: " + seconds.status().message());
    set("time_budget", json(*seconds).dump());
  }
  set("tactic_sources", options.tactic_sources);
  set("allow_nondeterministic", options.allow_nondeterministic ? "1" : "");
  set("max_streams", options.max_streams > 0 ? std::to_string(options.max_streams) : "");
  set("retune", options.retune ? "1" : "");
  for (const std::string& rule : options.disable_rules) set("disable_rule", rule);
  for (const std::string& rule : options.force_rules) set("force_rule", rule);
  if (request.frozen && request.timing_cache.empty()) {
    throw UsageError("--frozen-cache needs --timing-cache: there is nothing to take choices from");
  }
  return request;
}

std::map<std::string, std::vector<std::int64_t>> fixed_shapes(const std::vector<std::string>& shapes) {
  pipeline::BuildRequest request;
  apply_shapes(shapes, &request);
  for (const auto& [name, range] : request.profiles) request.shapes.erase(name);
  return request.shapes;
}

std::function<bool(const BuildProgress&)> progress_printer() {
  catch_interrupt();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  auto last = std::make_shared<std::pair<int, double>>(0, 0.0);
  return [terminal, last](const BuildProgress& p) {
    // On a terminal ten times a second, elsewhere every five seconds.
    if (interrupted) return false;
    if (p.layers == 0 || p.elapsed_s - last->second < (terminal ? 0.1 : 5.0)) return true;
    last->second = p.elapsed_s;
    char eta[48] = "";
    if (p.eta_s >= 0) std::snprintf(eta, sizeof(eta), ", %.0f s to go", p.eta_s);
    std::fprintf(stderr, "%stuning layer %d of %d (%.40s), tactic %d of %d, %.0f s%s%s", terminal ? "\r\033[K" : "",
                 p.layer, p.layers, p.name.c_str(), p.tactic, p.tactics, p.elapsed_s, eta, terminal ? "" : "\n");
    if (terminal && p.layer == p.layers && p.tactic == p.tactics) std::fprintf(stderr, "\r\033[K");
    return true;
  };
}

void share_cache(const Library& library, pipeline::BuildRequest* request) {
  if (!request->timing_cache.empty()) return;
  request->cache = check(TimingCache::create(library, "", request->threads, request->device));
}

Engine open_engine(const Library& library, const ModelOptions& options,
                   std::optional<pipeline::BuildRequest>* request_out) {
  const TargetKind kind = kind_of(options.target);
  Runtime runtime(library, options.device.empty() ? "auto" : options.device, options.threads);
  if (kind == TargetKind::kEngine) {
    if (!options.mark_outputs.empty()) throw UsageError("--mark-output needs a model: an engine's outputs are fixed");
    return check(runtime.load(options.target));
  }
  pipeline::BuildRequest request = make_request(library, options);
  if (request_out != nullptr) {
    share_cache(library, &request);
    *request_out = request;
  }
  runtime = Runtime(library, request.device, request.threads);
  std::string kept;
  bool may_build = true;
  if (kind == TargetKind::kPipeline) {
    const pipeline::PipelineConfig config = check(pipeline::load_config(options.target));
    kept = config.build.engine.string();
    may_build = config.build.on_missing_engine == pipeline::OnMissingEngine::kBuild;
  }
  if (kept.empty()) {
    const BuiltEngine built = check(pipeline::build_engine(library, request, progress_printer()));
    return check(runtime.create(built.data(), built.size()));
  }
  const std::string now = check(pipeline::fingerprint(library, request));
  std::string reason = "there is none yet";
  if (fs::exists(kept)) {
    Result<Engine> loaded = runtime.load(kept);
    if (loaded.ok()) {
      const Result<std::string> recorded = loaded->metadata("fingerprint");
      reason = pipeline::changed_since(recorded.ok() ? *recorded : "", now);
      if (reason.empty()) return std::move(loaded).value();
    } else {
      reason = loaded.status().message();
    }
  }
  if (!may_build)
    throw WorkError("engine " + kept + " would have to be built (" + reason + "), and on_missing_engine is fail");
  check_outputs({kept});
  std::fprintf(stderr, "building engine %s: %s\n", kept.c_str(), reason.c_str());
  request.metadata["fingerprint"] = now;
  const BuiltEngine built = check(pipeline::build_engine(library, request, progress_printer()));
  check(pipeline::write_file_atomically(kept, {static_cast<const std::uint8_t*>(built.data()), built.size()}));
  return check(runtime.load(kept));
}

void check_outputs(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (!path.empty() && path != "-") check(pipeline::check_writable(path));
  }
}

void write_text(const std::string& where, const std::string& text) {
  if (where == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) != 0) throw WorkError("stdout could not be written");
    return;
  }
  check(pipeline::write_file_atomically(where, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
}

void write_json(const std::string& where, const json& value) {
  write_text(where, value.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    text += line + "\n";
  }
  return text;
}

std::string graph_table(const nlohmann::json& graphs) {
  std::vector<std::vector<std::string>> rows = {{"graph", "values not row-major", "layers re-ranked", "device"}};
  for (const auto& graph : graphs) {
    rows.push_back({graph["key"], std::to_string(graph["layout"].size()), std::to_string(graph["rerank"].size()),
                    graph["device"]});
  }
  return table(rows);
}

std::string ms_text(double ms) {
  char text[32];
  std::snprintf(text, sizeof(text), ms < 1 ? "%.4f" : "%.3f", ms);
  return text;
}

}  // namespace tenon::cli
