#include "core/tuner/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

#include "core/base/text.h"
#include "core/site/view.h"
#include "core/tuner/trials.h"
#include "core/tuner/tuning_log.h"

namespace tenon {
namespace {

using State = CandidateTime::State;

constexpr double kUnknownMs = std::numeric_limits<double>::infinity();

CacheMeasurement measurement_of(const TuneSite& site, const Candidate& candidate) {
  CacheMeasurement measurement;
  measurement.key = site.key;
  measurement.combo = candidate.combo_text;
  measurement.kernel = candidate.kernel.kernel->name;
  measurement.revision = candidate.kernel.kernel->revision;
  measurement.build = candidate.kernel.build_id;
  measurement.tactic = candidate.hash;
  measurement.params = candidate.tactic.params;
  measurement.blob = candidate.tactic.blob;
  measurement.workspace = candidate.tactic.workspace;
  return measurement;
}

std::string choice_text(const CacheChoice& choice) {
  std::string text = to_text(choice.tactic);
  std::vector<std::string> names;
  for (const std::string& name : {choice.kernel, choice.params, choice.combo}) {
    if (!name.empty()) names.push_back(name);
  }
  return names.empty() ? text : text + " (" + join(names, " ") + ")";
}

}  // namespace

/// One call of time_site.
class Tuner::SiteTuning {
 public:
  SiteTuning(Tuner& tuner, const TuneSite& site, int index, int count)
      : tuner_(tuner),
        site_(site),
        candidates_(site.enumeration.candidates),
        index_(index),
        count_(count),
        activity_(*tuner.device_, "the tuning of " + site.layer) {
    activity_.begin();
  }

  Result<TuneResult> run() {
    if (cancelled()) return cancelled_status();
    const bool first = tuner_.known_sites_.insert(site_.key).second;
    std::optional<CacheChoice> choice = tuner_.cache_->choice(site_.key);
    if (tuner_.options_.retune && choice && !choice->pinned) choice.reset();
    if (site_.restricted && choice && !offered(choice->tactic)) {
      if (choice->pinned) {
        return Status(Code::kInvalid,
                      site_text(site_) + ": the timing cache pins " + choice_text(*choice) +
                          ", which a layer rule of this build excludes; unpin it or change the rule. The rule allows " +
                          valid_tactics_text(site_, nullptr));
      }
      choice.reset();
    }
    if (first) ++(choice ? tuner_.counts_.hits : tuner_.counts_.misses);
    anew_ = tuner_.options_.retune && !choice && first;
    look_up();
    if (choice) {
      TENON_RETURN_IF_ERROR(take_recorded(*choice));
      const std::size_t recorded = *result_.recorded;
      const bool by_hand = result_.times[recorded].state == State::kUnmeasured && !measured_before_[recorded];
      if (tuner_.options_.frozen || choice->pinned || by_hand) {
        TENON_RETURN_IF_ERROR(verify_recorded(*choice));
        result_.fixed = true;
        result_.partial = choice->partial;
        return finish();
      }
    } else if (tuner_.options_.frozen) {
      return Status(Code::kNotFound,
                    site_text(site_) +
                        ": the timing cache is frozen and has no choice for it, so it would have to be "
                        "profiled; build once without the frozen cache, or insert one of " +
                        valid_tactics_text(site_, &result_));
    }
    if (!missing().empty()) TENON_RETURN_IF_ERROR(measure_missing());
    if (choice) TENON_RETURN_IF_ERROR(settle(*choice));
    return finish();
  }

