// Re-ranking and the graph line, with plans whose whole-graph times are made up here.
#include "core/builder/rerank.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/plan/plan_file.h"

namespace tenon {

const TnPlugin* builder_test_plugin();  // testing/test_plugin.cc

namespace {

constexpr const char* kPacked = "test.weigh.packed.f32";
constexpr const char* kPlain = "test.weigh.plain.f32";

/// Two layers. Of weigh1 the cache knows how long both kernels take alone; weigh2 has one kernel and is measured.
class RerankTest : public ::testing::Test {
 protected:
  void SetUp() override {
    registry_ = Registry::create(null_logger());
    ASSERT_TRUE(registry_->add_linked(builder_test_plugin()).ok());
    options_.device = make_cpu_device({.threads = 1});
    options_.registry = registry_;
    options_.editable = true;
    options_.layer_rules = {{"weigh2", kPlain, "", std::nullopt, std::nullopt}};
    options_.cache = std::make_shared<TimingCache>(options_.device->info().signature);
    ASSERT_TRUE(build(network(), options_).ok());
    known_ = options_.cache;
    options_.time_plan = [this](const Plan& plan) { return time_plan(plan); };
    alone(1.0, 1.05);
    whole_ = {{kPacked, {3.0}}, {kPlain, {2.5}}};
  }

  Graph network() {
    Graph graph(registry_);
    ValueId x = *graph.add_input("x", TN_F32, make_dims({3}));
    for (const char* name : {"weigh1", "weigh2"}) {
      const float values[] = {1, 2, 3};
      const auto weights = *HostTensor::create(TN_F32, make_dims({3}), values, sizeof values);
      const ValueId w = *graph.add_constant(std::string(name) + ".w", weights);
      x = graph.node(*graph.add_node("test.weigh/1", name, {}, {x, w}, 1)).outputs[0];
    }
    EXPECT_TRUE(graph.add_output(x).ok());
    return graph;
  }

  /// A new cache that holds nothing but isolated times of weigh1: packed is the better one alone.
  void alone(double packed_ms, double plain_ms) {
    options_.cache = std::make_shared<TimingCache>(options_.device->info().signature);
    const Hash128 key = known_->choices_of_layer("weigh1").at(0).key;
    for (CacheMeasurement line : known_->measurements(key)) {
      line.ms = line.kernel == kPacked ? packed_ms : plain_ms;
      tactics_[line.kernel] = line.tactic;
      options_.cache->record(line);
    }
  }

  /// What api/ makes of the runtime, here of the kernel that weigh1 runs: its times, over and over again.
  Result<PlanTimer> time_plan(const Plan& plan) {
    ++plans_timed_;
    const std::string kernel = plan.nodes.at(0).kernel;
    if (kernel == broken_) return Status(Code::kInternal, kernel + " does not run");
    auto next = std::make_shared<std::size_t>(0);
    return PlanTimer([this, kernel, next]() -> Result<double> {
      if (on_run_) on_run_();
      const std::vector<double>& times = whole_.at(kernel);
      return times[(*next)++ % times.size()];
    });
  }

  BuildOutput built() {
    auto output = build(network(), options_);
    EXPECT_TRUE(output.ok()) << output.status().message();
    return output.ok() ? std::move(*output) : BuildOutput();
  }
  CacheChoice choice() { return options_.cache->choices_of_layer("weigh1").at(0); }
  CacheGraph line() { return options_.cache->graphs().at(0); }

