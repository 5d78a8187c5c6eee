#include "pipeline/debug_tensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "pipeline/runner.h"
#include "pipeline/units.h"

namespace tenon::pipeline {
namespace {

using nlohmann::json;

/// "a, b, c and 12 more"
std::string list_text(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i) text += (i > 0 ? ", " : "") + names[i];
  return names.size() > kMost ? text + " and " + std::to_string(names.size() - kMost) + " more" : text;
}

/// What the engine says about its tensors.
struct EngineNames {
  std::set<std::string> held;                  ///< all that can be observed
  std::set<std::string> shown;                 ///< those that patterns mean: no weights
  std::map<std::string, std::string> removed;  ///< by name, the layer that they became part of
};

Result<EngineNames> names_of(const Engine& engine) {
  TENON_ASSIGN(const std::string text, EngineInspector(engine).engine("tensors"));
  const json described = json::parse(text);
  if (described.contains("note")) return Status(Code::kInvalid, described["note"].get<std::string>());
  EngineNames names;
  for (const json& tensor : described["tensors"]) {
    names.held.insert(tensor["name"].get<std::string>());
    if (tensor["storage"] != "constant") names.shown.insert(tensor["name"].get<std::string>());
  }
  for (const TensorInfo& output : engine.outputs()) {
    names.held.insert(output.name);
    names.shown.insert(output.name);
  }
  for (const json& tensor : described["removed"]) {
    names.removed[tensor["name"].get<std::string>()] = tensor["layer"].get<std::string>();
  }
  return names;
}

Result<std::set<std::string>> names_of(const Network& network) {
  TENON_ASSIGN(const std::string text, network.describe());
  const json described = json::parse(text);
  std::set<std::string> names;
  for (const json& input : described["inputs"]) names.insert(input["name"].get<std::string>());
  for (const json& node : described["nodes"]) {
    for (const json& output : node["outputs"]) names.insert(output["name"].get<std::string>());
  }
  return names;
}

Status unknown(const std::string& name, const std::set<std::string>& names, bool has_network) {
  const std::vector<std::string> list(names.begin(), names.end());
  const std::string near = nearest_word(name, list);
  return {Code::kNotFound, std::string(has_network ? "the network" : "the engine") + " has no tensor " + name +
                               (similar_words(name, near) ? "; did you mean " + near + "?"
                                                          : "; the pattern \"*\" means all that there are")};
}

}  // namespace

struct DebugTensors::Bench {
  Bench(Engine e, ExecutionContext c) : engine(std::move(e)), context(std::move(c)) {}
  Engine engine;
  ExecutionContext context;
  std::map<std::string, std::vector<std::uint8_t>> memory;

  static Result<std::shared_ptr<Bench>> create(const Engine& engine) {
    TENON_ASSIGN(ExecutionContext context, ExecutionContext::create(engine));
    auto bench = std::make_shared<Bench>(engine, std::move(context));
    for (const TensorInfo& output : engine.outputs()) {
      std::vector<std::uint8_t>* bytes = &bench->memory[output.name];
      TENON_RETURN_IF_ERROR(bench->context.set_output_allocator(
          output.name, [bytes](const std::string&, std::uint64_t size, const TnDims&) {
            bytes->resize(std::max<std::size_t>(size, 1));
            return static_cast<void*>(bytes->data());
          }));
    }
    return bench;
  }

  Status run(const std::vector<DebugInput>& inputs) {
    for (const DebugInput& input : inputs) TENON_RETURN_IF_ERROR(context.set_input_dims(input.name, input.dims));
    for (const DebugInput& input : inputs) {
      TENON_RETURN_IF_ERROR(context.set_tensor(input.name, const_cast<void*>(input.data)));  // it is only read
    }
    return context.execute();
  }
};

Result<DebugTensors> DebugTensors::create(const Library& library, const Engine& engine,
                                          const std::vector<std::string>& patterns, const BuildRequest* request,
                                          const std::function<bool(const BuildProgress&)>& progress) {
  DebugTensors tensors(engine);
  std::optional<Network> network;
  if (request != nullptr) {
    TENON_ASSIGN(network, load_network(library, *request));
  }
  TENON_RETURN_IF_ERROR(tensors.find(patterns, network ? &*network : nullptr));
  if (!tensors.unfused_.empty()) TENON_RETURN_IF_ERROR(tensors.build_side(library, *request, progress));
  return tensors;
}

