// Nodes that compute what another node computes already.

#include <fmt/format.h>

#include <map>
#include <utility>

#include "core/graph/passes.h"

namespace tenon {
namespace {

/// Equal for nodes that give the same outputs.
std::string text_of(const Node& node) {
  std::string text = fmt::format("{} {} {}", node.op_id(), node.attrs.text(), node.outputs.size());
  for (const ValueId input : node.inputs) text += fmt::format(" {}", input);
  for (const Expression& epilogue : node.epilogues) text += fmt::format(" {};", epilogue.text());
  return text;
}

}  // namespace

Result<int> merge_duplicates(Graph* graph, bool keep_choices_apart) {
  TENON_ASSIGN(const std::vector<NodeId> order, graph->topological_order());
  std::map<std::string, NodeId> known;
  int merged = 0;
  for (const NodeId id : order) {
    // Producers come first, so the inputs of equal nodes behind equal nodes are equal by now.
    const Node node = std::as_const(*graph).node(id);
    const std::uint32_t flags = node.op.op->flags;
    if ((flags & TN_OP_PURE) == 0 || (flags & (TN_OP_RANDOM | TN_OP_STATEFUL)) != 0) continue;
    if (keep_choices_apart && (flags & TN_OP_ELEMENTWISE) == 0) continue;
    const auto [first, added] = known.emplace(text_of(node), id);
    if (added) continue;
    bool gone = true;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      // Declined where both are outputs of the graph, which keep their names.
      gone = graph->replace(node.outputs[i], std::as_const(*graph).node(first->second).outputs[i]).ok() && gone;
    }
    if (!gone) continue;
    TENON_RETURN_IF_ERROR(graph->remove_node(id));
    ++merged;
  }
  return merged;
}

}  // namespace tenon