  std::shared_ptr<Registry> registry_;
  BuildOptions options_;
  std::shared_ptr<TimingCache> known_;
  std::map<std::string, std::uint64_t> tactics_;  ///< of weigh1, by kernel
  std::map<std::string, std::vector<double>> whole_;
  std::string broken_;
  std::function<void()> on_run_;
  int plans_timed_ = 0;
};

TEST_F(RerankTest, ARivalThatMakesTheWholeGraphFasterIsTakenAndRecorded) {
  std::vector<TuneProgress> progress;
  options_.progress = [&](const TuneProgress& p) { progress.push_back(p); };
  const BuildOutput output = built();
  EXPECT_EQ(plans_timed_, 2);
  EXPECT_EQ(output.plan.nodes.at(0).kernel, kPlain);
  EXPECT_EQ(output.plan.nodes.at(0).ms, 1.05) << "the time of the layer alone";
  EXPECT_EQ(output.counts.measured, 1) << "the one tactic of weigh2";
  EXPECT_EQ(choice().tactic, tactics_[kPlain]);
  EXPECT_EQ(choice().ms, 1.05);
  ASSERT_EQ(output.reranked.size(), 1u);
  const auto report = report_json(output)["reranked"][0];
  EXPECT_EQ(report["layer"], "weigh1");
  EXPECT_EQ(report["tactic_hash"], to_text(tactics_[kPlain]));
  EXPECT_EQ(report["ms"], 2.5);
  EXPECT_EQ(report["rival"], to_text(tactics_[kPacked]));
  EXPECT_EQ(report["rival_ms"], 3.0);
  const auto explained = *explain_json(output, "weigh1");
  for (const auto& candidate : explained["candidates"]) {
    if (candidate["kernel"] == kPlain) {
      EXPECT_EQ(candidate["status"], "chosen");
      EXPECT_EQ(candidate["reason"], "whole graph 2.500000 ms");
    }
  }
  ASSERT_FALSE(progress.empty());
  EXPECT_EQ(progress.back().name, "re-rank weigh1");
  EXPECT_EQ(progress.back().tactics, 1);

  ASSERT_EQ(options_.cache->graphs().size(), 1u);
  EXPECT_EQ(line().device, options_.device->info().signature);
  EXPECT_TRUE(line().layout.empty()) << "every value is row-major";
  ASSERT_EQ(line().rerank.size(), 1u);
  EXPECT_EQ(line().rerank[0].key, choice().key);
  EXPECT_EQ(line().rerank[0].tactic, tactics_[kPlain]);
  EXPECT_EQ(line().rerank[0].rival_ms, 3.0);

  const std::string text = options_.cache->serialize();
  for (const bool frozen : {false, true, true, true, true, true}) {
    options_.frozen = frozen;
    const BuildOutput again = built();
    EXPECT_EQ(again.counts.measured, 0);
    EXPECT_TRUE(again.reranked.empty());
    EXPECT_EQ(*write_plan(again.plan), *write_plan(output.plan));
  }
  EXPECT_EQ(plans_timed_, 2) << "a recorded choice is not ranked again";
  EXPECT_EQ(options_.cache->serialize(), text);
}

TEST_F(RerankTest, WithinNoiseOrByFewWinsTheChoiceStays) {
  const std::vector<double> won_by_luck = {2, 4, 2, 4, 2};  // median 2, but two of five rounds are lost
  for (const std::vector<double>& rival : {std::vector<double>{2.95}, {3.5}, won_by_luck}) {
    alone(1.0, 1.05);
    whole_[kPlain] = rival;
    plans_timed_ = 0;
    EXPECT_EQ(built().plan.nodes.at(0).kernel, kPacked);
    EXPECT_EQ(plans_timed_, 2);
    EXPECT_EQ(choice().tactic, tactics_[kPacked]);
    ASSERT_EQ(line().rerank.size(), 1u);
    EXPECT_EQ(line().rerank[0].tactic, tactics_[kPacked]);
    EXPECT_EQ(line().rerank[0].rival, tactics_[kPlain]);
  }
}

TEST_F(RerankTest, OnlyNearRivalsOfHotLayersAreCompared) {
  alone(1.0, 1.2);
  built();
  EXPECT_EQ(plans_timed_, 0) << "the rival is a fifth slower alone";
  alone(1e-9, 1e-9);
  built();
  EXPECT_EQ(plans_timed_, 0) << "all of weigh1 is noise beside weigh2";
  alone(1.0, 1.14);
  built();
  EXPECT_EQ(plans_timed_, 2);
}

TEST_F(RerankTest, NothingIsReRankedAgainstARecordWithoutMeasuringOrWithoutTime) {
  CacheChoice recorded = known_->choices_of_layer("weigh1").at(0);
  recorded.tactic = tactics_[kPacked];
  recorded.kernel = kPacked;
  for (const bool pinned : {false, true}) {
    alone(1.0, 1.05);
    recorded.pinned = pinned;
    options_.cache->insert(recorded);
    EXPECT_EQ(built().plan.nodes.at(0).kernel, kPacked);
  }
  alone(1.0, 1.05);
  for (const CacheMeasurement& line : known_->measurements(known_->choices_of_layer("weigh2").at(0).key)) {
    options_.cache->record(line);
  }
  EXPECT_EQ(built().counts.measured, 0);
  alone(1.0, 1.05);
  options_.time_budget = std::chrono::duration<double>(1e-9);
  built();
  EXPECT_EQ(plans_timed_, 0);
}

TEST_F(RerankTest, APlanThatCannotBeRunFailsNoBuild) {
  for (const char* kernel : {kPacked, kPlain}) {
    alone(1.0, 1.05);
    broken_ = kernel;
    const BuildOutput output = built();
    EXPECT_EQ(output.plan.nodes.at(0).kernel, kPacked);
    EXPECT_TRUE(output.reranked.empty());
    EXPECT_TRUE(line().rerank.empty());
  }
}

TEST_F(RerankTest, CancellingEndsItWithAValidCache) {
  std::atomic<bool> cancel = false;
  options_.cancel = &cancel;
  on_run_ = [&] { cancel = true; };
  EXPECT_EQ(build(network(), options_).status().code(), Code::kCancelled);
  EXPECT_EQ(choice().tactic, tactics_[kPacked]);
}

TEST_F(RerankTest, RetuningRanksNothingAgainstAPin) {
  built();
  options_.cache->pin(choice().key, true);
  options_.retune = true;
  const BuildOutput output = built();
  EXPECT_GT(output.counts.measured, 0);
  EXPECT_TRUE(output.reranked.empty());
  EXPECT_EQ(choice().tactic, tactics_[kPlain]);
  EXPECT_EQ(plans_timed_, 2);
}

TEST_F(RerankTest, AnEditedChoiceIsObeyedAndTheLineFollowsIt) {
  built();
  CacheChoice edited = choice();
  edited.tactic = tactics_[kPacked];
  options_.cache->insert(edited);
  const BuildOutput frozen = [&] {
    options_.frozen = true;
    return built();
  }();
  EXPECT_EQ(frozen.plan.nodes.at(0).kernel, kPacked);
  EXPECT_EQ(line().rerank.size(), 1u) << "a frozen build leaves the cache alone";
  options_.frozen = false;
  const BuildOutput output = built();
  EXPECT_EQ(output.plan.nodes.at(0).kernel, kPacked);
  EXPECT_EQ(*write_plan(output.plan), *write_plan(frozen.plan));
  EXPECT_TRUE(line().rerank.empty()) << "what it was ranked for is no longer the choice";
  EXPECT_EQ(plans_timed_, 2);
}

TEST_F(RerankTest, AGraphLineThatIsWrongDecidesNothing) {
  const BuildOutput first = built();
  const CacheGraph right = line();
  CacheGraph wrong = right;
  wrong.device = "cuda:sm90:Other";
  wrong.layout = {{"weigh1", "nchw16c"}, {"nothing", "vendor.x/1"}};
  wrong.rerank[0].tactic = tactics_[kPacked];
  wrong.rerank.push_back({{1, 2}, "gone", 3, 4, -1, -1});
  for (const bool frozen : {true, false}) {
    options_.frozen = frozen;
    options_.cache->record(wrong);
    EXPECT_EQ(*write_plan(built().plan), *write_plan(first.plan));
  }
  EXPECT_EQ(line().device, right.device);
  EXPECT_TRUE(line().layout.empty());
  EXPECT_TRUE(line().rerank.empty());
}

TEST_F(RerankTest, TheKeyOfAGraphIsItsSitesInEditableModeWithTheirNames) {
  built();
  const auto key_with = [&](const char* last, bool editable) {
    Graph graph = network();
    graph.node(graph.find_node("weigh2")).name = last;
    options_.layer_rules.clear();
    options_.editable = editable;
    options_.cache->reset();
    EXPECT_TRUE(build(graph, options_).ok());
    return line().key;
  };
  EXPECT_EQ(key_with("a", false), key_with("b", false));
  EXPECT_NE(key_with("a", true), key_with("b", true));
  EXPECT_EQ(key_with("a", true), key_with("a", true));
}

}  // namespace
}  // namespace tenon