Status DebugTensors::find(const std::vector<std::string>& patterns, const Network* network) {
  TENON_ASSIGN(const EngineNames engine, names_of(engine_));
  std::set<std::string> known = engine.shown, removed;
  for (const auto& [name, layer] : engine.removed) removed.insert(name);
  if (network != nullptr) {
    TENON_ASSIGN(known, names_of(*network));
  }
  std::set<std::string> held, unfused, left_out;
  const auto take = [&](const std::string& name, std::set<std::string>* elsewhere) {
    (engine.held.count(name) != 0 ? held : *elsewhere).insert(name);
  };
  for (const std::string& pattern : patterns) {
    if (engine.held.count(pattern) != 0 || known.count(pattern) != 0) {
      take(pattern, &unfused);
      continue;
    }
    if (network == nullptr && removed.count(pattern) != 0) {
      const std::string& layer = engine.removed.at(pattern);
      return {Code::kDeclined, "the engine does not compute tensor " + pattern + ": fusion removed it" +
                                   (layer.empty() ? "" : ", it became part of layer " + layer) +
                                   "; give the model in place of the engine file to have it computed unfused in a side "
                                   "run, or build the engine with --mark-output " +
                                   pattern};
    }
    bool any = false;
    for (const std::string& name : known) {
      if (!glob_match(pattern, name)) continue;
      any = true;
      take(name, &unfused);
    }
    for (const std::string& name : removed) {
      if (network != nullptr || !glob_match(pattern, name)) continue;
      any = true;
      left_out.insert(name);
    }
    if (any) continue;
    removed.insert(known.begin(), known.end());
    return unknown(pattern, removed, network != nullptr);
  }
  held_.assign(held.begin(), held.end());
  unfused_.assign(unfused.begin(), unfused.end());
  left_out_.assign(left_out.begin(), left_out.end());
  return {};
}

Status DebugTensors::build_side(const Library& library, const BuildRequest& request,
                                const std::function<bool(const BuildProgress&)>& progress) {
  const std::string what = "the side run that computes " + list_text(unfused_) + " unfused";
  BuildRequest side = request;
  for (const std::string& name : unfused_) side.mark_outputs.push_back(name);
  // The choices that the plan was built from stay what they are.
  std::erase_if(side.config, [](const auto& entry) { return entry.first == "retune"; });
  if (request.frozen) {
    Result<TimingCache> cache = TimingCache::load(library, request.timing_cache, true, request.threads, request.device);
    if (!cache.ok()) return cache.status().with_context(what);
    side.cache = *cache;
    side.timing_cache.clear();
    side.frozen = false;
  }
  const Result<BuiltEngine> built = build_engine(library, side, progress);
  if (!built.ok()) return built.status().with_context(what);
  const Result<Engine> engine = Runtime(library, side.device, side.threads).create(built->data(), built->size());
  if (!engine.ok()) return engine.status().with_context(what);
  TENON_ASSIGN(side_, Bench::create(*engine));
  return observe(&side_->context, unfused_, true).with_context(what);
}

Status DebugTensors::observe(ExecutionContext* context, const std::vector<std::string>& names, bool side_run) const {
  if (names.empty()) return {};
  return context->set_observer(names, [values = values_, side_run](const std::string& name, const TnTensor& tensor) {
    DebugTensor& value = (*values)[name];
    value.side_run = side_run;
    value.array.type = npy_type_of(tensor.dtype).value();  // observers get no dtypes but numpy's
    value.array.dims.assign(tensor.dims.d, tensor.dims.d + tensor.dims.rank);
    std::size_t bytes = npy_type_size(value.array.type);
    for (const std::int64_t size : value.array.dims) bytes *= static_cast<std::size_t>(size);
    const auto* data = static_cast<const std::uint8_t*>(tensor.data);
    value.array.bytes.assign(data, data + bytes);
  });
}

Status DebugTensors::observe(ExecutionContext* context) const { return observe(context, held_, false); }

Status DebugTensors::run_side(const std::vector<DebugInput>& inputs) {
  return side_ != nullptr ? side_->run(inputs).with_context("side run") : Status();
}

Status DebugTensors::run(const std::vector<DebugInput>& inputs) {
  if (own_ == nullptr) {
    TENON_ASSIGN(own_, Bench::create(engine_));
    TENON_RETURN_IF_ERROR(observe(&own_->context));
  }
  TENON_RETURN_IF_ERROR(own_->run(inputs));
  return run_side(inputs);
}

}  // namespace tenon::pipeline
