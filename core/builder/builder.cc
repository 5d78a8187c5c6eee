#include "core/builder/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/builder/lowering.h"
#include "core/builder/rerank.h"
#include "core/builder/selection.h"
#include "core/graph/passes.h"

namespace tenon {
namespace {

constexpr char kFoldRule[] = "tenon.core.fold_constants/1";
constexpr char kDuplicatesRule[] = "tenon.core.merge_duplicates/1";
constexpr char kEpilogueRule[] = "tenon.core.epilogue/1";
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

Result<std::map<std::string, int>> rewrite(Graph* graph, const BuildOptions& options) {
  std::map<std::string, int> rules;
  const auto enabled = [&](const char* rule) { return options.disabled_rules.count(rule) == 0; };
  int folded = 0;
  const auto fold = [&]() -> Status {
    if (!enabled(kFoldRule)) return {};
    TENON_ASSIGN(const int more, fold_constants(graph));
    folded += more;
    return {};
  };
  TENON_RETURN_IF_ERROR(fold());
  FusionOptions fusion;
  fusion.disabled = options.disabled_rules;
  fusion.keep_choices_apart = options.editable;
  TENON_ASSIGN(rules, apply_always_rules(graph, options.registry->fusions(), fusion, *options.logger));
  TENON_RETURN_IF_ERROR(fold());
  graph->remove_dead();
  if (enabled(kDuplicatesRule)) {
    TENON_ASSIGN(const int merged, merge_duplicates(graph, options.editable));
    if (merged > 0) rules[kDuplicatesRule] = merged;
  }
  if (enabled(kEpilogueRule)) {
    // Where no kernel applies the epilogue, the pointwise op's own kernels do better than the host.
    TENON_ASSIGN(const Extremes extremes, extremes_of(*graph));
    const auto same_dims_always = [&](ValueId a, ValueId b) {
      return same_dims(extremes.min.value(a).dims, extremes.min.value(b).dims) &&
             same_dims(extremes.max.value(a).dims, extremes.max.value(b).dims);
    };
    const int absorbed = absorb_epilogues(graph, [&](const Graph& of, const Absorption& absorption) {
      return std::all_of(absorption.operands.begin(), absorption.operands.end(),
                         [&](ValueId operand) { return same_dims_always(operand, absorption.result); }) &&
             fuses_epilogue(of, absorption, options);
    });
    if (absorbed > 0) rules[kEpilogueRule] = absorbed;
  }
  if (enabled(kPointwiseRule)) {
    const int merged =
        fuse_pointwise_chains(graph, [&](const Graph& of, NodeId node) { return has_kernel(of, node, options); });
    if (merged > 0) rules[kPointwiseRule] = merged;
  }
  if (folded > 0) rules[kFoldRule] = folded;
  TENON_RETURN_IF_ERROR(copy_passed_through(graph));
  TENON_RETURN_IF_ERROR(graph->verify().with_context("after rewriting"));
  return rules;
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
  Graph graph = network;
  TENON_RETURN_IF_ERROR(graph.verify());
  BuildOutput output;
  TENON_ASSIGN(const auto rules, rewrite(&graph, options));
  output.rules.assign(rules.begin(), rules.end());

  TunerOptions tuner_options;
  tuner_options.frozen = options.frozen;
  tuner_options.retune = options.retune;
  tuner_options.time_budget = options.time_budget;
  tuner_options.journal = options.journal;
  tuner_options.progress = options.progress;
  tuner_options.cancel = options.cancel;
  Tuner tuner(options.device, options.cache, std::move(tuner_options), *options.logger);
  Reformats reformats(options, &tuner);
  TENON_ASSIGN(Selection selection, select_candidates(graph, options, *options.cache, &tuner, &reformats));
  Status status = lower(graph, selection, &reformats, options, &output);
  if (status.ok() && tuner.counts().measured > 0 && !options.frozen) {
    status = rerank(graph, options, std::chrono::steady_clock::now() - start, &selection, &reformats, &output);
  }
  record_choices(selection, &tuner, &reformats);
  TENON_RETURN_IF_ERROR(status);
  TENON_RETURN_IF_ERROR(finish_profile(options, &output.plan));
  if (!options.frozen) {
    record_graph(graph, selection, output.reranked, options.device->info().signature, options.cache.get());
  }

  output.counts = tuner.counts();
  output.rejected = tuner.rejected();
  output.build_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  log_totals(output, *options.logger);
  return output;
}

}  // namespace tenon
