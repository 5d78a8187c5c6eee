// The tuner against a small linked plugin: what is measured, chosen, recorded and logged. tuner_trouble_test.cc has the
// rest.
#include <regex>
#include <thread>

#include "core/tuner/tuner_fixture.h"

namespace tenon {
namespace {

using State = CandidateTime::State;

TEST_F(TunerTest, TheFastestRightOneWinsAndTheWrongOneIsRejectedByName) {
  const TuneSite site = make_site();
  ASSERT_EQ(site.enumeration.candidates.size(), 3u);
  const TuneResult result = tune(site);
  EXPECT_EQ(counts_.hits, 0);
  EXPECT_EQ(counts_.misses, 1);
  EXPECT_EQ(counts_.measured, 2);
  const CandidateTime& wrong = result.times[index_of(site, "test.twice.wrong")];
  EXPECT_EQ(wrong.state, State::kRejected);
  EXPECT_NE(wrong.reason.find("element [0]"), std::string::npos) << wrong.reason;
  EXPECT_EQ(behaviours()["test.twice.wrong "].runs, 1) << "it is verified before it is measured";
  ASSERT_EQ(rejected_.size(), 1u);
  EXPECT_EQ(rejected_[0].find("double1: test.twice.wrong 0x"), 0u) << rejected_[0];
  EXPECT_GE(result.times[index_of(site, "test.twice.slow")].ms, 0.2);
  const auto choice = cache_->choice(site.key);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->kernel, "test.twice.fast");
  EXPECT_EQ(choice->params, "tile=8");
  EXPECT_EQ(choice->combo, "f32:row>f32:row");
  EXPECT_EQ(choice->op, kOp);
  EXPECT_EQ(choice->layer, "double1");
  EXPECT_EQ(choice->device, device_->info().signature);
  EXPECT_EQ(choice->tactic, tactic_hash("test.twice.fast", "tile=8"));
}

// A product in tf32 is off by about 2^-11 of its result, five times what f32 is allowed by default.
TEST_F(TunerTest, WhereTf32IsAllowedF32MayBeAsFarOffAsF16) {
  behaviours()["test.twice.wrong "].factor = 2.001f;
  const TuneSite exact = make_site();
  EXPECT_EQ(tune(exact).times[index_of(exact, "test.twice.wrong")].state, State::kRejected);
  const TuneSite tf32 = make_site("double1", TN_SITE_ALLOW_TF32);
  EXPECT_EQ(tune(tf32).times[index_of(tf32, "test.twice.wrong")].state, State::kMeasured);
  cache_->reset();
  behaviours()["test.twice.wrong "].factor = 2.1f;
  EXPECT_EQ(tune(tf32).times[index_of(tf32, "test.twice.wrong")].state, State::kRejected);
}

TEST_F(TunerTest, WhereBf16IsAllowedCandidatesInF32AreComparedAsF32) {
  behaviours()["test.twice.wrong "].factor = 2.001f;
  const TuneSite site = make_site("double1", TN_SITE_ALLOW_BF16);
  EXPECT_EQ(tune(site).times[index_of(site, "test.twice.wrong")].state, State::kRejected);
}

TEST_F(TunerTest, ASecondBuildMeasuresNothing) {
  const TuneSite site = make_site();
  tune(site);
  const std::string before = cache_->serialize();
  const int runs = total_runs();
  const TuneResult again = tune(site);
  EXPECT_EQ(counts_.hits, 1);
  EXPECT_EQ(counts_.misses, 0);
  EXPECT_EQ(counts_.measured, 0);
  EXPECT_EQ(total_runs(), runs);
  EXPECT_TRUE(again.fixed);
  EXPECT_EQ(again.recorded, index_of(site, "test.twice.fast"));
  EXPECT_EQ(again.times[index_of(site, "test.twice.wrong")].state, State::kRejected);
  EXPECT_EQ(rejected_.size(), 1u) << "rejected earlier";
  EXPECT_EQ(cache_->serialize(), before);
}

TEST_F(TunerTest, TheLogHasThePublishedForm) {
  behaviours()["test.twice.fast tile=8"].estimate = 0.02;
  const TuneSite site = make_site("matMul1");
  const TuneResult result = tune(site);
  const std::vector<std::string> lines = logger_.of(Severity::kVerbose);
  const auto at = std::find(lines.begin(), lines.end(), "Autotuning op matMul1(key: " + to_text(site.key) + "):");
  ASSERT_GE(lines.end() - at, 7);
  EXPECT_EQ(at[1], "Sorted table of all evaluated tactics:");
  EXPECT_EQ(at[2],
            "tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, "
            "tunable_parameter");
  const std::regex row(R"((\d+), (\d+\.\d{7}), (\d+\.\d{5}), (\d+\.\d{5}), (\S+), (0x[1-9a-f][0-9a-f]*), (.*))");
  std::smatch first;
  std::smatch second;
  ASSERT_TRUE(std::regex_match(at[3], first, row)) << at[3];
  ASSERT_TRUE(std::regex_match(at[4], second, row)) << at[4];
  EXPECT_EQ(first[1], std::to_string(index_of(site, "test.twice.fast")));
  EXPECT_EQ(first[3], "1.00000");
  EXPECT_NEAR(std::stod(first[4]), 0.02 / result.times[index_of(site, "test.twice.fast")].ms, 1e-5);
  EXPECT_EQ(first[5], "test.twice.fast");
  EXPECT_EQ(first[7], "tile=8");
  EXPECT_EQ(second[1], std::to_string(index_of(site, "test.twice.slow")));
  EXPECT_GT(std::stod(second[3]), 1.0);
  EXPECT_EQ(second[4], "1.00000");
  EXPECT_EQ(second[7], "");
  const std::regex selected(R"(The selected tactic is \(tactic hash, cost\(in ms\)\):(0x[0-9a-f]+), (\d+\.\d{6}))");
  std::smatch selection;
  ASSERT_TRUE(std::regex_match(at[5], selection, selected)) << at[5];
  EXPECT_EQ(selection[1], first[6]);
  EXPECT_EQ(at[6], "Writing the best tactic (" + first[6].str() + ") to cache");
}

TEST_F(TunerTest, ANewKernelIsTheOnlyThingMeasuredAndWinsIfFaster) {
  tune(make_site());
  behaviours()["test.twice.added "].spin_us = 0;
  ASSERT_TRUE(registry_->add_linked(&added_plugin).ok());
  const TuneSite site = make_site();
  const int slow_runs = behaviours()["test.twice.slow "].runs;
  const TuneResult result = tune(site);
  EXPECT_EQ(counts_.hits, 1);
  EXPECT_EQ(counts_.measured, 1);
  EXPECT_EQ(behaviours()["test.twice.slow "].runs, slow_runs);
  EXPECT_FALSE(result.fixed);
  EXPECT_FALSE(result.times[index_of(site, "test.twice.slow")].usable());
  EXPECT_EQ(cache_->choice(site.key)->kernel, "test.twice.added");
}

TEST_F(TunerTest, ANewKernelThatIsSlowerOrMeetsAPinDoesNotWin) {
  const TuneSite first = make_site();
  tune(first);
  behaviours()["test.twice.added "].spin_us = 500;
  ASSERT_TRUE(registry_->add_linked(&added_plugin).ok());
  EXPECT_TRUE(tune(make_site()).fixed);
  EXPECT_EQ(counts_.measured, 1);
  EXPECT_EQ(cache_->choice(first.key)->kernel, "test.twice.fast");

  cache_->reset();
  behaviours()["test.twice.added "].spin_us = 0;
  const TuneSite old = first;
  tune(old);
  ASSERT_TRUE(cache_->pin(old.key, true));
  EXPECT_TRUE(tune(make_site()).fixed);
  EXPECT_EQ(counts_.measured, 0);
  EXPECT_EQ(cache_->choice(first.key)->kernel, "test.twice.fast");
}

TEST_F(TunerTest, ANewKernelIsComparedWithTheMeasurementNotWithTheTimeOfTheChoice) {
  const TuneSite first = make_site();
  tune(first);
  CacheChoice choice = *cache_->choice(first.key);
  choice.ms = 9e9;
  cache_->insert(choice);
  behaviours()["test.twice.added "].spin_us = 300;
  ASSERT_TRUE(registry_->add_linked(&added_plugin).ok());
  EXPECT_TRUE(tune(make_site()).fixed);
  EXPECT_EQ(cache_->choice(first.key)->ms, 9e9);
}

TEST_F(TunerTest, AnEditedChoiceIsObeyedWhateverItsTime) {
  const TuneSite site = make_site();
  tune(site);
  const std::size_t slow = index_of(site, "test.twice.slow");
  for (const float ms : {9e9f, 0.0f}) {
    for (const bool frozen : {false, true}) {
      ASSERT_TRUE(cache_->update(site.key, {site.enumeration.candidates[slow].hash, ms}));
      TunerOptions options;
      options.frozen = frozen;
      const TuneResult result = tune(site, options);
      EXPECT_TRUE(result.fixed);
      EXPECT_EQ(result.recorded, slow);
      EXPECT_EQ(counts_.measured, 0);
      EXPECT_EQ(cache_->query(site.key).ms, ms);
      EXPECT_LT(result.times[slow].ms, 100) << "the measured time, not the written one";
    }
  }
}

TEST_F(TunerTest, AnInsertedChoiceIsVerifiedOnceAndNotMeasured) {
  const TuneSite site = make_site();
  CacheChoice choice;
  choice.key = site.key;
  choice.tactic = tactic_hash("test.twice.slow", "");
  cache_->insert(choice);
  TunerOptions options;
  options.frozen = true;
  const TuneResult result = tune(site, options);
  EXPECT_EQ(result.recorded, index_of(site, "test.twice.slow"));
  EXPECT_TRUE(result.fixed);
  EXPECT_EQ(counts_.measured, 0);
  EXPECT_EQ(total_runs(), 1);
  tune(site);
  EXPECT_EQ(counts_.measured, 0) << "nothing may replace what somebody put there by hand";
}

TEST_F(TunerTest, AWrittenTacticThatTheLayerCannotUseIsAnErrorWithTheValidOnes) {
  const TuneSite site = make_site();
  tune(site);
  ASSERT_TRUE(cache_->update(site.key, {0xabc, 1}));
  Tuner tuner = make_tuner();
  const auto unknown = tuner.time_site(site, 1, 1);
  ASSERT_FALSE(unknown.ok());
  const std::string& message = unknown.status().message();
  EXPECT_NE(message.find("layer double1 (key " + to_text(site.key) + ")"), std::string::npos) << message;
  EXPECT_NE(message.find("0xabc"), std::string::npos) << message;
  const std::string fast = to_text(tactic_hash("test.twice.fast", "tile=8"));
  EXPECT_NE(message.find("valid tactics: " + fast + " (test.twice.fast tile=8 f32:row>f32:row), "), std::string::npos)
      << message;
  EXPECT_EQ(message.find("test.twice.wrong"), std::string::npos) << message;

  ASSERT_TRUE(cache_->update(site.key, {tactic_hash("test.twice.wrong", ""), 1}));
  const auto wrong = tuner.time_site(site, 1, 1);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("was rejected"), std::string::npos) << wrong.status().message();

