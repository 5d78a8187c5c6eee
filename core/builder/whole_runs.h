// Whole runs: two plans for the same network are compared by running them in turns.
//
// Thread rule: as build; the device's measuring lock is held while plans run.
#pragma once

#include <chrono>

#include <tenon/status.hpp>

#include "core/builder/builder.h"

namespace tenon {

/// A plan that is ready to run.
class WholeRun {
 public:
  /// Sets a plan up and runs it once. Errors are those of BuildOptions::time_plan and of what it gives.
  Status prepare(const Plan& plan, const BuildOptions& options);
  Result<double> operator()() const { return timer_(); }
  /// How long comparing with another plan like this one takes, setting that up included.
  std::chrono::duration<double> comparing_takes() const;

 private:
  PlanTimer timer_;
  double prepare_s_ = 0, call_s_ = 0;
};

struct WholeTimes {
  double ms = 0, rival_ms = 0;  ///< medians
  double wins = 0;              ///< share of the rounds that the rival won
  /// By more than noise, and not only by luck.
  bool rival_is_faster() const;
};

/// Medians of runs of two plans, one after the other in each round. After `limit` there are only as many rounds as a
/// judgement needs. Errors: those of running, cancelled.
Status time_in_turns(const WholeRun& run, const WholeRun& rival, const BuildOptions& options,
                     std::chrono::duration<double> limit, WholeTimes* times);

/// Time that a build may spend on comparing whole runs of one kind, after it took `so_far`: a tenth of that or a
/// quarter of a second, and never more than is left of the time budget.
std::chrono::duration<double> whole_run_limit(const BuildOptions& options, std::chrono::duration<double> so_far);

/// kCancelled once BuildOptions::cancel is set.
Status check_cancel(const BuildOptions& options);

}  // namespace tenon
