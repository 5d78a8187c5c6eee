#include "core/builder/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/base/text.h"
#include "core/builder/rerank.h"
#include "core/builder/whole_runs.h"
#include "core/plan/placement.h"
#include "core/plan/streams.h"

namespace tenon {
namespace {

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

constexpr int kMostOnGpu = 4;

StreamProblem problem_of(const Plan& plan) {
  StreamProblem problem;
  for (const PlanNode& node : plan.nodes) problem.ms.push_back(does_nothing(plan, node) ? 0 : node.ms);
  problem.needs = data_needs(plan);
  return problem;
}

/// Moves layers to streams: tensors get new places, and each stream a workspace.
Status set_streams(const std::vector<int>& streams, const std::vector<LayerTrace>& layers, Plan* plan) {
  std::map<int, std::uint64_t> workspaces;
  for (std::size_t n = 0; n < plan->nodes.size(); ++n) {
    plan->nodes[n].stream = streams[n];
    std::uint64_t& workspace = workspaces[streams[n]];
    workspace = std::max(workspace, layers[n].workspace);
  }
  plan->workspace_bytes = 0;
  for (const auto& [stream, workspace] : workspaces) {
    plan->workspace_bytes += workspaces.size() == 1 ? workspace : (workspace + 255) / 256 * 256;
  }
  return place_tensors(plan);
}

/// The streams that a person or an earlier build wrote down, one per layer.
class RecordedStreams {
 public:
  RecordedStreams(const Plan& plan, const CacheGraph& line, int most) : plan_(plan), line_(line), most_(most) {
    for (std::size_t n = 0; n < plan.nodes.size(); ++n) numbers_.emplace(plan.nodes[n].name, n);
  }

  Result<std::vector<int>> read() const {
    if (plan_.has_varying_dims()) {
      return wrong("dims of this network vary at run time, so that it runs on one stream; make the list empty");
    }
    std::vector<int> streams(plan_.nodes.size(), 0);
    std::set<std::size_t> seen;
    for (const CacheGraph::Stream& entry : line_.streams) {
      TENON_ASSIGN(const std::size_t layer, layer_of(entry));
      if (!seen.insert(layer).second) return wrong(fmt::format("two entries are about layer {}", name(layer)));
      if (entry.stream < 0 || entry.stream >= most_) {
        return wrong(
            fmt::format("layer {} is on stream {}, expected 0 to {}; allow more (--max-streams), or one only "
                        "(--max-streams 1), which leaves the list out of account",
                        name(layer), entry.stream, most_ - 1));
      }
      streams[layer] = static_cast<int>(entry.stream);
    }
    return streams;
  }

 private:
  /// Names are those of the first network with these layers, so in another one the number tells.
  Result<std::size_t> layer_of(const CacheGraph::Stream& entry) const {
    const auto named = numbers_.find(entry.layer);
    if (named != numbers_.end()) return named->second;
    if (entry.step >= 0 && entry.step < static_cast<std::int64_t>(plan_.nodes.size())) {
      return static_cast<std::size_t>(entry.step);
    }
    std::vector<std::string> names;
    for (const PlanNode& node : plan_.nodes) names.push_back(node.name);
    const std::string near = nearest(entry.layer, names);
    return wrong(fmt::format("no layer is called \"{}\"{}, and step {} is none of 0 to {}", entry.layer,
                             near.empty() ? "" : " (nearest: " + near + ")", entry.step, names.size() - 1));
  }
  const std::string& name(std::size_t layer) const { return plan_.nodes[layer].name; }
  Status wrong(const std::string& what) const {
    return {Code::kInvalid, fmt::format("timing cache, graph {}, streams: {}", to_text(line_.key), what)};
  }

  const Plan& plan_;
  const CacheGraph& line_;
  const int most_;
  std::map<std::string, std::size_t> numbers_;
};

/// Whole runs on one stream against such on more.
class Comparison {
 public:
  Comparison(const BuildOptions& options, Seconds limit, BuildOutput* output)
      : options_(options), limit_(limit), output_(*output) {}

