#include "pipeline/builder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "pipeline/files.h"
#include "pipeline/settings.h"

namespace tenon::pipeline {
namespace {

using nlohmann::json;

std::string number(double value) { return json(value).dump(); }

/// 64-bit FNV-1a (Fowler, Noll, Vo) of a file's bytes: notices changes, no more is needed here.
Result<std::string> file_hash(const std::string& path) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
  TENON_ASSIGN(const std::vector<std::uint8_t> bytes, read_file(path, kMostBytes));
  std::uint64_t hash = 14695981039346656037u;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  return std::to_string(bytes.size()) + ":" + std::to_string(hash);
}

/// The names of the options of the importer that the request names, or else of the one for the file's suffix.
Result<std::set<std::string>> importer_options(const Library& library, const BuildRequest& request) {
  TENON_ASSIGN(const std::string text, library.describe());
  std::set<std::string> names;
  const json description = json::parse(text);
  for (const json& importer : description["importers"]) {
    const std::string id = importer["id"];
    bool fits = id == request.importer || id == "tenon." + request.importer;
    if (request.importer.empty()) {
      std::istringstream suffixes(importer["suffixes"].get<std::string>());
      for (std::string suffix; std::getline(suffixes, suffix, ',');) fits = fits || request.model.ends_with(suffix);
    }
    if (!fits) continue;
    for (const json& option : importer["options"]) names.insert(option["name"]);
    break;
  }
  return names;
}

/// "x=1x3x224x224;mask=1x224", as importers take it.
std::string shapes_text(const std::map<std::string, std::vector<std::int64_t>>& shapes) {
  std::string text;
  for (const auto& [name, dims] : shapes) {
    text += (text.empty() ? "" : ";") + name + "=";
    for (std::size_t i = 0; i < dims.size(); ++i) text += (i > 0 ? "x" : "") + std::to_string(dims[i]);
  }
  return text;
}

/// The network without marked outputs and metadata.
Result<Network> import_network(const Library& library, const BuildRequest& request) {
  TENON_ASSIGN(Network network, Network::create(library));
  json files = json::object();
  if (!request.weights.empty()) files["weights"] = request.weights;
  // Where shapes decide what is imported, as in ONNX, the importer is told; elsewhere they are set afterwards.
  TENON_ASSIGN(const std::set<std::string> told, importer_options(library, request));
  std::map<std::string, std::string> options = request.import_options;
  const bool tells_shapes = told.count("input_shapes") > 0, tells_batch = told.count("batch") > 0;
  if (tells_shapes && !request.shapes.empty()) {
    std::string& shapes = options["input_shapes"];
    shapes += (shapes.empty() ? "" : ";") + shapes_text(request.shapes);
  }
  if (tells_batch && request.batch > 0) options["batch"] = std::to_string(request.batch);
  TENON_RETURN_IF_ERROR(network.import(request.model, request.importer, json(options).dump(), files.dump()));
  TENON_ASSIGN(const std::string text, network.describe());
  const json description = json::parse(text);
  for (const json& input : description["inputs"]) {
    const std::string name = input["name"];
    std::vector<std::int64_t> dims = input["dims"];
    const auto shape = request.shapes.find(name);
    if (shape != request.shapes.end()) {
      if (!tells_shapes) dims = shape->second;
    } else if (!tells_batch && request.batch > 0 && !dims.empty()) {
      dims[0] = request.batch;
    }
    if (json(dims) != input["dims"]) TENON_RETURN_IF_ERROR(network.set_input_dims(name, dims));
  }
  for (const auto& [name, dims] : request.shapes) {
    bool known = false;
    for (const json& input : description["inputs"]) known = known || input["name"] == name;
    if (!known) return Status(Code::kInvalid, "--shape " + name + ": the model has no such input");
  }
  return network;
}

/// The lines of a network's dump that say what is computed, without the dims that follow from those of the inputs.
Result<std::vector<std::string>> structure(const Network& network) {
  TENON_ASSIGN(const std::string text, network.dump());
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("const ")) lines.push_back(line);
    if (line.starts_with("node ")) lines.push_back(line.substr(0, line.rfind(" -> ")));
  }
  return lines;
}

