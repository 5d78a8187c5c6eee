#include "core/builder/rerank.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/builder/lowering.h"
#include "core/builder/whole_runs.h"

namespace tenon {
namespace {

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostSites = 4;
// Isolated times mislead by cold caches and busy neighbours; a rival that is farther behind rarely makes that up.
constexpr double kNear = 0.15;

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
    const Status status = best_.prepare(output_.plan, options_);
    if (!status.ok()) {
      options_.logger->verbose("No layer is re-ranked, since the whole graph cannot be run: " + status.message());
      return {};
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      TENON_RETURN_IF_ERROR(check_cancel(options_));
      if (spent() + best_.comparing_takes() > limit_) {
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
  Seconds spent() const { return Clock::now() - start_; }

  /// Compares one pair and takes the rival if it is better.
  Status compare(const Pair& pair) {
    SelectedSite& selected = selection_.sites[pair.site];
    const std::size_t chosen = selected.chosen;
    selected.chosen = pair.rival;
    BuildOutput lowered;
    WholeRun rival;
    Status status = lower(graph_, selection_, reformats_, options_, &lowered);
    if (status.ok()) status = rival.prepare(lowered.plan, options_);
    WholeTimes times;
    if (status.ok()) status = time_in_turns(best_, rival, options_, limit_ - spent(), &times);
    selected.chosen = chosen;
    if (status.code() == Code::kCancelled) return status;
    const std::string name = fmt::format("Re-ranking layer {} (key {}, {:.0f}% of the time)", selected.tune->layer,
                                         to_text(selected.tune->key), pair.share * 100);
    if (!status.ok()) {
      options_.logger->verbose(name + ": its choice stays, for the rival cannot be compared: " + status.message());
      return {};
    }
    const double ms = times.ms, rival_ms = times.rival_ms;
    const bool better = times.rival_is_faster();
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
      best_ = std::move(rival);
      output_.plan = std::move(lowered.plan);
      output_.layers = std::move(lowered.layers);
    }
    output_.reranked.push_back(std::move(entry));
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
  WholeRun best_;  ///< of output_.plan
  const Clock::time_point start_ = Clock::now();
};

}  // namespace

Status rerank(const Graph& graph, const BuildOptions& options, Seconds so_far, Selection* selection,
              Reformats* reformats, BuildOutput* output) {
  const Seconds limit = whole_run_limit(options, so_far);
  if (!options.time_plan || limit.count() <= 0) return {};
  return Reranking(graph, options, so_far, limit, selection, reformats, output).run();
}

namespace {

/// Key and layout; `chosen`, if given, receives the tactic of each site.
CacheGraph line_of(const Graph& graph, const Selection& selection, const std::string& device,
                   std::map<Hash128, std::uint64_t>* chosen = nullptr) {
  CacheGraph line;
  line.key = structure_key(graph, selection.order, device, [&](std::size_t n, NodeId) {
    return to_text(selection.sites[selection.node_site[n]].tune->key);
  });
  line.device = device;
  for (std::size_t n = 0; n < selection.order.size(); ++n) {
    const Node& node = graph.node(selection.order[n]);
    const SelectedSite& selected = selection.sites[selection.node_site[n]];
    if (chosen != nullptr) (*chosen)[selected.tune->key] = selected.candidate().hash;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const Value& value = graph.value(node.outputs[i]);
      const std::string format = form_text(selected.candidate().combo.outputs[i], value.dtype);
      if (format != "row") line.layout.push_back({value.name, format});
    }
  }
  return line;
}

bool same_layout(const CacheGraph& a, const CacheGraph& b) {
  return std::equal(a.layout.begin(), a.layout.end(), b.layout.begin(), b.layout.end(),
                    [](const auto& x, const auto& y) { return x.format == y.format; });
}

}  // namespace

std::optional<CacheGraph> known_graph(const Graph& graph, const Selection& selection, const std::string& device,
                                      const TimingCache& cache) {
  const CacheGraph line = line_of(graph, selection, device);
  std::optional<CacheGraph> known = cache.graph(line.key);
  return known && same_layout(*known, line) ? known : std::nullopt;
}

void record_graph(const Graph& graph, const Selection& selection, const BuildOutput& output, const std::string& device,
                  TimingCache* cache) {
  const std::vector<CacheGraph::Rerank>& reranked = output.reranked;
  std::map<Hash128, std::uint64_t> chosen;
  CacheGraph line = line_of(graph, selection, device, &chosen);
  const std::optional<CacheGraph> known = cache->graph(line.key);
  for (std::size_t n = 0; n < output.plan.nodes.size(); ++n) {
    const PlanNode& node = output.plan.nodes[n];
    if (node.stream != 0) line.streams.push_back({node.name, static_cast<std::int64_t>(n), node.stream});
  }
  if (!output.streams.decided && known && same_layout(*known, line)) line.streams = known->streams;
  // What was compared earlier still counts where its outcome is the choice.
  for (const CacheGraph::Rerank& entry : known ? known->rerank : std::vector<CacheGraph::Rerank>()) {
    const bool again = std::any_of(reranked.begin(), reranked.end(), [&](const auto& r) { return r.key == entry.key; });
    const auto choice = chosen.find(entry.key);
    if (!again && choice != chosen.end() && choice->second == entry.tactic) line.rerank.push_back(entry);
  }
  // Names are those of the first network that has this key.
  const auto same_stream = [](const auto& a, const auto& b) { return a.step == b.step && a.stream == b.stream; };
  const bool same =
      known && reranked.empty() && line.rerank.size() == known->rerank.size() && line.device == known->device &&
      same_layout(line, *known) &&
      std::equal(line.streams.begin(), line.streams.end(), known->streams.begin(), known->streams.end(), same_stream);
  line.rerank.insert(line.rerank.end(), reranked.begin(), reranked.end());
  if (!same) cache->record(line);
}

}  // namespace tenon
