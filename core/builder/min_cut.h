// The cheapest way to give each of many things a yes or a no, where some of them cost and some pairs do.
//
// Thread rule: an object is used by one thread at a time.
#pragma once

#include <cstddef>
#include <vector>

namespace tenon {

/// Minimum cut of a graph with capacities, by shortest augmenting paths (Edmonds and Karp 1972).
class MinCut {
 public:
  explicit MinCut(std::size_t count) : edges_(count + 2) {}

  /// Costs of thing `a` alone. REQUIRES: all costs are finite.
  void add_cost(std::size_t a, double no, double yes);
  /// Costs of a pair, for no-no, no-yes, yes-no and yes-yes. Where no_no + yes_yes exceeds the other two together, no
  /// cut can tell them, and no_yes counts as larger.
  void add_cost(std::size_t a, std::size_t b, double no_no, double no_yes, double yes_no, double yes_yes);
  /// Things whose answer is yes in one of the cheapest ways: that with the most of them. Called once.
  std::vector<bool> solve();

 private:
  struct Edge {
    std::size_t to;
    std::size_t back;  // number of the edge the other way among those of `to`
    double capacity;
  };
  void add_edge(std::size_t from, std::size_t to, double capacity);
  std::size_t source() const { return edges_.size() - 2; }
  std::size_t sink() const { return edges_.size() - 1; }

  std::vector<std::vector<Edge>> edges_;
};

}  // namespace tenon