 private:
  bool cancelled() const { return tuner_.options_.cancel != nullptr && tuner_.options_.cancel->load(); }
  Status cancelled_status() const {
    return {Code::kCancelled, site_text(site_) + ": tuning was cancelled; what was measured is in the timing cache"};
  }
  bool budget_spent() const {
    const auto budget = tuner_.options_.time_budget;
    return budget.count() > 0 && std::chrono::steady_clock::now() - tuner_.start_ > budget;
  }
  std::vector<std::size_t> missing() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (result_.times[i].state == State::kUnmeasured) found.push_back(i);
    }
    return found;
  }
  bool offered(std::uint64_t tactic) const {
    return std::any_of(candidates_.begin(), candidates_.end(), [&](const auto& c) { return c.hash == tactic; });
  }
  bool any_usable() const {
    return std::any_of(result_.times.begin(), result_.times.end(), [](const auto& time) { return time.usable(); });
  }

  /// What the cache knows of the candidates. Times of another revision of a kernel do not count. Failures count until
  /// the kernel's revision or its plugin's file changes: the fault may be gone.
  void look_up() {
    result_.times.assign(candidates_.size(), {});
    measured_before_.assign(candidates_.size(), false);
    if (anew_) return;
    std::map<std::tuple<std::string, std::string, std::uint64_t>, CacheMeasurement> known;
    for (CacheMeasurement& line : tuner_.cache_->measurements(site_.key)) {
      auto id = std::make_tuple(line.kernel, line.combo, line.tactic);
      known.emplace(std::move(id), std::move(line));
    }
    const std::vector<CacheMeasurement> quarantines = tuner_.cache_->quarantines();
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      const auto found =
          known.find(std::make_tuple(candidate.kernel.kernel->name, candidate.combo_text, candidate.hash));
      if (found == known.end()) {
        distrust(i, quarantines);
        continue;
      }
      const CacheMeasurement& line = found->second;
      const bool same_revision = line.revision == candidate.kernel.kernel->revision;
      CandidateTime& time = result_.times[i];
      if (line.kind == CacheMeasurement::Kind::kMeasured) {
        measured_before_[i] = true;
        if (!same_revision) continue;
        time.state = State::kCached;
        time.ms = line.ms;
        time.launches = line.launches;
        if (line.build != candidate.kernel.build_id && !tuner_.options_.frozen) {
          CacheMeasurement renewed = measurement_of(site_, candidate);  // says that this library lists the tactic too
          renewed.ms = line.ms;
          renewed.launches = line.launches;
          tuner_.cache_->record(renewed);
        }
      } else if (same_revision && line.build == candidate.kernel.build_id) {
        const bool rejected = line.kind == CacheMeasurement::Kind::kRejected;
        time.state = rejected ? State::kRejected : State::kQuarantined;
        time.reason = line.reason;
      }
    }
  }

  /// A tactic that crashed at another site is not tried here.
  void distrust(std::size_t i, const std::vector<CacheMeasurement>& quarantines) {
    const KernelRef& ref = candidates_[i].kernel;
    for (const CacheMeasurement& line : quarantines) {
      if (line.kernel != ref.kernel->name || line.tactic != candidates_[i].hash) continue;
      if (line.revision != ref.kernel->revision || line.build != ref.build_id) continue;
      result_.times[i].state = State::kQuarantined;
      result_.times[i].reason = "it crashed at the site with key " + to_text(line.key) + ": " + line.reason;
      return;
    }
  }

  /// Finds the recorded candidate. Combo and tactic name it; the kernel is part of the tactic's hash. If no candidate
  /// has both (the entry has no combo, or somebody edited the tactic alone) the tactic decides: the fastest measured of
  /// the combos that offer it, else the first.
  Status take_recorded(const CacheChoice& choice) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].hash != choice.tactic) continue;
      if (candidates_[i].combo_text == choice.combo) {
        best = i;
        break;
      }
      const auto ms = [&](std::size_t c) { return result_.times[c].has_time() ? result_.times[c].ms : kUnknownMs; };
      if (!best || ms(i) < ms(*best)) best = i;
    }
    if (!best) return bad_choice(choice, "is not among the candidates" + decline_reason(choice));
    result_.recorded = best;
    const CandidateTime& time = result_.times[*best];
    if (time.state == State::kRejected) return bad_choice(choice, "was rejected: " + time.reason);
    if (time.state == State::kQuarantined) return bad_choice(choice, "is quarantined: " + time.reason);
    return {};
  }

  /// Why a tactic that a kernel used to offer was left out of the candidates.
  std::string decline_reason(const CacheChoice& choice) const {
    for (const Decline& decline : site_.enumeration.declines) {
      const bool whole_kernel = decline.combo.empty() && decline.kernel == choice.kernel;
      if (whole_kernel || tactic_hash(decline.kernel, decline.tactic) == choice.tactic) return ": " + decline.reason;
    }
    return "";
  }

  Status bad_choice(const CacheChoice& choice, const std::string& what) const {
    return {Code::kInvalid, site_text(site_) + ": the tactic " + choice_text(choice) +
                                " that the timing cache records for it " + what +
                                "; valid tactics: " + valid_tactics_text(site_, &result_) +
                                "; set one of them, erase the entry, or tune again with --retune"};
  }

  /// A choice that nobody verified is run once.
  Status verify_recorded(const CacheChoice& choice) {
    const std::size_t recorded = *result_.recorded;
    if (result_.times[recorded].state != State::kUnmeasured) return {};
    const std::lock_guard lock(tuner_.device_->measuring_lock());
    Trials trials(site_.site, site_.op, candidates_, tuner_.device_, site_.key.low);
    TENON_RETURN_IF_ERROR(trials.prepare().with_context(site_text(site_)));
    begin_try(recorded);
    const bool passed = accept(recorded, trials.verify(recorded));
    tuner_.journal_.end();
    if (broke_) return broke_status();
    return passed ? Status() : check_recorded(choice);
  }

  Status check_recorded(const CacheChoice& choice) const {
    const CandidateTime& time = result_.times[*result_.recorded];
    if (time.state == State::kRejected) return bad_choice(choice, "was rejected: " + time.reason);
    if (time.state == State::kDeclined) return bad_choice(choice, "cannot be used: " + time.reason);
    return {};
  }

  /// Notes a verdict; true if the candidate may go on.
  bool accept(std::size_t i, const Trials::Verdict& verdict) {
    if (verdict.kind == Trials::Verdict::Kind::kPassed) return true;
    CandidateTime& time = result_.times[i];
    time.reason = verdict.reason;
    if (tuner_.device_->broken()) {
      // Candidates run one by one and each is waited for, so it was this one, or work of another thread.
      broke_ = i;
      time.state = State::kQuarantined;
      CacheMeasurement line = measurement_of(site_, candidates_[i]);
      line.kind = CacheMeasurement::Kind::kQuarantined;
      line.reason = verdict.reason;
      tuner_.cache_->record(line);
      return false;
    }
    if (verdict.kind == Trials::Verdict::Kind::kDeclined) {
      time.state = State::kDeclined;
      tuner_.logger_.info(site_text(site_) + ": tactic " + candidate_text(candidates_[i]) +
                          " is left out: " + verdict.reason);
      return false;
    }
    time.state = State::kRejected;
    tuner_.logger_.warning(site_text(site_) + ": tactic " + candidate_text(candidates_[i]) +
                           " is rejected: " + verdict.reason);
    CacheMeasurement line = measurement_of(site_, candidates_[i]);
    line.kind = CacheMeasurement::Kind::kRejected;
    line.reason = verdict.reason;
    tuner_.cache_->record(line);
    return false;
  }

  Status broke_status() const {
    const std::vector<std::string> others = tuner_.device_->under_way(&activity_);
    return {Code::kDevice,
            fmt::format("{}: tactic {} broke {}{}: {}. The tactic is quarantined in the timing cache; build again in a "
                        "new process, since a broken device stays so until the process ends",
                        site_text(site_), candidate_text(candidates_[*broke_]), tuner_.device_->info().name,
                        others.empty() ? "" : " (if it was not " + join(others, " or ") + ", under way meanwhile)",
                        result_.times[*broke_].reason)};
  }

  void record(std::size_t i, double ms, int launches) {
    result_.times[i].state = State::kMeasured;
    result_.times[i].ms = ms;
    result_.times[i].launches = launches;
    CacheMeasurement line = measurement_of(site_, candidates_[i]);
    line.ms = ms;
    line.launches = launches;
    tuner_.cache_->record(line);
  }

  Status measure_missing() {
    const std::lock_guard lock(tuner_.device_->measuring_lock());
    look_up();  // another builder that shares the cache may have measured the site while this one waited
    std::vector<std::size_t> wanted = missing();
    if (wanted.empty()) return {};
    tuner_.tactics_wanted_ += static_cast<int>(wanted.size());
    Trials trials(site_.site, site_.op, candidates_, tuner_.device_, site_.key.low);
    TENON_RETURN_IF_ERROR(trials.prepare().with_context(site_text(site_)));
    const auto start = std::chrono::steady_clock::now();
    const Status status = try_all(wanted, &trials);
    tuner_.trying_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return status;
  }

  Status try_all(const std::vector<std::size_t>& wanted, Trials* trials) {
    std::vector<std::size_t> passed;
    for (std::size_t j = 0; j < wanted.size(); ++j) {
      if (cancelled()) return cancelled_status();
      if (budget_spent()) {
        TENON_RETURN_IF_ERROR(
            settle_for_estimates({wanted.begin() + static_cast<std::ptrdiff_t>(j), wanted.end()}, trials));
        break;
      }
      report_progress(static_cast<int>(j), static_cast<int>(wanted.size()));
      try_one(wanted[j], trials);
      if (broke_) return broke_status();
      const bool measured = result_.times[wanted[j]].state == State::kMeasured;
      if (measured && !is_view_kernel(candidates_[wanted[j]].kernel)) passed.push_back(wanted[j]);
    }
    std::vector<double> others;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (result_.times[i].state == State::kCached) others.push_back(result_.times[i].ms);
    }
    const auto failed = trials->refine(passed, others, [&] { return cancelled() || budget_spent(); });
    for (const std::size_t i : passed) {
      const auto failure = failed.find(i);
      if (failure == failed.end()) {
        record(i, trials->ms(i), trials->launches(i));
      } else {
        accept(i, {Trials::Verdict::Kind::kRejected, failure->second});
        if (broke_) return broke_status();
      }
    }
    if (cancelled()) return cancelled_status();
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      CandidateTime& time = result_.times[i];
      if (time.state != State::kMeasured && time.state != State::kCached) continue;
      if (time.state == State::kMeasured) ++tuner_.counts_.measured;
      const double estimate = estimate_ms(*site_.site, candidates_[i]);
      if (estimate >= 0 && time.ms > 0) time.correlation = estimate / time.ms;
    }
    return {};
  }

  /// Notes in the crash journal what is about to be tried. Where it cannot be written tuning goes on without.
  void begin_try(std::size_t i) {
    if (!tuner_.journal_works_) return;
    const Status status = tuner_.journal_.begin(measurement_of(site_, candidates_[i]));
    if (status.ok()) return;
    tuner_.journal_works_ = false;
    tuner_.logger_.warning("no crash journal is kept, so a tactic that crashes will be tried again: " +
                           status.message());
  }

  /// Verifies one candidate and takes its first times.
  void try_one(std::size_t i, Trials* trials) {
    ++tuner_.tactics_tried_;
    double best = kUnknownMs;
    for (const CandidateTime& time : result_.times) {
      if (time.state == State::kMeasured || time.state == State::kCached) best = std::min(best, time.ms);
    }
    begin_try(i);
    Trials::Verdict verdict = trials->verify(i);
    if (accept(i, verdict)) {
      // Alone it has to copy; in a plan it mostly does nothing.
      const bool view = is_view_kernel(candidates_[i].kernel);
      const auto ms = view ? Result<double>(kViewMs) : trials->first_round(i, best);
      if (ms.ok()) {
        record(i, *ms, view ? 1 : trials->launches(i));
      } else {
        const bool no_memory = ms.status().code() == Code::kNoMemory;
        verdict.kind = no_memory ? Trials::Verdict::Kind::kDeclined : Trials::Verdict::Kind::kRejected;
        verdict.reason = ms.status().message();
        accept(i, verdict);
      }
    }
    tuner_.journal_.end();
  }

  /// The time budget is spent: the kernels' own guesses must do. They are not verified, so if nothing else of the site
  /// may win, candidates are tried, the likeliest fastest first, until one works.
  Status settle_for_estimates(std::vector<std::size_t> rest, Trials* trials) {
    for (const std::size_t i : rest) {
      const bool view = is_view_kernel(candidates_[i].kernel);
      const double estimate = view ? kViewMs : estimate_ms(*site_.site, candidates_[i]);
      if (estimate < 0) continue;
      result_.times[i].state = State::kEstimated;
      result_.times[i].ms = estimate;
      result_.times[i].open = false;
    }
    std::stable_sort(rest.begin(), rest.end(), [&](std::size_t a, std::size_t b) {
      const auto ms = [&](std::size_t i) { return result_.times[i].has_time() ? result_.times[i].ms : kUnknownMs; };
      return ms(a) < ms(b);
    });
    for (const std::size_t i : rest) {
      if (any_usable()) break;
      if (cancelled()) return cancelled_status();
      result_.times[i] = {};
      try_one(i, trials);
      if (broke_) return broke_status();
    }
    result_.partial = true;
    return {};
  }

  /// Whether the recorded choice stands now that the missing times are there.
  Status settle(const CacheChoice& choice) {
    TENON_RETURN_IF_ERROR(check_recorded(choice));
    const std::size_t recorded = *result_.recorded;
    const CandidateTime& own = result_.times[recorded];
    const bool has_own = own.state == State::kMeasured || own.state == State::kCached;
    const auto may_replace = [&](std::size_t i) {
      const CandidateTime& time = result_.times[i];
      return i != recorded && time.state == State::kMeasured && time.ms < own.ms * (1 - kTimingNoise);
    };
    result_.fixed = true;
    for (std::size_t i = 0; has_own && i < candidates_.size(); ++i) {
      if (may_replace(i)) result_.fixed = false;
    }
    for (std::size_t i = 0; !result_.fixed && i < candidates_.size(); ++i) {
      result_.times[i].open = i == recorded || may_replace(i);
    }
    return {};
  }

  void report_progress(int done, int wanted) const {
    if (!tuner_.options_.progress) return;
    TuneProgress progress;
    progress.layer = index_;
    progress.layers = count_;
    progress.tactic = done + 1;
    progress.tactics = wanted;
    progress.name = site_.layer;
    progress.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - tuner_.start_).count();
    if (tuner_.tactics_tried_ > 0 && tuner_.trying_seconds_ > 0) {
      // Layers to come are taken to need as many tactics as those so far.
      const double per_layer = static_cast<double>(tuner_.tactics_wanted_) / std::max(1, index_);
      const double left = wanted - done + per_layer * std::max(0, count_ - index_);
      progress.eta_s = left * tuner_.trying_seconds_ / tuner_.tactics_tried_;
    }
    tuner_.options_.progress(progress);
  }

  Result<TuneResult> finish() {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const State state = result_.times[i].state;
      if (state != State::kRejected && state != State::kQuarantined) continue;
      const Candidate& candidate = candidates_[i];
      const std::string text = fmt::format(
          "{}: {} {}{}: {}", site_.layer, candidate.kernel.kernel->name, to_text(candidate.hash),
          candidate.tactic.params.empty() ? "" : " (" + candidate.tactic.params + ")", result_.times[i].reason);
      std::vector<std::string>& all = tuner_.rejected_;
      if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
    }
    return std::move(result_);
  }

  Tuner& tuner_;
  const TuneSite& site_;
  const std::vector<Candidate>& candidates_;
  const int index_;
  const int count_;
  Activity activity_;
  std::optional<std::size_t> broke_;   ///< the candidate after which the device was broken
  bool anew_ = false;                  ///< the cache's measurements do not count
  std::vector<bool> measured_before_;  ///< per candidate: by any revision of its kernel
  TuneResult result_;
};

