// The tuner in trouble: tactics that fail, crash or break the device, no memory, no time, and a cancelled build.
#include "core/tuner/tuner_fixture.h"

namespace tenon {
namespace {

using State = CandidateTime::State;

TEST_F(TunerTest, WithoutMemoryForATacticTheOthersAreMeasuredAndItIsTriedAnotherTime) {
  SmallAllocator allocator;
  device_ = make_cpu_device({.threads = 1, .allocator = &allocator});
  behaviours()["test.twice.fast tile=8"].workspace = 2 << 20;
  const TuneSite site = make_site();
  const TuneResult result = tune(site);
  const CandidateTime& fast = result.times[index_of(site, "test.twice.fast")];
  EXPECT_EQ(fast.state, State::kDeclined);
  EXPECT_NE(fast.reason.find("2097152 bytes"), std::string::npos) << fast.reason;
  EXPECT_EQ(cache_->choice(site.key)->kernel, "test.twice.slow");
  bool said = false;
  for (const std::string& line : logger_.of(Severity::kInfo)) {
    said |= line.find("test.twice.fast") != std::string::npos && line.find("is left out") != std::string::npos;
  }
  EXPECT_TRUE(said);
  device_ = make_cpu_device({.threads = 1});
  tune(site);
  EXPECT_EQ(counts_.measured, 1);
  EXPECT_EQ(cache_->choice(site.key)->kernel, "test.twice.fast");
}

TEST_F(TunerTest, ATacticThatBreaksTheDeviceEndsTheBuildAndIsQuarantined) {
  device_ = std::make_shared<FragileDevice>();
  Activity engine(*device_, "the engine of 3 layers"), idle(*device_, "the engine of 5 layers");
  engine.begin();
  behaviours()["test.twice.slow "].breaks_device = true;
  const TuneSite site = make_site();
  const auto broken = make_tuner().time_site(site, 1, 1);
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.status().code(), Code::kDevice);
  for (const char* part : {"double1", "test.twice.slow", "illegal memory access", "the engine of 3 layers"}) {
    EXPECT_NE(broken.status().message().find(part), std::string::npos) << part << ": " << broken.status().message();
  }
  EXPECT_EQ(broken.status().message().find("the engine of 5 layers"), std::string::npos);
  EXPECT_EQ(broken.status().message().find("the tuning of"), std::string::npos);
  EXPECT_EQ(behaviours()["test.twice.wrong "].runs, 0) << "nothing runs on a broken device";
  // In the next process.
  device_is_broken = false;
  const TuneResult result = tune(site);
  EXPECT_EQ(result.times[index_of(site, "test.twice.slow")].state, State::kQuarantined);
  EXPECT_EQ(cache_->choice(site.key)->kernel, "test.twice.fast");
  // It is not trusted at other sites either, until its revision or library changes.
  const TuneSite other = make_site("double2");
  const CandidateTime slow = tune(other).times[index_of(other, "test.twice.slow")];
  EXPECT_EQ(slow.state, State::kQuarantined);
  EXPECT_NE(slow.reason.find(to_text(site.key)), std::string::npos) << slow.reason;
  slow_kernel.revision = 2;
  behaviours()["test.twice.slow "].breaks_device = false;
  const TuneSite changed = make_site("double3");
  EXPECT_EQ(tune(changed).times[index_of(changed, "test.twice.slow")].state, State::kMeasured);
}

TEST_F(TunerTest, AQuarantinedTacticIsNotTriedUnlessRetuned) {
  const TuneSite site = make_site();
  CacheMeasurement line;
  line.key = site.key;
  line.kind = CacheMeasurement::Kind::kQuarantined;
  line.combo = "f32:row>f32:row";
  line.kernel = "test.twice.fast";
  line.revision = 1;
  line.build = "linked";
  line.tactic = tactic_hash("test.twice.fast", "tile=8");
  line.reason = "process 7 on h died while trying it";
  cache_->record(line);
  const TuneResult result = tune(site);
  EXPECT_EQ(result.times[index_of(site, "test.twice.fast")].state, State::kQuarantined);
  EXPECT_EQ(behaviours()["test.twice.fast tile=8"].runs, 0);
  EXPECT_EQ(cache_->choice(site.key)->kernel, "test.twice.slow");
  ASSERT_EQ(rejected_.size(), 2u);
  EXPECT_NE(rejected_[0].find("died while trying it"), std::string::npos);
  TunerOptions options;
  options.retune = true;
  tune(site, options);
  EXPECT_EQ(cache_->choice(site.key)->kernel, "test.twice.fast");
}

TEST_F(TunerTest, WhatCannotRunIsDeclinedAndTheRestGoesOn) {
  behaviours()["test.twice.fast tile=8"].configure = TN_DECLINED;
  behaviours()["test.twice.fast tile=16"].configure = TN_NOMEM;
  behaviours()["test.twice.fast tile=32"].run = TN_NOMEM;
  behaviours()["test.twice.fast tile=64"].run = TN_INTERNAL;
  const TuneSite site = make_site();
  const TuneResult result = tune(site);
  const auto state = [&](const char* params) { return result.times[index_of(site, "test.twice.fast", params)].state; };
  EXPECT_EQ(state("tile=8"), State::kDeclined);
  EXPECT_EQ(state("tile=16"), State::kDeclined);
  EXPECT_EQ(state("tile=32"), State::kDeclined);
  EXPECT_EQ(state("tile=64"), State::kRejected);
  EXPECT_NE(result.times[index_of(site, "test.twice.fast", "tile=8")].reason.find("not on a day like this"),
            std::string::npos);
  EXPECT_EQ(counts_.measured, 1);
  EXPECT_EQ(cache_->choice(site.key)->kernel, "test.twice.slow");
  tune(site);
  EXPECT_EQ(counts_.measured, 0);
}

TEST_F(TunerTest, NothingThatWorksGivesReasons) {
  for (auto& [key, behaviour] : behaviours()) behaviour.factor = 3;
  const TuneSite site = make_site();
  Tuner tuner = make_tuner();
  const auto result = tuner.time_site(site, 1, 1);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(fastest_candidate(*result).has_value());
  for (const CandidateTime& time : result->times) EXPECT_FALSE(time.reason.empty());
  EXPECT_EQ(tuner.rejected().size(), 3u);
}

TEST_F(TunerTest, ASpentBudgetFallsBackToEstimates) {
  behaviours()["test.twice.fast tile=8"].estimate = 0.5;
  behaviours()["test.twice.slow "].estimate = 0.1;
  TunerOptions options;
  options.time_budget = std::chrono::nanoseconds(1);
  const TuneSite site = make_site();
  const TuneResult result = tune(site, options);
  EXPECT_EQ(counts_.measured, 1);
  EXPECT_EQ(result.times[index_of(site, "test.twice.slow")].state, State::kMeasured) << "the best guess is verified";
  EXPECT_EQ(result.times[index_of(site, "test.twice.fast")].state, State::kEstimated);
  EXPECT_EQ(result.times[index_of(site, "test.twice.fast")].ms, 0.5);
  EXPECT_FALSE(result.times[index_of(site, "test.twice.fast")].usable()) << "nobody verified it";
  EXPECT_EQ(result.times[index_of(site, "test.twice.wrong")].state, State::kUnmeasured);
  EXPECT_EQ(cache_->choice(site.key)->kernel, "test.twice.slow");
  EXPECT_TRUE(cache_->choice(site.key)->partial);
  // With time the rest is measured, and the better one wins.
  tune(site);
  EXPECT_EQ(counts_.measured, 1);
  EXPECT_EQ(cache_->choice(site.key)->kernel, "test.twice.fast");
  EXPECT_FALSE(cache_->choice(site.key)->partial);
}

TEST_F(TunerTest, AChoiceIsNoLongerPartialOnceTheRestWasTried) {
  behaviours()["test.twice.fast tile=8"].estimate = 0.1;
  behaviours()["test.twice.slow "].estimate = 0.5;
  TunerOptions options;
  options.time_budget = std::chrono::nanoseconds(1);
  const TuneSite site = make_site();
  tune(site, options);
  EXPECT_EQ(cache_->choice(site.key)->kernel, "test.twice.fast");
  EXPECT_TRUE(cache_->choice(site.key)->partial);
  options = {};
  options.frozen = true;
  tune(site, options);
  EXPECT_TRUE(cache_->choice(site.key)->partial) << "a frozen build tries nothing";
  tune(site);
  EXPECT_EQ(cache_->choice(site.key)->kernel, "test.twice.fast");
  EXPECT_FALSE(cache_->choice(site.key)->partial);
}

TEST_F(TunerTest, ASpentBudgetStillFindsOneThatWorks) {
  behaviours()["test.twice.wrong "].estimate = 0.01;
  TunerOptions options;
  options.time_budget = std::chrono::nanoseconds(1);
  const TuneSite site = make_site();
  const TuneResult result = tune(site, options);
  EXPECT_EQ(result.times[index_of(site, "test.twice.wrong")].state, State::kRejected);
  EXPECT_EQ(result.times[index_of(site, "test.twice.fast")].state, State::kMeasured);
}

TEST_F(TunerTest, CancellingStopsBetweenTacticsAndLeavesAValidCache) {
  std::atomic<bool> cancel{false};
  TunerOptions options;
  options.cancel = &cancel;
  options.progress = [&](const TuneProgress& progress) { cancel = progress.tactic == 2; };
  const TuneSite site = make_site();
  Tuner tuner = make_tuner(options);
  const auto result = tuner.time_site(site, 1, 1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kCancelled);
  EXPECT_TRUE(TimingCache::parse(cache_->serialize(), "", null_logger(), true).ok());
  EXPECT_EQ(cache_->measurements(site.key).size(), 2u) << "what was done is not lost";
  cancel = true;
  EXPECT_EQ(tuner.time_site(make_site("other"), 1, 1).status().code(), Code::kCancelled);
}

TEST_F(TunerTest, TheJournalIsEmptyAfterwardsAndItsAbsenceIsNoFailure) {
  TemporaryFolder folder;
  TunerOptions options;
  options.journal = folder / "f.journal";
  tune(make_site(), options);
  EXPECT_TRUE(folder.names().empty());
  options.journal = folder / "none/f.journal";
  tune(make_site("other"), options);
  EXPECT_EQ(counts_.measured, 2);
  const auto warnings = logger_.of(Severity::kWarning);
  EXPECT_EQ(std::count_if(warnings.begin(), warnings.end(),
                          [](const std::string& text) { return text.find("crash journal") != std::string::npos; }),
            1);
}

}  // namespace
}  // namespace tenon
