// Tuner: measures and verifies the candidates of sites, through the timing cache. It does not choose between formats;
// layout assignment does, with the tuner's times.
//
// Thread rule: one Tuner per build, one thread; several builds may run at once and share a TimingCache and a Device.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/status.hpp>

#include "core/site/candidate.h"
#include "core/site/run_once.h"
#include "core/tuner/timing_cache.h"

namespace tenon {

/// How one candidate fared.
struct CandidateTime {
  enum class State {
    kMeasured,     ///< measured in this build
    kCached,       ///< measured earlier, time from the cache
    kEstimated,    ///< time budget spent: the kernel's own guess
    kUnmeasured,   ///< not needed, or frozen
    kRejected,     ///< wrong results or failed; reason says how
    kQuarantined,  ///< crashed a process earlier
    kDeclined,     ///< configure or memory said no; reason says why
  };
  State state = State::kUnmeasured;
  double ms = 0;
  double correlation = 1;  ///< estimate / measured time if the kernel estimates, else 1; the log's prediction_correlation
  std::string reason;
  bool usable() const { return state == State::kMeasured || state == State::kCached || state == State::kEstimated; }
};

/// One distinct site of a build.
struct TuneSite {
  std::shared_ptr<const Site> site;
  OpRef op;
  std::string layer;  ///< name for messages and, in editable mode, for the key
  Hash128 key;
  Enumeration enumeration;
};

struct TuneResult {
  std::vector<CandidateTime> times;     ///< one per candidate
  std::optional<std::size_t> recorded;  ///< the candidate that the cache's choice names
  bool fixed = false;  ///< the recorded choice stands: nothing may replace it in this build
};

struct TuneProgress {
  int layer = 0, layers = 0;    ///< layer i of n
  int tactic = 0, tactics = 0;  ///< tactic j of m of this layer
  std::string name;
  double elapsed_s = 0;
  double eta_s = -1;  ///< below 0: not known yet
};

struct TunerOptions {
  bool frozen = false;        ///< any needed measurement is an error naming layer and key
  bool retune = false;        ///< choices that are not pinned are decided anew, measurements taken anew
  std::chrono::duration<double> time_budget{0};  ///< 0: none
  std::filesystem::path journal;                 ///< crash journal; empty: none
  std::function<void(const TuneProgress&)> progress;
  const std::atomic<bool>* cancel = nullptr;     ///< set: the build stops with kCancelled and a valid cache
};

struct TunerCounts {
  int hits = 0;      ///< sites served from recorded choices
  int misses = 0;    ///< sites without one
  int measured = 0;  ///< tactics measured in this build
};

class Tuner {
 public:
  Tuner(std::shared_ptr<Device> device, std::shared_ptr<TimingCache> cache, TunerOptions options, Logger& logger);

  /// Times one site. `index` of `count` is for progress. Errors: frozen and something is missing (names layer and key);
  /// a recorded tactic that is not among the candidates or was rejected (names layer, key and the valid tactics);
  /// cancelled. A recorded tactic that was never verified is run once and verified, not measured.
  Result<TuneResult> time_site(const TuneSite& site, int index, int count);

  /// Writes the choice to the cache unless it is recorded already, and logs the table of MISSION.md at verbose level if
  /// anything was measured for the site in this build.
  void record_choice(const TuneSite& site, const TuneResult& result, std::size_t chosen);

  const TunerCounts& counts() const { return counts_; }
  /// Candidates rejected in this build or earlier: "layer: kernel tactic: reason".
  const std::vector<std::string>& rejected() const { return rejected_; }

 private:
  struct Impl;
  std::shared_ptr<Device> device_;
  std::shared_ptr<TimingCache> cache_;
  TunerOptions options_;
  Logger& logger_;
  TunerCounts counts_;
  std::vector<std::string> rejected_;
  std::chrono::steady_clock::time_point start_;
};

/// The valid tactics of a site for messages: "0x1f (kernel params combo), ...".
std::string valid_tactics_text(const TuneSite& site, const TuneResult* result);

}  // namespace tenon
