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
#include <set>
#include <string>
#include <tenon/status.hpp>
#include <vector>

#include "core/site/candidate.h"
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
  int launches = 1;  ///< kernels, copies and fills of a run, where the device can tell
  double correlation =
      1;  ///< estimate / measured time if the kernel estimates, else 1; the log's prediction_correlation
  std::string reason;
  /// May win. Not so: candidates that lost to the recorded choice before, when only newly measured ones may replace it;
  /// and estimated ones, which nobody verified.
  bool open = true;
  bool has_time() const { return state == State::kMeasured || state == State::kCached || state == State::kEstimated; }
  bool usable() const { return has_time() && open; }
};

/// One distinct site of a build.
struct TuneSite {
  std::shared_ptr<const Site> site;
  OpRef op;
  std::string layer;  ///< name for messages and, in editable mode, for the key
  Hash128 key;
  Enumeration enumeration;
  bool restricted =
      false;  ///< the caller's rules narrowed the candidates: a recorded choice outside them does not count
};

struct TuneResult {
  std::vector<CandidateTime> times;     ///< one per candidate
  std::optional<std::size_t> recorded;  ///< the candidate that the cache's choice names
  bool fixed = false;                   ///< the recorded choice stands: nothing may replace it in this build
  bool partial = false;                 ///< the time budget ended before every candidate was tried
};

struct TuneProgress {
  int layer = 0, layers = 0;    ///< layer i of n
  int tactic = 0, tactics = 0;  ///< tactic j of m of this layer
  std::string name;
  double elapsed_s = 0;
  double eta_s = -1;  ///< below 0: not known yet
};

struct TunerOptions {
  bool frozen = false;  ///< any needed measurement is an error naming layer and key
  bool retune = false;  ///< choices that are not pinned are decided anew, measurements taken anew
  std::chrono::duration<double> time_budget{0};  ///< 0: none
  std::filesystem::path journal;                 ///< crash journal; empty: none
  std::function<void(const TuneProgress&)> progress;
  const std::atomic<bool>* cancel = nullptr;  ///< set: the build stops with kCancelled and a valid cache
};

struct TunerCounts {
  int hits = 0;      ///< sites served from recorded choices
  int misses = 0;    ///< sites without one
  int measured = 0;  ///< tactics measured in this build
};

class Tuner {
 public:
  Tuner(std::shared_ptr<Device> device, std::shared_ptr<TimingCache> cache, TunerOptions options, Logger& logger);

  /// Times one site. `index` of `count` is for progress. Errors: frozen and no choice is recorded (names layer and
  /// key); a recorded tactic that is not among the candidates, was rejected or crashed (names layer, key and the valid
  /// tactics); cancelled. A recorded tactic that was never verified is run once and verified, not measured.
  ///
  /// A recorded choice stands if it is pinned, if the build is frozen, if its tactic was never measured (somebody put
  /// it there by hand), or if no candidate is new. Otherwise the new candidates are measured, and those that are faster
  /// than the choice's own measurement by more than noise may replace it. With `retune` choices that are not pinned
  /// count for nothing. The result may hold no usable candidate: then each has its reason.
  Result<TuneResult> time_site(const TuneSite& site, int index, int count);

  /// Writes the choice to the cache unless it is recorded already or was never measured, and logs the table of
  /// docs/use.md at verbose level if anything was measured for the site in this build.
  void record_choice(const TuneSite& site, const TuneResult& result, std::size_t chosen);

  const TunerCounts& counts() const { return counts_; }
  /// Candidates rejected in this build or earlier: "layer: kernel tactic: reason".
  const std::vector<std::string>& rejected() const { return rejected_; }

 private:
  class SiteTuning;
  std::shared_ptr<Device> device_;
  std::shared_ptr<TimingCache> cache_;
  TunerOptions options_;
  Logger& logger_;
  CrashJournal journal_;
  bool journal_works_ = true;
  TunerCounts counts_;
  std::vector<std::string> rejected_;
  std::set<Hash128> known_sites_;  ///< sites timed in this build
  std::chrono::steady_clock::time_point start_;
  int tactics_wanted_ = 0;  ///< tactics that the sites so far needed measured
  int tactics_tried_ = 0;
  double trying_seconds_ = 0;
};

/// Times nearer than this share of each other are equal: noise.
inline constexpr double kTimingNoise = 0.02;

/// The usable candidate that should win by time alone: of those within noise of the fastest the one with the fewest
/// launches, of these the first in the fixed order. `eligible`, if given, narrows the field. Nothing if no candidate is
/// usable.
std::optional<std::size_t> fastest_candidate(const TuneResult& result,
                                             const std::function<bool(std::size_t)>& eligible = nullptr);

/// The valid tactics of a site for messages: "0x1f (kernel params combo), ...". With a result, without those that did
/// not pass.
std::string valid_tactics_text(const TuneSite& site, const TuneResult* result);

}  // namespace tenon