  cache_->reset();
  CacheChoice by_hand;
  by_hand.key = site.key;
  by_hand.tactic = tactic_hash("test.twice.wrong", "");
  cache_->insert(by_hand);
  const auto unverified = tuner.time_site(site, 1, 1);
  ASSERT_FALSE(unverified.ok());
  EXPECT_NE(unverified.status().message().find("was rejected"), std::string::npos) << unverified.status().message();
}

TEST_F(TunerTest, ATacticAboveTheWorkspaceLimitIsAnErrorThatSaysSo) {
  tune(make_site());
  behaviours()["test.twice.fast tile=8"].workspace = 1000;
  enumerate_options_.workspace_limit = 100;
  const TuneSite site = make_site();
  ASSERT_EQ(site.enumeration.candidates.size(), 2u);
  Tuner tuner = make_tuner();
  const auto result = tuner.time_site(site, 1, 1);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("workspace"), std::string::npos) << result.status().message();
}

TEST_F(TunerTest, AFrozenBuildWithoutAChoiceFailsNamingLayerAndKey) {
  const TuneSite site = make_site();
  TunerOptions options;
  options.frozen = true;
  for (const bool measured : {false, true}) {
    if (measured) {
      tune(site);
      ASSERT_TRUE(cache_->erase(site.key));
    }
    Tuner tuner = make_tuner(options);
    const auto result = tuner.time_site(site, 1, 1);
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.status().message().find("layer double1 (key " + to_text(site.key) + ")"), std::string::npos)
        << result.status().message();
  }
}

