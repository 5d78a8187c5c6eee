#include "core/builder/rivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

std::string site_text(const Graph& graph, NodeId id, const BuildOptions& options) {
  return Site::create(describe_site(graph, id, site_flags(options)), *options.device)->text();
}

Hash128 key_of(const Graph& graph, const BuildOptions& options) {
  const auto order = graph.topological_order();
  return structure_key(graph, order.ok() ? *order : std::vector<NodeId>(),
                       "rivals\n" + options.device->info().signature,
                       [&](std::size_t, NodeId id) { return site_text(graph, id, options); });
}

std::string text_of(const std::optional<WholeTime>& time) { return time ? time->text() : "cannot run"; }

bool is_better(const WholeTime& a, const WholeTime& b, double noise, double launch, Prefer prefer) {
  const double a_ms = a.ms + a.launches * launch, b_ms = b.ms + b.launches * launch;
  const bool equal = prefer == Prefer::kFewLaunches || std::abs(a_ms - b_ms) <= noise;
  if (equal && a.launches != b.launches) return a.launches < b.launches;
  return a_ms < b_ms;
}

}  // namespace

Rivals::Rivals(const Graph& start, const BuildOptions& options, Tuner* tuner, Reformats* reformats, KnownSites* known,
               std::function<Status(Graph*)> finish)
    : options_(options),
      tuner_(tuner),
      reformats_(reformats),
      known_(known),
      finish_(std::move(finish)),
      prefer_(preferred(options)) {
  const Hash128 key = key_of(start, options);
  if (!options.retune) line_ = options.cache->graph(key).value_or(CacheGraph());
  line_.key = key;
  line_.device = options.device->info().signature;
  for (const CacheGraph::Region& region : line_.regions) recorded_rules_.insert(region.rule);
}

Result<bool> Rivals::keeps(const std::string& rule, const std::string& layer, const std::vector<NodeId>& matched,
                           const Graph& without, const Graph& with) {
  Alternative decision;
  const auto recorded = std::find_if(line_.regions.begin(), line_.regions.end(),
                                     [&](const auto& region) { return region.rule == rule && region.layer == layer; });
  saved_.reset();
  if (options_.forced_rules.count(rule) != 0) {
    decision.taken = true;
    decision.reason = "forced";
    now_.reset();
  } else if (recorded != line_.regions.end()) {
    decision = {"", "", recorded->taken, recorded->ms, recorded->rival_ms, "recorded"};
    now_.reset();
  } else if (options_.frozen || recorded_rules_.count(rule) != 0) {
    return false;
  } else {
    const auto [equal, added] = regions_.emplace(region_text(rule, matched, without), Alternative());
    if (added) {
      TENON_ASSIGN(equal->second, compare(layer, without, with));
      decision = equal->second;
    } else {
      decision = equal->second;
      decision.reason = "as an equal one";
      if (decision.taken) now_.reset();
    }
  }
  decision.rule = rule;
  decision.layer = layer;
  if (recorded == line_.regions.end() && decision.reason != "forced") {
    line_.regions.push_back({rule, layer, decision.taken, decision.ms, decision.rival_ms});
  }
  decisions_.push_back(decision);
  return decision.taken;
}

/// The builder's whole graph decides, for what a rewrite costs or saves shows in formats and copies around it too.
Result<Alternative> Rivals::compare(const std::string& layer, const Graph& without, const Graph& with) {
  if (!now_) {
    TENON_ASSIGN(now_, time(without, ""));
  }
  const std::optional<WholeTime> now = *now_;
  TENON_ASSIGN(const std::optional<WholeTime> rival, time(with, layer));
  Alternative decision;
  decision.taken = rival && (!now || is_better(*rival, *now, rival->layer_ms * kTimingNoise,
                                               launch_ms(reformats_->on_host()), prefer_));
  const double with_ms = rival ? rival->ms : -1, without_ms = now ? now->ms : -1;
  decision.ms = decision.taken ? with_ms : without_ms;
  decision.rival_ms = decision.taken ? without_ms : with_ms;
  decision.reason = fmt::format("the graph {} with it and {} without", text_of(rival), text_of(now));
  if (rival && now) saved_ = now->launches - rival->launches;
  if (decision.taken) now_ = rival;
  return decision;
}

Result<std::optional<WholeTime>> Rivals::time(Graph graph, const std::string& layer) {
  const auto timed = [&]() -> Result<WholeTime> {
    TENON_RETURN_IF_ERROR(finish_(&graph));
    TENON_ASSIGN(const Selection selection, select_candidates(graph, options_, tuner_, reformats_, known_, prefer_));
    return whole_time(graph, selection, reformats_, options_, layer);
  };
  const Result<WholeTime> time = timed();
  if (time.ok()) return std::optional<WholeTime>(*time);
  if (time.status().code() == Code::kCancelled) return time.status();
  options_.logger->verbose("a form of the graph cannot be timed: " + time.status().message());
  return std::optional<WholeTime>();
}

std::string Rivals::region_text(const std::string& rule, const std::vector<NodeId>& matched, const Graph& graph) const {
  std::string text = rule;
  for (const NodeId id : matched) {
    if (id != kNoId) text += "\n" + site_text(graph, id, options_);
  }
  return text;
}

void Rivals::record() const {
  if (options_.frozen || line_.regions.empty()) return;
  const std::optional<CacheGraph> known = options_.cache->graph(line_.key);
  if (!known || known->regions.size() != line_.regions.size() || options_.retune) options_.cache->record(line_);
}

}  // namespace tenon
