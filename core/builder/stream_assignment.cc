#include <algorithm>
#include <limits>

#include "core/builder/streams.h"

namespace tenon {
namespace {

// What it costs that a layer waits for one of another stream: an edge between branches of a CUDA graph, about two
// microseconds on GPUs of 2020 to 2024.
constexpr double kHandOverMs = 0.002;
constexpr std::size_t kNobody = ~std::size_t{0};

/// Longest way from the begin of each layer to the end of the graph.
std::vector<double> ways_to_end(const StreamProblem& problem) {
  std::vector<double> ways = problem.ms;
  std::vector<double> behind(problem.ms.size(), 0);
  for (std::size_t n = problem.ms.size(); n-- > 0;) {
    ways[n] += behind[n];
    for (const std::size_t need : problem.needs[n]) behind[need] = std::max(behind[need], ways[n]);
  }
  return ways;
}

/// Of each layer the one after it that is to keep its stream; kNobody: nobody reads it.
std::vector<std::size_t> heirs_of(const StreamProblem& problem) {
  const std::vector<double> ways = ways_to_end(problem);
  std::vector<std::size_t> heirs(problem.ms.size(), kNobody);
  for (std::size_t n = 0; n < problem.ms.size(); ++n) {
    for (const std::size_t need : problem.needs[n]) {
      if (heirs[need] == kNobody || ways[n] > ways[heirs[need]]) heirs[need] = n;
    }
  }
  return heirs;
}

/// ancestors[n][m]: whether layer n waits for layer m in any case.
std::vector<std::vector<bool>> ancestors_of(const StreamProblem& problem) {
  std::vector<std::vector<bool>> ancestors;
  for (std::size_t n = 0; n < problem.ms.size(); ++n) {
    std::vector<bool>& own = ancestors.emplace_back(n, false);
    for (const std::size_t need : problem.needs[n]) {
      own[need] = true;
      for (std::size_t m = 0; m < need; ++m) own[m] = own[m] || ancestors[need][m];
    }
  }
  return ancestors;
}

}  // namespace

StreamAssignment assign_streams(const StreamProblem& problem, int most) {
  struct Lane {
    std::size_t last = kNobody;
    double end = 0;
  };
  const std::size_t n = problem.ms.size();
  const std::vector<std::size_t> heirs = heirs_of(problem);
  const std::vector<std::vector<bool>> ancestors = ancestors_of(problem);
  std::vector<Lane> lanes(1);
  std::vector<double> ends(n, 0);
  StreamAssignment result;
  result.streams.assign(n, 0);
  for (std::size_t layer = 0; layer < n; ++layer) {
    const std::vector<std::size_t>& needs = problem.needs[layer];
    int best = 0;
    double best_cost = std::numeric_limits<double>::infinity(), best_begin = 0;
    const auto consider = [&](int stream, const Lane& lane) {
      double begin = lane.end;
      for (const std::size_t need : needs) {
        begin = std::max(begin, ends[need] + (result.streams[need] == stream ? 0 : kHandOverMs));
      }
      // A layer that takes the place of an heir keeps that one waiting, unless it has to be first anyway.
      const std::size_t heir = lane.last == kNobody ? kNobody : heirs[lane.last];
      const bool in_the_way = heir != kNobody && heir > layer && !ancestors[heir][layer];
      const double cost = begin + (in_the_way ? problem.ms[layer] : 0);
      if (cost >= best_cost) return;
      best = stream;
      best_cost = cost;
      best_begin = begin;
    };
    // Of equals the stream of the one that ends last comes first, then the lowest.
    const auto latest =
        std::max_element(needs.begin(), needs.end(), [&](std::size_t a, std::size_t b) { return ends[a] < ends[b]; });
    if (latest != needs.end()) {
      const int stream = result.streams[*latest];
      consider(stream, lanes[static_cast<std::size_t>(stream)]);
    }
    for (std::size_t s = 0; s < lanes.size(); ++s) consider(static_cast<int>(s), lanes[s]);
    if (static_cast<int>(lanes.size()) < most && lanes[0].last != kNobody) {
      consider(static_cast<int>(lanes.size()), Lane());
    }
    if (best == static_cast<int>(lanes.size())) lanes.emplace_back();
    result.streams[layer] = best;
    ends[layer] = best_begin + problem.ms[layer];
    lanes[static_cast<std::size_t>(best)] = {layer, ends[layer]};
    result.ms = std::max(result.ms, ends[layer]);
  }
  result.count = static_cast<int>(lanes.size());
  return result;
}

}  // namespace tenon
