// Passes over a Graph: constant folding through op references, fusion rules by text pattern, epilogue absorption.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <tenon/plugin/fusion.h>
#include <tenon/status.hpp>

#include "core/base/logger.h"
#include "core/graph/graph.h"

namespace tenon {

/// Computes whole outputs of a node on the host through its op's reference; then its epilogues. Inputs are in the order
/// of node.inputs, null where absent. f16 and bf16 go through f32.
Result<std::vector<std::shared_ptr<const HostTensor>>> evaluate_reference(
    const Graph& graph, NodeId node, const std::vector<std::shared_ptr<const HostTensor>>& inputs);

/// Replaces every PURE node whose inputs are all constant by its value, unless an output exceeds `max_bytes`. Returns
/// how many nodes went.
Result<int> fold_constants(Graph* graph, std::uint64_t max_bytes = 64u << 20);

/// A compiled pattern text (see plugin/fusion.h).
class Pattern {
 public:
  /// kInvalid gives column and what was expected there.
  static Result<Pattern> parse(const std::string& text);
  /// Tries the pattern with its root at `node`.
  bool match(const Graph& graph, NodeId node, class Match* out) const;
  const std::vector<std::string>& root_ops() const;

 private:
  struct Term;
  std::shared_ptr<const Term> root_;
};

/// What a pattern bound: nodes in pattern order, values by name.
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
  /// Names of nodes that no rule may merge with another such node (editable timing caches).
  bool keep_choices_apart = false;
  int max_applications = 100000;   ///< beyond it, rules that undo each other are taken for a cycle
};

/// Applies the ALWAYS rules until none matches: by priority (higher first), then id. Counts per rule id. A rewrite that
/// fails or changes dims is rolled back and logged with the rule's name. A cycle is an error naming both rules.
Result<std::map<std::string, int>> apply_always_rules(Graph* graph, const std::vector<FusionRef>& rules,
                                                      const FusionOptions& options, Logger& logger);

/// Moves pointwise ops with one input (tenon.op.expression/1) into the epilogue of the node that produces it, where
/// that value has one user, is no graph output, and the producer is not pointwise itself. Names join with '+'. Returns
/// how many were moved. `eligible(node)` says whether a producer may take one.
int absorb_epilogues(Graph* graph, bool (*eligible)(const Graph&, NodeId, void*), void* context);

}  // namespace tenon
