#include "core/builder/whole_runs.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace tenon {
namespace {

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

// Limits of the time it takes, beside a time budget.
constexpr double kShareOfBuild = 0.1;
constexpr Seconds kAtLeast(0.25);
constexpr int kWarmUpRounds = 2;
constexpr int kRounds = 15;
constexpr int kFewestRounds = 11;
// Rounds that the rival must win, beside the medians: 12 of 15 happen to equals once in 57 times.
constexpr double kShareOfWins = 0.8;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

Status WholeRun::prepare(const Plan& plan, const BuildOptions& options) {
  const std::lock_guard lock(options.device->measuring_lock());
  const auto start = Clock::now();
  TENON_ASSIGN(timer_, options.time_plan(plan));
  const auto ready = Clock::now();
  TENON_RETURN_IF_ERROR(timer_().status());
  prepare_s_ = Seconds(ready - start).count();
  call_s_ = Seconds(Clock::now() - ready).count();
  return {};
}

Seconds WholeRun::comparing_takes() const {
  return Seconds(prepare_s_ + call_s_ * 2 * (kWarmUpRounds + kFewestRounds));
}

bool WholeTimes::rival_is_faster() const { return rival_ms < ms * (1 - kTimingNoise) && wins >= kShareOfWins; }

Status time_in_turns(const WholeRun& run, const WholeRun& rival, const BuildOptions& options, Seconds limit,
                     WholeTimes* times) {
  const std::lock_guard lock(options.device->measuring_lock());
  const auto start = Clock::now();
  std::vector<double> own_times, rival_times;
  int wins = 0;
  for (int round = -kWarmUpRounds; round < kRounds; ++round) {
    TENON_RETURN_IF_ERROR(check_cancel(options));
    const bool rival_first = round % 2 != 0;
    TENON_ASSIGN(const double first, rival_first ? rival() : run());
    TENON_ASSIGN(const double second, rival_first ? run() : rival());
    if (round < 0) continue;
    own_times.push_back(rival_first ? second : first);
    rival_times.push_back(rival_first ? first : second);
    if (rival_times.back() < own_times.back()) ++wins;
    if (round + 1 >= kFewestRounds && Clock::now() - start > limit) break;
  }
  times->wins = static_cast<double>(wins) / static_cast<double>(own_times.size());
  times->ms = median(std::move(own_times));
  times->rival_ms = median(std::move(rival_times));
  return {};
}

Seconds whole_run_limit(const BuildOptions& options, Seconds so_far) {
  const Seconds limit = std::max(so_far * kShareOfBuild, kAtLeast);
  return options.time_budget.count() > 0 ? std::min(limit, options.time_budget - so_far) : limit;
}

Status check_cancel(const BuildOptions& options) {
  if (options.cancel == nullptr || !options.cancel->load()) return {};
  return {Code::kCancelled, "comparing whole runs was cancelled; what was measured is in the timing cache"};
}

}  // namespace tenon
