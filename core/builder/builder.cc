#include "core/builder/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/builder/lowering.h"
#include "core/builder/rerank.h"
#include "core/builder/rivals.h"
#include "core/builder/selection.h"
#include "core/builder/siblings.h"
#include "core/builder/streams.h"
#include "core/graph/passes.h"
#include "core/plan/removed_tensors.h"
#include "core/tuner/code_store.h"

namespace tenon {
namespace {

constexpr char kFoldRule[] = "tenon.core.fold_constants/1";
constexpr char kDuplicatesRule[] = "tenon.core.merge_duplicates/1";
constexpr char kEpilogueRule[] = "tenon.core.epilogue/1";
constexpr char kSiblingsRule[] = "tenon.core.join_siblings/1";
constexpr char kPointwiseRule[] = "tenon.core.pointwise/1";

/// Outputs that no node writes (an input or a constant passed through) are copied, so that they get the caller's
/// memory.
Status copy_passed_through(Graph* graph) {
  const std::vector<ValueId> outputs = graph->outputs();
  for (const ValueId output : outputs) {
    if (graph->value(output).producer != kNoId) continue;
    const std::string name = graph->value(output).name;
    if (!graph->ops().find_op(kReformatOp)) {
      return {Code::kNotFound, fmt::format("output {} is an input or a constant, and copying it needs a plugin with op "
                                           "{}; load one",
                                           name, kReformatOp)};
    }
    Attrs attrs;
    attrs.values["from"] = std::string("row");
    attrs.values["to"] = std::string("row");
    TENON_ASSIGN(const NodeId copy, graph->add_node(kReformatOp, name + ".copy", attrs, {output}, 1));
    // The copy reads the old value, so only the list of outputs may change.
    std::vector<ValueId> changed = graph->outputs();
    graph->clear_outputs();
    for (ValueId& value : changed) {
      if (value == output) value = graph->node(copy).outputs[0];
      TENON_RETURN_IF_ERROR(graph->add_output(value));
    }
    graph->value(graph->node(copy).outputs[0]).name = name;
    graph->value(output).name = name + ".source";
  }
  return {};
}

using RuleCounts = std::map<std::string, int>;

bool enabled(const BuildOptions& options, const char* rule) { return options.disabled_rules.count(rule) == 0; }

/// A mistyped name would otherwise do nothing, in silence.
Status check_rule_ids(const BuildOptions& options) {
  std::vector<std::string> known;
  for (const CoreRule& rule : core_rules()) known.emplace_back(rule.id);
  for (const FusionRef& rule : options.registry->fusions()) known.emplace_back(rule.fusion->id);
  for (const auto* ids : {&options.disabled_rules, &options.forced_rules}) {
    for (const std::string& id : *ids) {
      if (std::find(known.begin(), known.end(), id) != known.end()) continue;
      const std::string near = nearest(id, known);
      return {Code::kInvalid, fmt::format("there is no rule {}{}; tenon rules lists them", id,
                                          near.empty() ? "" : " (nearest: " + near + ")")};
    }
  }
  for (const std::string& id : options.forced_rules) {
    if (options.disabled_rules.count(id) == 0) continue;
    return {Code::kInvalid, fmt::format("the rule {} is both disabled and forced", id)};
  }
  return {};
}

/// From a network to layers that can be timed, and the decisions between rival forms of it.
class Rewriting {
 public:
  Rewriting(const BuildOptions& options, Tuner* tuner, Reformats* reformats, KnownSites* known, BuildOutput* output)
      : options_(options), tuner_(tuner), reformats_(reformats), known_(known), output_(output) {
    fusion_.disabled = options.disabled_rules;
    fusion_.keep_choices_apart = options.editable;
  }

  Status run(Graph* graph) {
    TENON_RETURN_IF_ERROR(apply_always(graph));
    TENON_RETURN_IF_ERROR(apply_candidates(graph));
    TENON_RETURN_IF_ERROR(finish(graph, &counts_));
    TENON_RETURN_IF_ERROR(join_all_siblings(graph));
    TENON_RETURN_IF_ERROR(graph->verify().with_context("after rewriting"));
    output_->rules.assign(counts_.begin(), counts_.end());
    return {};
  }

 private:
  Status fold(Graph* graph) {
    if (!enabled(options_, kFoldRule)) return {};
    TENON_ASSIGN(const int folded, fold_constants(graph));
    if (folded > 0) counts_[kFoldRule] += folded;
    return {};
  }

  Status apply_always(Graph* graph) {
    TENON_RETURN_IF_ERROR(fold(graph));
    TENON_ASSIGN(const RuleCounts rules,
                 apply_always_rules(graph, options_.registry->fusions(), fusion_, *options_.logger));
    counts_.insert(rules.begin(), rules.end());
    TENON_RETURN_IF_ERROR(fold(graph));
    graph->remove_dead();
    if (!enabled(options_, kDuplicatesRule)) return {};
    TENON_ASSIGN(const int merged, merge_duplicates(graph, options_.editable));
    if (merged > 0) counts_[kDuplicatesRule] = merged;
    return {};
  }

