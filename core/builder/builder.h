// Builder: compiles a network into a plan. Passes, candidates, times, layout, memory; everything through the cache.
//
// Thread rule: build is reentrant; several builds may run at once and share device, registry and cache. The network is
// never changed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <tenon/status.hpp>

#include "core/base/logger.h"
#include "core/graph/graph.h"
#include "core/plan/plan.h"
#include "core/tuner/tuner.h"

namespace tenon {

/// What f32 networks may be computed in, where that is faster: on GPUs tf32, on CPUs bf16.
enum class Precision { kF32, kTf32, kBf16 };

/// Narrows the candidates of layers whose name, or the name of a member, matches the glob pattern.
struct LayerRule {
  std::string match;
  std::string kernel;  ///< "" : any
  std::string combo;   ///< "" : any
  std::optional<std::uint64_t> tactic;
  std::optional<Precision> precision;  ///< in place of the build's; of several rules the last one counts
};

/// What to do about a layer that no kernel can run, so that the op's plain reference has to, on the CPU.
enum class OnFallback { kWarn, kForbid, kAllow };

/// Runs a whole plan, at least once, and gives milliseconds per run.
using PlanTimer = std::function<Result<double>()>;

struct BuildOptions {
  std::shared_ptr<Device> device;
  std::shared_ptr<const Registry> registry;
  Logger* logger = &null_logger();
  std::shared_ptr<TimingCache> cache;  ///< null: a private, empty one
  bool editable = false;               ///< each layer has its own record
  bool frozen = false;
  bool retune = false;
  bool allow_nondeterministic = false;
  Precision precision = Precision::kF32;
  std::uint64_t workspace_limit = ~0ull;
  std::chrono::duration<double> time_budget{0};
  std::vector<std::string> disabled_sources;
  std::set<std::string> disabled_rules;
  std::set<std::string> forced_rules;  ///< applied wherever they match, also where the graph takes longer then
  std::vector<LayerRule> layer_rules;
  int max_streams = 0;  ///< on which independent layers may run at once; 0: 4 on a GPU, 1 on the CPU
  OnFallback on_fallback = OnFallback::kWarn;
  Verbosity verbosity = Verbosity::kDetailed;
  std::filesystem::path journal;
  std::function<void(const TuneProgress&)> progress;
  const std::atomic<bool>* cancel = nullptr;
  /// Makes a plan ready to run on `device`; empty: no layer is re-ranked by whole-graph time. The builder does not know
  /// the runtime (docs/how_it_works.md, arrows); who knows both gives make_plan_timer of core/runtime.
  std::function<Result<PlanTimer>(const Plan&)> time_plan;
};

/// How the candidates of one layer fared; what `explain` shows.
struct LayerTrace {
  std::string name;
  std::vector<std::string> members;
  std::shared_ptr<const TuneSite> site;
  TuneResult result;
  std::size_t chosen = 0;
  std::uint64_t workspace = 0;  ///< bytes
};

/// What was found about running a plan on several streams.
struct StreamChoice {
  bool decided = false;  ///< by measuring or by the timing cache; otherwise one stream for want of a reason
  int count = 1;
  int events = 0;                    ///< between the streams
  std::optional<double> ms_one;      ///< whole graph, where this build compared them
  std::optional<double> ms_several;  ///< the best of those with more than one stream
};

/// A place where a rule that is taken only if it is faster could be applied.
struct Alternative {
  std::string rule;
  std::string layer;  ///< that the rule makes
  bool taken = false;
  double ms = 0, rival_ms = 0;  ///< all layers in the form that was kept, and in the other one; -1: it cannot run
  std::string reason;
};

struct BuildOutput {
  Plan plan;
  std::vector<LayerTrace> layers;                  ///< in the order of the plan's nodes
  std::vector<std::pair<std::string, int>> rules;  ///< rules that fired, with counts
  std::vector<Alternative> alternatives;
  TunerCounts counts;
  std::vector<std::string> rejected;
  std::vector<CacheGraph::Rerank> reranked;  ///< layers whose rivals were compared by whole-graph time in this build
  StreamChoice streams;
  double build_ms = 0;
};

Result<BuildOutput> build(const Graph& network, const BuildOptions& options);

/// A pass of the builder itself. Reports count it, and BuildOptions::disabled_rules switches it off, by its id, as with
/// the rules of plugins.
struct CoreRule {
  const char* id;
  const char* doc;
  bool always = true;  ///< otherwise taken where it is faster
};
/// Every one of them.
const std::vector<CoreRule>& core_rules();
inline constexpr char kFewestLaunchesRule[] = "tenon.core.fewest_launches/1";

/// The build report (docs/use.md): layers, cache, memory, values, rules, build_ms.
nlohmann::json report_json(const BuildOutput& output);

/// node, candidates[] {kernel, combo, tactic, tactic_hash, ms, status, reason} of the layer called `name`, or of the
/// one that has a member of that name. kNotFound lists near names.
Result<nlohmann::json> explain_json(const BuildOutput& output, const std::string& name);

}  // namespace tenon
