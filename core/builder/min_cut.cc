#include "core/builder/min_cut.h"

#include <algorithm>
#include <limits>

namespace tenon {
namespace {

constexpr double kNothing = 1e-12;  // capacities of this size are rounding errors
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

}  // namespace

void MinCut::add_edge(std::size_t from, std::size_t to, double capacity) {
  if (!(capacity > 0)) return;
  edges_[from].push_back({to, edges_[to].size(), capacity});
  edges_[to].push_back({from, edges_[from].size() - 1, 0});
}

// Things on the side of the sink say yes: an edge from the source is cut by a yes, one to the sink by a no.
void MinCut::add_cost(std::size_t a, double no, double yes) {
  const double least = std::min(no, yes);
  add_edge(source(), a, yes - least);
  add_edge(a, sink(), no - least);
}

void MinCut::add_cost(std::size_t a, std::size_t b, double no_no, double no_yes, double yes_no, double yes_yes) {
  // Kolmogorov and Zabih 2004: what each says by itself, and an edge that is cut by no-yes.
  add_cost(a, no_no, yes_no);
  add_cost(b, 0, yes_yes - yes_no);
  add_edge(a, b, no_yes + yes_no - no_no - yes_yes);
}

std::vector<bool> MinCut::solve() {
  struct Step {
    std::size_t from = kNone, edge = 0;
  };
  std::vector<Step> reached;
  std::vector<std::size_t> queue;
  while (true) {
    reached.assign(edges_.size(), {});
    queue.assign(1, source());
    reached[source()].from = source();
    for (std::size_t at = 0; at < queue.size() && reached[sink()].from == kNone; ++at) {
      const std::size_t from = queue[at];
      for (std::size_t i = 0; i < edges_[from].size(); ++i) {
        const Edge& edge = edges_[from][i];
        if (edge.capacity <= kNothing || reached[edge.to].from != kNone) continue;
        reached[edge.to] = {from, i};
        queue.push_back(edge.to);
      }
    }
    if (reached[sink()].from == kNone) break;
    const auto for_each_edge = [&](const auto& function) {
      for (std::size_t to = sink(); to != source(); to = reached[to].from) {
        function(edges_[reached[to].from][reached[to].edge]);
      }
    };
    double flow = std::numeric_limits<double>::infinity();
    for_each_edge([&](const Edge& edge) { flow = std::min(flow, edge.capacity); });
    for_each_edge([&](Edge& edge) {
      edge.capacity -= flow;
      edges_[edge.to][edge.back].capacity += flow;
    });
  }
  std::vector<bool> yes;
  for (std::size_t a = 0; a + 2 < edges_.size(); ++a) yes.push_back(reached[a].from == kNone);
  return yes;
}

}  // namespace tenon