  Status run(int most) {
    const StreamProblem problem = problem_of(output_.plan);
    const double one_ms = std::accumulate(problem.ms.begin(), problem.ms.end(), 0.0);
    std::vector<int> tried(problem.ms.size(), 0);
    output_.streams.decided = true;
    for (int streams = 2;; streams *= 2) {
      const StreamAssignment assignment = assign_streams(problem, std::min(streams, most));
      const bool may_pay = assignment.ms < one_ms * (1 - kTimingNoise);
      if (may_pay && assignment.streams != tried) {
        tried = assignment.streams;
        TENON_ASSIGN(const bool go_on, compare(assignment));
        if (!go_on) return {};
      }
      if (streams >= most) break;
    }
    if (!ready_) options_.logger->verbose("Streams: one, since running layers beside each other saves nothing");
    return {};
  }

 private:
  /// Takes the assignment if it is better than what the plan has now. False if no other one can be tried.
  Result<bool> compare(const StreamAssignment& assignment) {
    Plan plan = output_.plan;
    TENON_RETURN_IF_ERROR(set_streams(assignment.streams, output_.layers, &plan));
    const int events = memory_order(plan).events();
    WholeRun run;
    WholeTimes times;
    Status status;
    if (!ready_) status = best_.prepare(output_.plan, options_);
    ready_ = ready_ || status.ok();
    const Seconds spent = Clock::now() - start_;
    if (status.ok() && spent + best_.comparing_takes() > limit_) {
      options_.logger->verbose(fmt::format("Streams: {} are not tried, since the time of {:.2f} s does not suffice",
                                           assignment.count, limit_.count()));
      return false;
    }
    if (status.ok()) status = run.prepare(plan, options_);
    if (status.ok()) status = time_in_turns(best_, run, options_, limit_ - spent, &times);
    if (status.code() == Code::kCancelled) return status;
    if (!status.ok()) {
      options_.logger->verbose(fmt::format("Streams: {} are not tried, since the whole graph cannot be run: {}",
                                           assignment.count, status.message()));
      return false;
    }
    StreamChoice& choice = output_.streams;
    const bool better = times.rival_is_faster();
    options_.logger->verbose(
        fmt::format("Streams: the whole graph takes {:.6f} ms on {} and {:.6f} ms on {} with {} events; {}", times.ms,
                    choice.count, times.rival_ms, assignment.count, events, better ? "these are taken" : "it stays"));
    if (!choice.ms_one) choice.ms_one = times.ms;
    if (better || !choice.ms_several) choice.ms_several = times.rival_ms;
    if (!better) return true;
    choice.count = assignment.count;
    choice.events = events;
    output_.plan = std::move(plan);
    best_ = std::move(run);
    return true;
  }

  const BuildOptions& options_;
  const Seconds limit_;
  BuildOutput& output_;
  bool ready_ = false;
  WholeRun best_;  ///< of output_.plan
  const Clock::time_point start_ = Clock::now();
};

}  // namespace

Status choose_streams(const Graph& graph, const BuildOptions& options, Seconds so_far, bool measured,
                      const Selection& selection, BuildOutput* output) {
  if (options.max_streams < 0 || options.max_streams > kMostStreams) {
    return {Code::kInvalid, fmt::format("max_streams is {}, expected 1 to {}, or 0 for as many as suit the device",
                                        options.max_streams, kMostStreams)};
  }
  const DeviceInfo& device = options.device->info();
  const int most = options.max_streams > 0 ? options.max_streams : device.on_host() ? 1 : kMostOnGpu;
  Plan& plan = output->plan;
  if (most == 1) return {};
  const Seconds limit = whole_run_limit(options, so_far);
  const bool may_decide =
      measured && !options.frozen && options.time_plan && !plan.has_varying_dims() && limit.count() > 0;
  const std::optional<CacheGraph> known = known_graph(graph, selection, device.signature, *options.cache);
  if (known && !known->streams.empty() && !(options.retune && may_decide)) {
    TENON_ASSIGN(const std::vector<int> streams, RecordedStreams(plan, *known, most).read());
    TENON_RETURN_IF_ERROR(set_streams(streams, output->layers, &plan));
    const StreamOrder order = memory_order(plan);
    output->streams = {true, order.count(), order.events(), {}, {}};
    return {};
  }
  return may_decide ? Comparison(options, limit, output).run(most) : Status();
}

}  // namespace tenon
