#include "core/builder/rerank.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/builder/lowering.h"

namespace tenon {
namespace {

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostSites = 4;
// Isolated times mislead by cold caches and busy neighbours; a rival that is farther behind rarely makes that up.
constexpr double kNear = 0.15;
// Limits of the time it takes, beside a time budget.
constexpr double kShareOfTuning = 0.1;
constexpr Seconds kAtLeast(0.25);
constexpr int kWarmUpRounds = 2;
constexpr int kRounds = 15;
constexpr int kFewestRounds = 11;
// Rounds that the rival must win, beside the medians: 12 of 15 happen to equals once in 57 times.
constexpr double kShareOfWins = 0.8;

struct Pair {
  std::size_t site = 0;
  std::size_t rival = 0;
  double share = 0;  ///< of the site in the sum of all nodes' times
};

/// The sites worth comparing, the hottest first. What takes less than noise of the whole cannot show in it.
std::vector<Pair> pairs_of(const Selection& selection, Prefer prefer) {
  std::vector<double> ms(selection.sites.size(), 0);
  double total = 0;
  for (const std::size_t site : selection.node_site) {
    const SelectedSite& selected = selection.sites[site];
    ms[site] += selected.result.times[selected.chosen].ms;
    total += selected.result.times[selected.chosen].ms;
  }
  std::vector<Pair> pairs;
  for (std::size_t s = 0; s < selection.sites.size(); ++s) {
    const SelectedSite& selected = selection.sites[s];
    if (selected.result.fixed || selected.result.recorded == selected.chosen) continue;
    if (ms[s] < total * kTimingNoise) continue;
    const double limit = selected.result.times[selected.chosen].ms * (1 + kNear);
    const auto rival = fastest_candidate(selected.result, [&](std::size_t i) {
      const Candidate& candidate = selected.tune->enumeration.candidates[i];
      return i != selected.chosen && candidate.combo_text == selected.candidate().combo_text &&
             selected.result.times[i].ms <= limit &&
             (prefer == Prefer::kTime ||
              selected.result.times[i].launches <= selected.result.times[selected.chosen].launches);
    });
    if (rival) pairs.push_back({s, *rival, ms[s] / total});
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.share > b.share; });
  pairs.resize(std::min(pairs.size(), kMostSites));
  return pairs;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Reranking {
 public:
  Reranking(const Graph& graph, const BuildOptions& options, Seconds so_far, Seconds limit, Selection* selection,
            Reformats* reformats, BuildOutput* output)
      : graph_(graph),
        options_(options),
        so_far_(so_far),
        limit_(limit),
        selection_(*selection),
        reformats_(reformats),
        output_(*output) {}

  Status run() {
    const std::vector<Pair> pairs = pairs_of(selection_, preferred(options_));
    if (pairs.empty()) return {};
    const Status status = prepare(output_.plan, &best_);
    if (!status.ok()) {
      options_.logger->verbose("No layer is re-ranked, since the whole graph cannot be run: " + status.message());
      return {};
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      TENON_RETURN_IF_ERROR(check_cancel());
      if (spent() + Seconds(prepare_s_ + call_s_ * 2 * (kWarmUpRounds + kFewestRounds)) > limit_) {
        options_.logger->verbose(
            fmt::format("Re-ranking ends after {} of {} layers: its time of {:.2f} s does not suffice for the next", i,
                        pairs.size(), limit_.count()));
        break;
      }
      report_progress(i, pairs);
      TENON_RETURN_IF_ERROR(compare(pairs[i]));
    }
    for (LayerTrace& layer : output_.layers) {
      for (const Pair& pair : pairs) {
        const SelectedSite& selected = selection_.sites[pair.site];
        if (layer.site == selected.tune) layer.result = selected.result;
      }
    }
    return {};
  }

 private:
  struct Times {
    double best_ms = 0, rival_ms = 0;  ///< medians
    double wins = 0;                   ///< share of the rounds that the rival won
  };

  Seconds spent() const { return Clock::now() - start_; }

  Status check_cancel() const {
    if (options_.cancel == nullptr || !options_.cancel->load()) return {};
    return {Code::kCancelled, "re-ranking was cancelled; what was measured is in the timing cache"};
  }

  /// Sets a plan up and runs it once; notes how long both take.
  Status prepare(const Plan& plan, PlanTimer* timer) {
    const std::lock_guard lock(options_.device->measuring_lock());
    const auto start = Clock::now();
    TENON_ASSIGN(*timer, options_.time_plan(plan));
    const auto ready = Clock::now();
    TENON_RETURN_IF_ERROR((*timer)().status());
    prepare_s_ = Seconds(ready - start).count();
    call_s_ = Seconds(Clock::now() - ready).count();
    return {};
  }

  /// Compares one pair and takes the rival if it is better.
  Status compare(const Pair& pair) {
    SelectedSite& selected = selection_.sites[pair.site];
    const std::size_t chosen = selected.chosen;
    selected.chosen = pair.rival;
    BuildOutput lowered;
    PlanTimer timer;
    Status status = lower(graph_, selection_, reformats_, options_, &lowered);
    if (status.ok()) status = prepare(lowered.plan, &timer);
    Times times;
    if (status.ok()) status = time_in_turns(timer, &times);
    selected.chosen = chosen;
    if (status.code() == Code::kCancelled) return status;
    const std::string name = fmt::format("Re-ranking layer {} (key {}, {:.0f}% of the time)", selected.tune->layer,
                                         to_text(selected.tune->key), pair.share * 100);
    if (!status.ok()) {
      options_.logger->verbose(name + ": its choice stays, for the rival cannot be compared: " + status.message());
      return {};
    }
    const auto [ms, rival_ms, wins] = times;
    const bool better = rival_ms < ms * (1 - kTimingNoise) && wins >= kShareOfWins;
    const auto text = [&](std::size_t i, double whole) {
      const Candidate& candidate = selected.tune->enumeration.candidates[i];
      return fmt::format("{:.6f} ms with {} ({} {}; {:.6f} ms alone)", whole, to_text(candidate.hash),
                         candidate.kernel.kernel->name, candidate.tactic.params, selected.result.times[i].ms);
    };
    options_.logger->verbose(fmt::format("{}: the whole graph takes {}, {}; {}", name, text(chosen, ms),
                                         text(pair.rival, rival_ms),
                                         better ? "the rival is taken" : "the choice stays"));
    selected.result.times[chosen].reason = fmt::format("whole graph {:.6f} ms", ms);
    selected.result.times[pair.rival].reason = fmt::format("whole graph {:.6f} ms", rival_ms);
    const auto hash = [&](std::size_t i) { return selected.tune->enumeration.candidates[i].hash; };
    CacheGraph::Rerank entry{selected.tune->key, selected.tune->layer, hash(chosen), hash(pair.rival), ms, rival_ms};
    if (better) {
      std::swap(entry.tactic, entry.rival);
      std::swap(entry.ms, entry.rival_ms);
      selected.chosen = pair.rival;
      best_ = std::move(timer);
      output_.plan = std::move(lowered.plan);
      output_.layers = std::move(lowered.layers);
    }
    output_.reranked.push_back(std::move(entry));
    return {};
  }

  /// Medians of runs of the best plan and of the rival's, one after the other in each round.
  Status time_in_turns(const PlanTimer& rival, Times* times) {
    const std::lock_guard lock(options_.device->measuring_lock());
    std::vector<double> best_times, rival_times;
    int wins = 0;
    for (int round = -kWarmUpRounds; round < kRounds; ++round) {
      TENON_RETURN_IF_ERROR(check_cancel());
      const bool rival_first = round % 2 != 0;
      TENON_ASSIGN(const double first, rival_first ? rival() : best_());
      TENON_ASSIGN(const double second, rival_first ? best_() : rival());
      if (round < 0) continue;
      best_times.push_back(rival_first ? second : first);
      rival_times.push_back(rival_first ? first : second);
      if (rival_times.back() < best_times.back()) ++wins;
      if (round + 1 >= kFewestRounds && spent() > limit_) break;
    }
    times->wins = static_cast<double>(wins) / static_cast<double>(best_times.size());
    times->best_ms = median(std::move(best_times));
    times->rival_ms = median(std::move(rival_times));
    return {};
  }

  void report_progress(std::size_t done, const std::vector<Pair>& pairs) const {
    if (!options_.progress) return;
    TuneProgress progress;
    progress.layer = progress.layers = static_cast<int>(selection_.sites.size());
    progress.tactic = static_cast<int>(done) + 1;
    progress.tactics = static_cast<int>(pairs.size());
    progress.name = "re-rank " + selection_.sites[pairs[done].site].tune->layer;
    progress.elapsed_s = (so_far_ + spent()).count();
    options_.progress(progress);
  }

  const Graph& graph_;
  const BuildOptions& options_;
  const Seconds so_far_;
  const Seconds limit_;
  Selection& selection_;
  Reformats* reformats_;
  BuildOutput& output_;
  PlanTimer best_;        ///< of output_.plan
  double prepare_s_ = 0;  ///< of the latest plan
  double call_s_ = 0;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace

Status rerank(const Graph& graph, const BuildOptions& options, Seconds so_far, Selection* selection,
              Reformats* reformats, BuildOutput* output) {
  Seconds limit = std::max(so_far * kShareOfTuning, kAtLeast);
  if (options.time_budget.count() > 0) limit = std::min(limit, options.time_budget - so_far);
  if (!options.time_plan || limit.count() <= 0) return {};
  return Reranking(graph, options, so_far, limit, selection, reformats, output).run();
}

void record_graph(const Graph& graph, const Selection& selection, const std::vector<CacheGraph::Rerank>& reranked,
                  const std::string& device, TimingCache* cache) {
  CacheGraph line;
  line.key = structure_key(graph, selection.order, device, [&](std::size_t n, NodeId) {
    return to_text(selection.sites[selection.node_site[n]].tune->key);
  });
  line.device = device;
  std::map<Hash128, std::uint64_t> chosen;
  for (std::size_t n = 0; n < selection.order.size(); ++n) {
    const Node& node = graph.node(selection.order[n]);
    const SelectedSite& selected = selection.sites[selection.node_site[n]];
    chosen[selected.tune->key] = selected.candidate().hash;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const Value& value = graph.value(node.outputs[i]);
      const std::string format = form_text(selected.candidate().combo.outputs[i], value.dtype);
      if (format != "row") line.layout.push_back({value.name, format});
    }
  }
  const std::optional<CacheGraph> known = cache->graph(line.key);
  // What was compared earlier still counts where its outcome is the choice.
  for (const CacheGraph::Rerank& entry : known ? known->rerank : std::vector<CacheGraph::Rerank>()) {
    const bool again = std::any_of(reranked.begin(), reranked.end(), [&](const auto& r) { return r.key == entry.key; });
    const auto choice = chosen.find(entry.key);
    if (!again && choice != chosen.end() && choice->second == entry.tactic) line.rerank.push_back(entry);
  }
  // Names are those of the first network that has this key.
  const auto same_format = [](const auto& a, const auto& b) { return a.format == b.format; };
  const bool same =
      known && reranked.empty() && line.rerank.size() == known->rerank.size() && line.device == known->device &&
      std::equal(line.layout.begin(), line.layout.end(), known->layout.begin(), known->layout.end(), same_format);
  line.rerank.insert(line.rerank.end(), reranked.begin(), reranked.end());
  if (!same) cache->record(line);
}

}  // namespace tenon
