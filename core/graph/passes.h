// Passes over a Graph: constant folding through op references, fusion rules by text pattern, epilogue absorption.
#pragma once

#include <tenon/plugin/fusion.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tenon/status.hpp>
#include <vector>

#include "core/base/logger.h"
#include "core/graph/graph.h"

namespace tenon {

/// Computes whole outputs of a node on the host through its op's reference; then its epilogues. Inputs are in the order
/// of node.inputs, null where absent and where only the dims matter (TN_PORT_DIMS_ONLY). f16 and bf16 go through f32.
Result<std::vector<std::shared_ptr<const HostTensor>>> evaluate_reference(
    const Graph& graph, NodeId node, const std::vector<std::shared_ptr<const HostTensor>>& inputs);

/// Whether the contents of all inputs that matter are known, and same inputs give same outputs.
bool can_evaluate(const Graph& graph, NodeId node);

/// Replaces every PURE node whose inputs are all constant by its value, unless an output exceeds `max_bytes` or depends
/// on dims that vary at run time. Returns how many nodes went.
Result<int> fold_constants(Graph* graph, std::uint64_t max_bytes = 64u << 20);

/// Lets what reads a node read an equal earlier one instead: same pure op, attributes, inputs and epilogues. Returns
/// how many nodes went. `keep_choices_apart`: as in FusionOptions.
Result<int> merge_duplicates(Graph* graph, bool keep_choices_apart);

/// A compiled pattern text (see plugin/fusion.h).
class Pattern {
 public:
  /// kInvalid gives column and what was expected there.
  static Result<Pattern> parse(const std::string& text);
  /// Tries the pattern with its root at `node`. Nodes that carry an epilogue never match: a rule would lose it.
  bool match(const Graph& graph, NodeId node, class Match* out) const;
  const std::vector<std::string>& root_ops() const;

 private:
  struct Term;
  std::shared_ptr<const Term> root_;
};

/// What a pattern bound: nodes in pattern order (kNoId in an absent optional part), values by name.
class Match {
 public:
  std::vector<NodeId> nodes;
  std::map<std::string, ValueId> values;
  const TnMatch* handle() const { return reinterpret_cast<const TnMatch*>(this); }
  static const Match* from(const TnMatch* handle) { return reinterpret_cast<const Match*>(handle); }
};

/// A registered rule with its compiled pattern and its plugin's host table.
struct FusionRef {
  const TnFusion* fusion = nullptr;
  const TnHost* host = nullptr;
  Pattern pattern;
  std::shared_ptr<const void> library;
};

struct FusionOptions {
  std::set<std::string> disabled;  ///< rule ids
  /// No rule may merge two nodes that each have a choice of their own, which are those of ops that are not
  /// TN_OP_ELEMENTWISE (editable timing caches).
  bool keep_choices_apart = false;
  int max_applications = 100000;  ///< beyond it, rules that undo each other are taken for a cycle
};

/// Applies the ALWAYS rules until none matches: by priority (higher first), then id. Counts per rule id. A rewrite that
/// fails or changes dims is rolled back and logged with the rule's name. A cycle is an error naming both rules; the
/// graph is valid then, but half rewritten. The node that takes the root's place has the members of all matched nodes,
/// and is called by them joined with '+' unless the rewrite gave it a name that no matched node has.
Result<std::map<std::string, int>> apply_always_rules(Graph* graph, const std::vector<FusionRef>& rules,
                                                      const FusionOptions& options, Logger& logger);

/// Asked where a CANDIDATE rule was applied: whether to keep `with`, the graph with the rule and the ALWAYS rules that
/// match then, rather than `without`. `matched` are nodes of `without`, `layer` is called what took the root's place.
using RuleChooser =
    std::function<Result<bool>(const TnFusion& rule, const std::string& layer, const std::vector<NodeId>& matched,
                               const Graph& without, const Graph& with)>;

/// Applies the CANDIDATE rules, by priority, then id, wherever they match and `choose` says so. As apply_always_rules.
Result<std::map<std::string, int>> apply_candidate_rules(Graph* graph, const std::vector<FusionRef>& rules,
                                                         const FusionOptions& options, const RuleChooser& choose,
                                                         Logger& logger);

/// What a pointwise node computes, over its inputs; its own epilogue is not part of it. kDeclined with the reason if
/// its op does not say (tenon.op.expression/1).
Result<Expression> describe_expression(const Graph& graph, NodeId node);

/// A pointwise node about to become the epilogue of the node before it.
struct Absorption {
  NodeId producer = kNoId;
  std::uint32_t output = 0;       ///< of the producer
  ValueId result = kNoId;         ///< what the pointwise node writes; the producer will
  Expression epilogue;            ///< the whole epilogue that the output then has
  std::vector<ValueId> operands;  ///< what the producer then reads beside its inputs
};
using EpilogueFilter = std::function<bool(const Graph& graph, const Absorption& absorption)>;

/// Moves pointwise ops (tenon.op.expression/1) into the epilogue of a node that produces an input of theirs, where that
/// value has one user, is no graph output, and the producer is not pointwise itself. Further inputs may be constants of
/// one element, which become part of the expression, and tensors of the output's dtype and dims, which become operands
/// of the epilogue. Dtype (f32, f16, bf16) and dims must stay the same. The result keeps the name of the moved op's
/// output. Names join with '+'. Returns how many were moved. `eligible` decides; empty: all.
int absorb_epilogues(Graph* graph, const EpilogueFilter& eligible);

/// Makes one node of tenon.pointwise/1 of each chain or tree of pointwise nodes (TN_OP_ELEMENTWISE with
/// tenon.op.expression/1) whose inner values have the output's dims, no reader outside and are no graph output; all of
/// one dtype, f32, f16 or bf16. Constants of one element become part of the expression. The result keeps the last
/// node's output; names join with '+'. Nothing happens where the op is not loaded. Returns how many nodes went.
/// `eligible` says whether a node that was made so can run; where it cannot, the chain stays apart. Empty: each can.
using ChainFilter = std::function<bool(const Graph& graph, NodeId node)>;
int fuse_pointwise_chains(Graph* graph, const ChainFilter& eligible);

}  // namespace tenon