Tuner::Tuner(std::shared_ptr<Device> device, std::shared_ptr<TimingCache> cache, TunerOptions options, Logger& logger)
    : device_(std::move(device)),
      cache_(std::move(cache)),
      options_(std::move(options)),
      logger_(logger),
      journal_(options_.journal),
      start_(std::chrono::steady_clock::now()) {}

Result<TuneResult> Tuner::time_site(const TuneSite& site, int index, int count) {
  return SiteTuning(*this, site, index, count).run();
}

void Tuner::record_choice(const TuneSite& site, const TuneResult& result, std::size_t chosen) {
  const Candidate& candidate = site.enumeration.candidates[chosen];
  const CandidateTime& time = result.times[chosen];
  const bool measured_now = std::any_of(result.times.begin(), result.times.end(),
                                        [](const CandidateTime& t) { return t.state == State::kMeasured; });
  const bool log = measured_now && logger_.threshold() >= Severity::kVerbose;
  if (log) {
    for (const std::string& line : table_lines(site, result)) logger_.verbose(line);
    logger_.verbose(selection_line(candidate.hash, time.ms));
  }
  if (result.recorded == chosen) {
    std::optional<CacheChoice> same = cache_->choice(site.key);
    if (!same || same->partial == result.partial || site.restricted) return;
    same->partial = result.partial;
    return cache_->insert(*same);
  }
  if (time.state != State::kMeasured && time.state != State::kCached) return;
  CacheChoice choice;
  choice.key = site.key;
  choice.layer = site.layer;
  choice.op = site.site->desc().op_id;
  choice.device = device_->info().signature;
  choice.combo = candidate.combo_text;
  choice.kernel = candidate.kernel.kernel->name;
  choice.tactic = candidate.hash;
  choice.params = candidate.tactic.params;
  choice.ms = time.ms;
  choice.partial = result.partial || site.restricted;
  cache_->insert(choice);
  if (log) logger_.verbose(writing_line(candidate.hash));
}

std::optional<std::size_t> fastest_candidate(const TuneResult& result,
                                             const std::function<bool(std::size_t)>& eligible) {
  const auto takes_part = [&](std::size_t i) { return result.times[i].usable() && (!eligible || eligible(i)); };
  double best = kUnknownMs;
  for (std::size_t i = 0; i < result.times.size(); ++i) {
    if (takes_part(i)) best = std::min(best, result.times[i].ms);
  }
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < result.times.size(); ++i) {
    if (!takes_part(i) || result.times[i].ms > best * (1 + kTimingNoise)) continue;
    if (!found || result.times[i].launches < result.times[*found].launches) found = i;
  }
  return found;
}

}  // namespace tenon