  Status apply_candidates(Graph* graph) {
    Rivals rivals(*graph, options_, tuner_, reformats_, known_, [&](Graph* form) {
      RuleCounts uncounted;
      return finish(form, &uncounted);
    });
    const RuleChooser choose = [&](const TnFusion& rule, const std::string& layer, const std::vector<NodeId>& matched,
                                   const Graph& without,
                                   const Graph& with) { return rivals.keeps(rule.id, layer, matched, without, with); };
    TENON_ASSIGN(const RuleCounts rules,
                 apply_candidate_rules(graph, options_.registry->fusions(), fusion_, choose, *options_.logger));
    for (const auto& [rule, count] : rules) counts_[rule] += count;
    keep(rivals);
    return {};
  }

  /// What is left to do when it is decided what the nodes are: which of them become parts of others.
  Status finish(Graph* graph, RuleCounts* counts) {
    if (enabled(options_, kEpilogueRule)) {
      // Where no kernel applies the epilogue, the pointwise op's own kernels do better than the host.
      TENON_ASSIGN(const Extremes extremes, extremes_of(*graph));
      const auto same_dims_always = [&](ValueId a, ValueId b) {
        return same_dims(extremes.min.value(a).dims, extremes.min.value(b).dims) &&
               same_dims(extremes.max.value(a).dims, extremes.max.value(b).dims);
      };
      const int absorbed = absorb_epilogues(graph, [&](const Graph& of, const Absorption& absorption) {
        return std::all_of(absorption.operands.begin(), absorption.operands.end(),
                           [&](ValueId operand) { return same_dims_always(operand, absorption.result); }) &&
               fuses_epilogue(of, absorption, options_);
      });
      if (absorbed > 0) (*counts)[kEpilogueRule] = absorbed;
    }
    if (enabled(options_, kPointwiseRule)) {
      const int merged =
          fuse_pointwise_chains(graph, [&](const Graph& of, NodeId node) { return has_kernel(of, node, options_); });
      if (merged > 0) (*counts)[kPointwiseRule] = merged;
    }
    return copy_passed_through(graph);
  }

  /// Siblings have a choice of their own each, so editable caches keep them apart; so does a rule of the caller.
  Status join_all_siblings(Graph* graph) {
    if (options_.editable || !enabled(options_, kSiblingsRule)) return {};
    TENON_ASSIGN(const auto groups,
                 find_siblings(*graph, [&](const Node& node) { return !has_layer_rule(node, options_); }));
    if (groups.empty()) return {};
    Rivals rivals(*graph, options_, tuner_, reformats_, known_, [](Graph*) { return Status(); });
    for (const std::vector<NodeId>& group : groups) {
      const Graph apart = *graph;
      bool any = false;
      const auto try_to_join = [&](const std::vector<NodeId>& nodes) -> Result<bool> {
        Graph joint = apart;
        TENON_ASSIGN(const std::string layer, join_siblings(&joint, nodes));
        TENON_ASSIGN(const bool taken, rivals.keeps(kSiblingsRule, layer, nodes, *graph, joint));
        if (taken) *graph = std::move(joint);
        any = any || taken;
        return taken;
      };
      TENON_ASSIGN(const bool whole, try_to_join(group));
      // Where it has a choice and the group does not save all the launches that it might, one that fits badly may be
      // better left out.
      const bool forced = options_.forced_rules.count(kSiblingsRule) != 0;
      const bool all_saved = forced || (whole && rivals.saved().value_or(0) >= static_cast<int>(group.size()) - 1);
      for (std::size_t out = 0; out < group.size() && group.size() > 2 && !all_saved; ++out) {
        std::vector<NodeId> fewer = group;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(out));
        TENON_RETURN_IF_ERROR(try_to_join(fewer).status());
      }
      if (any) ++counts_[kSiblingsRule];
    }
    keep(rivals);
    return {};
  }

  void keep(const Rivals& rivals) {
    rivals.record();
    output_->alternatives.insert(output_->alternatives.end(), rivals.decisions().begin(), rivals.decisions().end());
  }