TEST_F(TunerTest, AnErasedChoiceIsMadeAgainFromTheMeasurements) {
  const TuneSite site = make_site();
  tune(site);
  const CacheChoice before = *cache_->choice(site.key);
  ASSERT_TRUE(cache_->erase(site.key));
  tune(site);
  EXPECT_EQ(counts_.misses, 1);
  EXPECT_EQ(counts_.measured, 0);
  EXPECT_EQ(cache_->choice(site.key)->tactic, before.tactic);
}

TEST_F(TunerTest, AChangedRevisionIsMeasuredAnew) {
  const TuneSite site = make_site();
  tune(site);
  slow_kernel.revision = 2;
  behaviours()["test.twice.slow "].spin_us = 0;
  behaviours()["test.twice.wrong "].factor = 2;  // the same revision: still rejected
  const TuneResult result = tune(site);
  EXPECT_EQ(counts_.measured, 1);
  EXPECT_EQ(cache_->choice(site.key)->kernel, "test.twice.slow");
  EXPECT_EQ(result.times[index_of(site, "test.twice.wrong")].state, State::kRejected);
  wrong_kernel.revision = 2;
  tune(site);
  EXPECT_EQ(counts_.measured, 1);
  const auto lines = cache_->measurements(site.key);
  EXPECT_TRUE(std::all_of(lines.begin(), lines.end(), [](const CacheMeasurement& line) {
    return line.kind == CacheMeasurement::Kind::kMeasured && line.build == "linked";
  }));
}

