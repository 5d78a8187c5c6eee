// Trials: the candidates of one site set up, verified against the op's reference, and timed in rounds.
//
// Thread rule: one thread. REQUIRES: the device's measuring lock is held.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tenon/status.hpp>
#include <vector>

#include "core/site/bench.h"
#include "core/site/candidate.h"
#include "core/site/site.h"

namespace tenon {

class Trials {
 public:
  /// `candidates` outlives the trials.
  Trials(std::shared_ptr<const Site> site, OpRef op, const std::vector<Candidate>& candidates,
         std::shared_ptr<Device> device, std::uint64_t seed);

  /// How a candidate came out of its setting up and verification.
  struct Verdict {
    enum class Kind {
      kPassed,
      kDeclined,  ///< failed before it ran, or without memory: it may be tried again another time
      kRejected,  ///< failed while it ran, or its results are wrong
    };
    Kind kind = Kind::kPassed;
    std::string reason;
  };

  /// Makes inputs and reference samples, once per site. Fails if the op cannot give them.
  Status prepare();
  /// Sets one candidate up, poisons its outputs, runs it once, and compares. REQUIRES: prepare.
  Verdict verify(std::size_t candidate);
  /// First round of a candidate that passed: ms. One that takes more than ten times `best_ms` is not repeated.
  Result<double> first_round(std::size_t candidate, double best_ms);
  /// Further rounds, in turns, for the nearer ones of `candidates`: those within 1.5 times the fastest, then those
  /// within 1.1 times. `others_ms` are the times of rivals that do not take part. Stops early when `stop` says so.
  /// Gives those that failed on the way, each with the reason; only the one that broke the device, if one did.
  std::map<std::size_t, std::string> refine(std::vector<std::size_t> candidates, const std::vector<double>& others_ms,
                                            const std::function<bool()>& stop);
  /// Median of all slices so far. REQUIRES: first_round succeeded.
  double ms(std::size_t candidate) const;
  /// Of one run; 1 where they were not counted. REQUIRES: first_round succeeded.
  int launches(std::size_t candidate) const { return trials_[candidate].launches; }

 private:
  struct Trial {
    std::unique_ptr<Bench> bench;  ///< empty once it is out of the running, or when memory was short
    int repeats = 1;               ///< runs of one slice
    int slices = 1;                ///< of one round
    int launches = 1;
    std::vector<double> samples;  ///< ms per run, one per slice
  };

  Status warm_up(Bench* bench);
  Result<Bench*> bench_of(std::size_t candidate);
  Status compare(std::size_t candidate, Bench* bench);
  Status add_rounds(std::size_t candidate, int rounds);
  void release_above(double limit_ms);

  std::shared_ptr<const Site> site_;
  OpRef op_;
  const std::vector<Candidate>& candidates_;
  std::shared_ptr<Device> device_;
  std::uint64_t seed_;
  std::shared_ptr<BenchSetting> setting_;
  std::vector<std::vector<ReferenceSample>> samples_;  ///< per output
  std::vector<Trial> trials_;
  bool warm_ = false;
};

/// The kernel's own guess of a candidate's time in ms; below 0 if it gives none.
double estimate_ms(const Site& site, const Candidate& candidate);

}  // namespace tenon