  const BuildOptions& options_;
  Tuner* tuner_;
  Reformats* reformats_;
  KnownSites* known_;
  BuildOutput* output_;
  FusionOptions fusion_;
  RuleCounts counts_;
};

/// The layout for the rewritten graph. What the fewest launches would cost is reported where it is another one.
Result<Selection> select_layout(const Graph& graph, const BuildOptions& options, Tuner* tuner, Reformats* reformats,
                                KnownSites* known, BuildOutput* output) {
  TENON_ASSIGN(Selection fastest, select_candidates(graph, options, tuner, reformats, known));
  const bool forced = preferred(options) == Prefer::kFewLaunches;
  if (forced) output->rules.emplace_back(kFewestLaunchesRule, 1);
  const bool free = std::any_of(fastest.sites.begin(), fastest.sites.end(),
                                [](const SelectedSite& selected) { return !selected.result.fixed; });
  if (!free || !enabled(options, kFewestLaunchesRule)) return fastest;
  TENON_ASSIGN(Selection fewest, select_candidates(graph, options, tuner, reformats, known, Prefer::kFewLaunches));
  TENON_ASSIGN(const WholeTime with, whole_time(graph, fewest, reformats, options, ""));
  TENON_ASSIGN(const WholeTime without, whole_time(graph, fastest, reformats, options, ""));
  if (with.launches == without.launches) return fastest;
  output->alternatives.push_back(
      {kFewestLaunchesRule, "", forced, forced ? with.ms : without.ms, forced ? without.ms : with.ms,
       fmt::format("{}the graph {} with it and {} without", forced ? "forced: " : "", with.text(), without.text())});
  return forced ? std::move(fewest) : std::move(fastest);
}

void log_totals(const BuildOutput& output, Logger& logger) {
  const Plan& plan = output.plan;
  const auto launches = std::count_if(plan.nodes.begin(), plan.nodes.end(),
                                      [&](const PlanNode& node) { return !does_nothing(plan, node); });
  logger.info(fmt::format("Total Host Persistent Memory: {} bytes", plan.context_host_bytes));
  logger.info(fmt::format("Total Device Persistent Memory: {} bytes", plan.context_device_bytes));
  logger.info(fmt::format("Total Scratch Memory: {} bytes", plan.workspace_bytes));
  logger.info(
      fmt::format("Total Activation Memory: {} bytes (lower bound {})", plan.arena_bytes, plan.arena_lower_bound));
  logger.info(fmt::format("Built {} layers in {:.0f} ms: {} sites from the cache, {} not, {} tactics measured",
                          launches, output.build_ms, output.counts.hits, output.counts.misses, output.counts.measured));
}

}  // namespace

const std::vector<CoreRule>& core_rules() {
  static const std::vector<CoreRule> all = {
      {kFoldRule, "nodes whose inputs are all constant are computed by the builder"},
      {kDuplicatesRule, "nodes that compute what an earlier one computes give way to it"},
      {kEpilogueRule, "element-wise nodes become part of the node before them, where a kernel applies them itself"},
      {kPointwiseRule, "chains of element-wise nodes become one node"},
      {kSiblingsRule, "nodes that read the same input and differ in constants become one", false},
      {kFewestLaunchesRule, "forms, formats and tactics are chosen so that launches are few, whatever the time", false},
  };
  return all;
}

Result<BuildOutput> build(const Graph& network, const BuildOptions& given) {
  const auto start = std::chrono::steady_clock::now();
  BuildOptions options = given;
  if (options.cache == nullptr) options.cache = std::make_shared<TimingCache>(options.device->info().signature);
  if (network.outputs().empty()) {
    return Status(Code::kInvalid, "the network has no output; mark at least one tensor as output");
  }
  TENON_RETURN_IF_ERROR(check_rule_ids(options));
  const CodeScope code_scope(&options.cache->code());
  Graph graph = network;
  TENON_RETURN_IF_ERROR(graph.verify());
  BuildOutput output;
  TunerOptions tuner_options;
  tuner_options.frozen = options.frozen;
  tuner_options.retune = options.retune;
  tuner_options.time_budget = options.time_budget;
  tuner_options.journal = options.journal;
  tuner_options.progress = options.progress;
  tuner_options.cancel = options.cancel;
  Tuner tuner(options.device, options.cache, std::move(tuner_options), *options.logger);
  Reformats reformats(options, &tuner);
  KnownSites known;
  TENON_RETURN_IF_ERROR(Rewriting(options, &tuner, &reformats, &known, &output).run(&graph));
  TENON_RETURN_IF_ERROR(check_names(graph, options));
  TENON_ASSIGN(Selection selection, select_layout(graph, options, &tuner, &reformats, &known, &output));
  TENON_RETURN_IF_ERROR(check_fallbacks(selection, options));
  Status status = lower(graph, selection, &reformats, options, &output);
  if (status.ok() && tuner.counts().measured > 0 && !options.frozen) {
    status = rerank(graph, options, std::chrono::steady_clock::now() - start, &selection, &reformats, &output);
  }
  if (status.ok()) {
    status = choose_streams(graph, options, std::chrono::steady_clock::now() - start, tuner.counts().measured > 0,
                            selection, &output);
  }
  record_choices(selection, &tuner, &reformats);
  TENON_RETURN_IF_ERROR(status);
  TENON_RETURN_IF_ERROR(finish_profile(options, &output.plan));
  note_removed_tensors(network, &output.plan);
  if (!options.frozen) {
    record_graph(graph, selection, output, options.device->info().signature, options.cache.get());
  }

  output.counts = tuner.counts();
  output.rejected = tuner.rejected();
  output.build_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  log_totals(output, *options.logger);
  return output;
}

}  // namespace tenon