TEST_F(TunerTest, RetuneMeasuresAnewButLeavesPinnedChoices) {
  const TuneSite site = make_site();
  tune(site);
  behaviours()["test.twice.fast tile=8"].spin_us = 400;
  behaviours()["test.twice.wrong "].factor = 2;
  TunerOptions options;
  options.retune = true;
  ASSERT_TRUE(cache_->pin(site.key, true));
  EXPECT_TRUE(tune(site, options).fixed);
  EXPECT_EQ(counts_.measured, 0);
  ASSERT_TRUE(cache_->pin(site.key, false));
  tune(site, options);
  EXPECT_EQ(counts_.measured, 3);
  EXPECT_EQ(counts_.misses, 1);
  EXPECT_EQ(cache_->choice(site.key)->kernel, "test.twice.wrong");
}

TEST_F(TunerTest, AHopelesslySlowCandidateIsNotRepeated) {
  behaviours()["test.twice.slow "].spin_us = 60000;
  tune(make_site());
  EXPECT_EQ(behaviours()["test.twice.slow "].runs, 2) << "once to verify it, once to time it";
}

TEST_F(TunerTest, ProgressCountsLayersAndTacticsAndGuessesTheRest) {
  std::vector<TuneProgress> seen;
  TunerOptions options;
  options.progress = [&](const TuneProgress& progress) { seen.push_back(progress); };
  Tuner tuner = make_tuner(options);
  ASSERT_TRUE(tuner.time_site(make_site("a"), 1, 2).ok());
  ASSERT_TRUE(tuner.time_site(make_site("b"), 2, 2).ok());
  ASSERT_EQ(seen.size(), 6u);
  EXPECT_EQ(seen[0].layer, 1);
  EXPECT_EQ(seen[0].layers, 2);
  EXPECT_EQ(seen[0].tactic, 1);
  EXPECT_EQ(seen[0].tactics, 3);
  EXPECT_EQ(seen[0].name, "a");
  EXPECT_LT(seen[0].eta_s, 0);
  EXPECT_GT(seen[3].eta_s, 0);
  EXPECT_EQ(seen[5].tactic, 3);
  EXPECT_EQ(seen[5].name, "b");
  EXPECT_LE(seen[5].eta_s, seen[3].eta_s);
}

TEST_F(TunerTest, IdenticalSitesOfOneBuildCountOnce) {
  const TuneSite site = make_site();
  Tuner tuner = make_tuner();
  ASSERT_TRUE(tuner.time_site(site, 1, 1).ok());
  ASSERT_TRUE(tuner.time_site(site, 1, 1).ok());
  EXPECT_EQ(tuner.counts().misses, 1);
  EXPECT_EQ(tuner.counts().measured, 2);
}

TEST_F(TunerTest, BuildersInSeveralThreadsMeasureASharedSiteOnce) {
  const TuneSite site = make_site();
  std::array<TunerCounts, 3> counts;
  std::vector<std::thread> threads;
  for (TunerCounts& own : counts) {
    threads.emplace_back([&] {
      Tuner tuner(device_, cache_, {}, logger_);
      tune(&tuner, site);
      own = tuner.counts();
    });
  }
  for (std::thread& thread : threads) thread.join();
  int measured = 0;
  for (const TunerCounts& own : counts) measured += own.measured;
  EXPECT_EQ(measured, 2);
}

TEST(FastestCandidate, TiesWithinNoiseGoToTheFirst) {
  TuneResult result;
  result.times.resize(4);
  const double ms[] = {1.015, 1.0, 0.5, 1.1};
  for (std::size_t i = 0; i < 4; ++i) {
    result.times[i].ms = ms[i];
    result.times[i].state = State::kMeasured;
  }
  result.times[2].state = State::kRejected;
  EXPECT_EQ(fastest_candidate(result), 0u);
  result.times[0].launches = 2;
  EXPECT_EQ(fastest_candidate(result), 1u) << "of equals the one with fewer launches";
  EXPECT_EQ(fastest_candidate(result, [](std::size_t i) { return i != 0; }), 1u);
  EXPECT_EQ(fastest_candidate(result, [](std::size_t i) { return i == 2; }), std::nullopt);
}

}  // namespace
}  // namespace tenon
