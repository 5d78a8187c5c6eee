// Siblings: nodes that read the same input and differ in constants only, and how they become one node.
//
// Thread rule: pure functions.
#pragma once

#include <functional>
#include <vector>

#include <tenon/status.hpp>

#include "core/graph/graph.h"

namespace tenon {

inline constexpr char kSliceOp[] = "tenon.slice/1";

/// Groups of at least two nodes whose op says that they can be joined (tenon.op.siblings/1), in topological order. Of a
/// group's nodes one that begins a concatenation stands last and one that ends one stands first, so that the
/// concatenation can begin or end where the joint result does. Nodes that `eligible` refuses take no part, nor do those
/// that give outputs of the graph or have operands in their epilogues.
Result<std::vector<std::vector<NodeId>>> find_siblings(const Graph& graph,
                                                       const std::function<bool(const Node&)>& eligible);

/// Replaces the nodes of a group by one with joined constants, and a slice for each result. Gives the name of the one:
/// theirs joined with '+'.
Result<std::string> join_siblings(Graph* graph, const std::vector<NodeId>& group);

}  // namespace tenon