/// A model that is read with other dims must become the same network, or the profile promises too much.
Status check_profiles(const Library& library, const BuildRequest& request, const Network& network) {
  BuildRequest other = request;
  for (const auto& [name, range] : request.profiles) {
    other.shapes[name] = range.second != request.shapes.at(name) ? range.second : range.first;
  }
  if (other.shapes == request.shapes) return {};
  TENON_ASSIGN(const Network changed, import_network(library, other));
  TENON_ASSIGN(const std::vector<std::string> lines, structure(network));
  TENON_ASSIGN(const std::vector<std::string> changed_lines, structure(changed));
  const auto [line, changed_line] =
      std::mismatch(lines.begin(), lines.end(), changed_lines.begin(), changed_lines.end());
  if (line == lines.end() && changed_line == changed_lines.end()) return {};
  const auto shown = [](const auto& at, const auto& end) {
    return at == end ? std::string("nothing") : "'" + *at + "'";
  };
  return {Code::kInvalid, "the profile " + shapes_text(other.shapes) +
                              ": with other dims of the inputs the model reads "
                              "differently, so these dims cannot vary at run time: " +
                              shown(line, lines.end()) + " becomes " + shown(changed_line, changed_lines.end()) +
                              "; give the inputs one shape"};
}

}  // namespace

BuildRequest request_of(const PipelineConfig& config) {
  BuildRequest request;
  request.model = config.model.file.string();
  request.importer = config.model.format;
  request.weights = config.model.weights.string();
  request.import_options = config.model.options;
  request.batch = config.batch;
  request.device = config.device;
  request.threads = config.build.threads;
  request.timing_cache = config.build.timing_cache.string();
  request.editable = config.build.editable_timing_cache;
  request.frozen = config.build.frozen;
  request.config.emplace_back("precision", config.precision);
  constexpr const char* kFallbackWords[] = {"warn", "forbid", "allow"};  // in the order of OnFallback
  request.config.emplace_back("on_fallback", kFallbackWords[static_cast<int>(config.on_fallback)]);
  if (config.build.workspace) request.config.emplace_back("workspace", std::to_string(*config.build.workspace));
  if (config.build.time_budget) request.config.emplace_back("time_budget", number(*config.build.time_budget));
  for (const LayerRule& rule : config.layers) {
    json object = {{"match", rule.match}};
    if (!rule.precision.empty()) object["precision"] = rule.precision;
    if (!rule.kernel.empty()) object["kernel"] = rule.kernel;
    if (!rule.combo.empty()) object["combo"] = rule.combo;
    if (rule.tactic) object["tactic"] = hash_text(*rule.tactic);
    request.config.emplace_back("layer", object.dump());
  }
  return request;
}

Result<Network> load_network(const Library& library, const BuildRequest& request) {
  TENON_ASSIGN(Network network, import_network(library, request));
  if (!request.profiles.empty()) TENON_RETURN_IF_ERROR(check_profiles(library, request, network));
  for (const auto& [name, range] : request.profiles) {
    TENON_RETURN_IF_ERROR(network.set_profile(name, range.first, request.shapes.at(name), range.second));
  }
  for (const std::string& name : request.mark_outputs) TENON_RETURN_IF_ERROR(network.mark_output(name));
  for (const auto& [key, value] : request.metadata) TENON_RETURN_IF_ERROR(network.set_metadata(key, value));
  return network;
}

