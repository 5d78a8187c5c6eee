#include "core/tuner/trials.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/failure.h"

namespace tenon {
namespace {

// A round takes about 1 ms of runs, in slices of about 0.1 ms that are timed each: long against the clock's resolution
// (tens of ns), and so short that a busy machine, which takes the processor away every few ms, spoils few of them. The
// median of slices then is that of undisturbed ones.
constexpr double kRoundMs = 1.0;
constexpr double kSliceMs = 0.1;
// A candidate this many times slower than the fastest is not run again.
constexpr double kHopeless = 10;
// A first run shorter than this is repeated once: it may have lost the processor for a time slice.
constexpr double kSecondLookMs = 50;
// A slow candidate gets fewer rounds per stage, but at least one.
constexpr double kStageMs = 100;

constexpr auto kWarmUp = std::chrono::milliseconds(10);
constexpr int kWarmUpRepeats = 10;

struct Stage {
  double factor;  // of the fastest time
  int rounds;
};
constexpr int kFirstRounds = 3;
constexpr Stage kStages[] = {{1.5, 4}, {1.1, 8}};
// Nobody else takes a GPU away, so its times vary less.
constexpr int kDeviceShare = 2;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

Trials::Trials(std::shared_ptr<const Site> site, OpRef op, const std::vector<Candidate>& candidates,
               std::shared_ptr<Device> device, std::uint64_t seed)
    : site_(std::move(site)),
      op_(std::move(op)),
      candidates_(candidates),
      device_(std::move(device)),
      seed_(seed),
      trials_(candidates.size()) {}

Status Trials::prepare() {
  TENON_ASSIGN(const auto inputs, make_inputs(*site_, op_, seed_));
  TENON_ASSIGN(std::vector<ReferenceSample> samples, sample_reference(*site_, op_, inputs));
  TENON_ASSIGN(setting_, BenchSetting::create(site_, device_, inputs));
  samples_.resize(site_->desc().num_outputs);
  for (ReferenceSample& sample : samples) samples_[sample.output].push_back(std::move(sample));
  return {};
}

/// Without memory the candidates that wait for further rounds give up theirs.
Result<Bench*> Trials::bench_of(std::size_t candidate) {
  Trial& trial = trials_[candidate];
  if (trial.bench != nullptr) return trial.bench.get();
  auto bench = Bench::create(candidates_[candidate], setting_);
  if (!bench.ok() && bench.status().code() == Code::kNoMemory) {
    for (Trial& other : trials_) other.bench.reset();
    bench = Bench::create(candidates_[candidate], setting_);
  }
  if (!bench.ok()) return bench.status();
  trial.bench = std::move(bench).value();
  return trial.bench.get();
}

Status Trials::compare(std::size_t candidate, Bench* bench) {
  for (std::size_t output = 0; output < samples_.size(); ++output) {
    const std::int32_t dtype = candidates_[candidate].combo.outputs[output].dtype;
    TENON_ASSIGN(TnTolerance tolerance, tolerance_of(op_, site_->desc().attrs, dtype));
    if (dtype == TN_F32 && (site_->desc().flags & TN_SITE_ALLOW_TF32) != 0) {
      // tf32 has the ten bits of mantissa that f16 has.
      TENON_ASSIGN(const TnTolerance half, tolerance_of(op_, site_->desc().attrs, TN_F16));
      tolerance = {std::max(tolerance.absolute, half.absolute), std::max(tolerance.relative, half.relative)};
    }
    if (narrows_any(candidates_[candidate].combo, site_->desc())) {
      TENON_ASSIGN(tolerance, tolerance_of(op_, site_->desc().attrs, TN_BF16));
    }
    TENON_RETURN_IF_ERROR(bench->compare(samples_[output], tolerance));
  }
  return {};
}

Trials::Verdict Trials::verify(std::size_t candidate) {
  const auto verdict = [](Verdict::Kind kind, const Status& status) {
    return Verdict{status.code() == Code::kNoMemory ? Verdict::Kind::kDeclined : kind, status.message()};
  };
  const auto bench = bench_of(candidate);
  if (!bench.ok()) return verdict(Verdict::Kind::kDeclined, bench.status());
  Status status = (*bench)->poison();
  if (status.ok()) status = (*bench)->run();
  if (status.ok()) status = compare(candidate, *bench);
  if (status.ok()) return {};
  trials_[candidate].bench.reset();
  return verdict(Verdict::Kind::kRejected, status);
}

Status Trials::add_rounds(std::size_t candidate, int rounds) {
  TENON_ASSIGN(Bench * bench, bench_of(candidate));
  Trial& trial = trials_[candidate];
  for (int i = 0; i < rounds * trial.slices; ++i) {
    TENON_ASSIGN(const double slice, bench->ms_per_run(trial.repeats));
    trial.samples.push_back(slice);
  }
  return {};
}

/// A GPU that was idle raises its clocks only under load.
Status Trials::warm_up(Bench* bench) {
  if (warm_ || device_->info().on_host()) return {};
  warm_ = true;
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < kWarmUp) {
    TENON_RETURN_IF_ERROR(bench->ms_per_run(kWarmUpRepeats).status());
  }
  return {};
}

Result<double> Trials::first_round(std::size_t candidate, double best_ms) {
  TENON_ASSIGN(Bench * bench, bench_of(candidate));
  TENON_RETURN_IF_ERROR(warm_up(bench));
  TENON_ASSIGN(double once, bench->quick_ms());
  if (once < kSecondLookMs) {
    TENON_ASSIGN(const double again, bench->quick_ms());
    once = std::min(once, again);
  }
  Trial& trial = trials_[candidate];
  if (once > kHopeless * best_ms) {
    trial.samples = {once};
    trial.bench.reset();
    return once;
  }
  const auto whole = [](double value, double limit) { return static_cast<int>(std::clamp(value, 1.0, limit)); };
  trial.repeats = whole(std::ceil(kSliceMs / once), 100);
  trial.slices = whole(std::ceil(kRoundMs / (once * trial.repeats)), 10);
  TENON_RETURN_IF_ERROR(add_rounds(candidate, whole(kStageMs / once, kFirstRounds)));
  TENON_ASSIGN(trial.launches, bench->launches());
  release_above(std::min(best_ms, ms(candidate)) * kStages[0].factor);
  return ms(candidate);
}

void Trials::release_above(double limit_ms) {
  for (Trial& trial : trials_) {
    if (!trial.samples.empty() && median(trial.samples) > limit_ms) trial.bench.reset();
  }
}

std::map<std::size_t, std::string> Trials::refine(std::vector<std::size_t> candidates,
                                                  const std::vector<double>& others_ms,
                                                  const std::function<bool()>& stop) {
  std::map<std::size_t, std::string> failed;
  for (const Stage& stage : kStages) {
    double best = std::numeric_limits<double>::infinity();
    for (const double other : others_ms) best = std::min(best, other);
    for (const std::size_t candidate : candidates) best = std::min(best, ms(candidate));
    const double limit = best * stage.factor;
    std::erase_if(candidates, [&](std::size_t candidate) { return ms(candidate) > limit; });
    const auto near = [&](double other) { return other <= limit; };
    const auto rivals = std::count_if(others_ms.begin(), others_ms.end(), near);
    if (candidates.size() + static_cast<std::size_t>(rivals) < 2) break;
    release_above(limit);
    const int rounds = device_->info().on_host() ? stage.rounds : stage.rounds / kDeviceShare;
    for (int round = 0; round < rounds; ++round) {
      for (const std::size_t candidate : candidates) {
        if (stop()) return failed;
        if (failed.count(candidate) != 0) continue;
        if (round > 0 && ms(candidate) * (round + 1) > kStageMs) continue;
        const Status status = add_rounds(candidate, 1);
        // Memory may be short by now; what was measured so far holds.
        if (!status.ok() && status.code() != Code::kNoMemory) failed[candidate] = status.message();
        if (!status.ok() && device_->broken()) return {{candidate, status.message()}};
      }
    }
    std::erase_if(candidates, [&](std::size_t candidate) { return failed.count(candidate) != 0; });
  }
  return failed;
}

double Trials::ms(std::size_t candidate) const { return median(trials_[candidate].samples); }

double estimate_ms(const Site& site, const Candidate& candidate) {
  const TnKernel& kernel = *candidate.kernel.kernel;
  if (kernel.estimate == nullptr) return -1;
  std::vector<TnPort> storage;
  const TnCombo combo = candidate.combo.abi(&storage);
  const TnTactic tactic = candidate.tactic.abi();
  const TnSite& view = candidate.fused_epilogue ? site.abi() : site.abi_plain();
  const TnConfig config{TN_HEADER(TnConfig), kernel.revision, &view, &combo, &tactic};
  double ms = -1;
  clear_failure();
  const TnStatus code = kernel.estimate(candidate.kernel.host, &kernel, &config, &ms);
  clear_failure();
  return code == TN_OK && std::isfinite(ms) && ms >= 0 ? ms : -1;
}

}  // namespace tenon