Result<BuilderConfig> builder_config(const Library& library, const BuildRequest& request,
                                     std::optional<TimingCache>* cache) {
  TENON_ASSIGN(BuilderConfig config, BuilderConfig::create());
  TENON_RETURN_IF_ERROR(config.set("device", request.device));
  TENON_RETURN_IF_ERROR(config.set("threads", std::to_string(request.threads)));
  TENON_RETURN_IF_ERROR(config.set("editable_timing_cache", request.editable ? "1" : "0"));
  TENON_RETURN_IF_ERROR(config.set("frozen_cache", request.frozen ? "1" : "0"));
  for (const auto& [key, value] : request.config) TENON_RETURN_IF_ERROR(config.set(key, value));
  if (!request.timing_cache.empty()) {
    // A full cache may lie in a read-only folder; a new one has to be written.
    std::error_code ignored;
    if (!request.frozen && !std::filesystem::exists(request.timing_cache, ignored)) {
      TENON_RETURN_IF_ERROR(check_writable(request.timing_cache).with_context("timing cache"));
    }
    TENON_ASSIGN(TimingCache loaded,
                 TimingCache::load(library, request.timing_cache, request.frozen, request.threads, request.device));
    TENON_RETURN_IF_ERROR(config.set_cache(loaded));
    if (!request.frozen) TENON_RETURN_IF_ERROR(config.set("journal", request.timing_cache + ".journal"));
    cache->emplace(std::move(loaded));
  } else if (request.cache) {
    TENON_RETURN_IF_ERROR(config.set_cache(*request.cache));
  }
  return config;
}

Result<BuiltEngine> build_engine(const Library& library, const BuildRequest& request,
                                 std::function<bool(const BuildProgress&)> progress) {
  TENON_ASSIGN(const Network network, load_network(library, request));
  std::optional<TimingCache> cache;
  TENON_ASSIGN(BuilderConfig config, builder_config(library, request, &cache));
  if (progress) TENON_RETURN_IF_ERROR(config.set_progress(std::move(progress)));
  Result<BuiltEngine> built = Builder(library).build(network, config);
  // What was measured before a failure is worth keeping; a frozen cache is never written.
  if (cache && !request.frozen) {
    const Status saved = cache->save(request.timing_cache);
    if (built.ok() && !saved.ok()) return saved;
  }
  return built;
}

Result<std::string> fingerprint(const Library& library, const BuildRequest& request) {
  json print;
  TENON_ASSIGN(print["the model file"], file_hash(request.model));
  std::filesystem::path weights = request.weights;
  if (weights.empty()) weights = std::filesystem::path(request.model).replace_extension(".weights");
  if (std::filesystem::exists(weights)) {
    TENON_ASSIGN(print["the weights file"], file_hash(weights.string()));
  }
  json options = {{"import", request.import_options}, {"shapes", request.shapes},     {"batch", request.batch},
                  {"outputs", request.mark_outputs},  {"profiles", request.profiles}, {"build", json::array()},
                  {"editable", request.editable},     {"metadata", request.metadata}};
  for (const auto& [key, value] : request.config) options["build"].push_back(key + "=" + value);
  print["options"] = options;
  // The signature names instruction set, threads and processor: all that measured times depend on.
  TENON_ASSIGN(const TimingCache device_of, TimingCache::create(library, "", request.threads, request.device));
  TENON_ASSIGN(const std::string described, device_of.describe());
  print["the device"] = json::parse(described)["device"];
  print["the version of Tenon"] = tn_version();
  TENON_ASSIGN(const std::string text, library.describe());
  const json registry = json::parse(text);
  json plugins = json::object();
  for (const json& plugin : registry["plugins"]) plugins[plugin["id"].get<std::string>()] = plugin["hash"];
  print["the set of plugins"] = plugins;
  return print.dump();
}

std::string changed_since(const std::string& recorded, const std::string& current) {
  const json before = json::parse(recorded, nullptr, false);
  const json now = json::parse(current, nullptr, false);
  if (!before.is_object()) return "it does not say what it was made from";
  for (const auto& [part, value] : now.items()) {
    if (!before.contains(part) || before[part] != value) return part + " changed";
  }
  return before.size() == now.size() ? "" : "a file that it was made from is gone";
}

}  // namespace tenon::pipeline
