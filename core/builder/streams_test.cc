// The choice between one stream and several, with plans whose whole-graph times are made up here.
#include "core/builder/streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/plan/plan_file.h"
#include "core/runtime/engine.h"
#include "core/tuner/cache_test_util.h"

namespace tenon {

const TnPlugin* builder_test_plugin();  // testing/test_plugin.cc

namespace {

/// Branches that multiply x by a number each, and layers that multiply their results. The cache knows that each branch
/// takes 1 ms; the other layers are measured and take next to nothing.
class StreamsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    registry_ = Registry::create(null_logger());
    ASSERT_TRUE(registry_->add_linked(builder_test_plugin()).ok());
    options_.device = make_cpu_device({.threads = 1});
    options_.registry = registry_;
    options_.editable = true;
    options_.layer_rules = {{"*", "test.weigh.plain.f32", "", std::nullopt, std::nullopt}};
    options_.max_streams = 2;
    options_.cache = std::make_shared<TimingCache>(options_.device->info().signature);
    ASSERT_TRUE(build(network(), options_).ok());
    known_ = options_.cache;
    forget();
    options_.time_plan = [this](const Plan& plan) { return time_plan(plan); };
  }

  Graph network() {
    Graph graph(registry_);
    const ValueId x = *graph.add_input("x", TN_F32, make_dims({3}));
    EXPECT_TRUE(!varying_ || graph.set_profile(x, {make_dims({1}), make_dims({3})}).ok());
    ValueId product = kNoId;
    for (int b = 0; b < branches_; ++b) {
      const std::string name = prefix_ + std::to_string(b);
      const float values[] = {1.f + static_cast<float>(b), 2, 3};
      const auto weights = *HostTensor::create(TN_F32, make_dims({3}), values, sizeof values);
      const ValueId w = *graph.add_constant(name + ".w", weights);
      const ValueId y = graph.node(*graph.add_node("test.weigh/1", name, {}, {x, w}, 1)).outputs[0];
      const std::string join = "join" + std::to_string(b);
      product = b == 0 ? y : graph.node(*graph.add_node("test.weigh/1", join, {}, {product, y}, 1)).outputs[0];
    }
    EXPECT_TRUE(graph.add_output(product).ok());
    return graph;
  }

  /// A new cache that holds nothing but the times of the branches.
  void forget() {
    options_.cache = std::make_shared<TimingCache>(options_.device->info().signature);
    for (const CacheChoice& choice : known_->choices()) {
      if (choice.layer.rfind(prefix_, 0) != 0) continue;
      for (CacheMeasurement line : known_->measurements(choice.key)) {
        line.ms = 1;
        options_.cache->record(line);
      }
    }
  }
  void use_branches(int count) {
    branches_ = count;
    options_.cache = known_;
    const auto time = std::exchange(options_.time_plan, nullptr);
    ASSERT_TRUE(build(network(), options_).ok());
    options_.time_plan = time;
    forget();
  }

  Result<PlanTimer> time_plan(const Plan& plan) {
    ++plans_timed_;
    const int streams = 1 + std::max_element(plan.nodes.begin(), plan.nodes.end(), [](const auto& a, const auto& b) {
                              return a.stream < b.stream;
                            })->stream;
    if (streams == broken_) return Status(Code::kInternal, "it does not run");
    return PlanTimer([this, streams]() -> Result<double> {
      if (on_run_) on_run_();
      return whole_.at(streams);
    });
  }

  BuildOutput built() {
    auto output = build(network(), options_);
    EXPECT_TRUE(output.ok()) << output.status().message();
    return output.ok() ? std::move(*output) : BuildOutput();
  }
  std::string failure() {
    const auto output = build(network(), options_);
    EXPECT_EQ(output.status().code(), Code::kInvalid);
    return output.status().message();
  }
  static std::vector<int> streams_of(const BuildOutput& output) {
    std::vector<int> streams;
    for (const PlanNode& node : output.plan.nodes) streams.push_back(node.stream);
    return streams;
  }
  CacheGraph line() { return options_.cache->graphs().at(0); }
  void edit(std::vector<CacheGraph::Stream> streams) {
    CacheGraph edited = line();
    edited.streams = std::move(streams);
    options_.cache->record(edited);
  }
  std::vector<float> run(const Plan& plan, std::vector<float> x) {
    auto bytes = std::make_shared<std::vector<std::uint8_t>>(*write_plan(plan));
    auto engine = *Engine::load(bytes->data(), bytes->size(), bytes, {options_.device, registry_});
    auto context = *engine->create_context();
    std::vector<float> y(x.size());
    EXPECT_TRUE(context->set_tensor(engine->inputs()[0].name, x.data()).ok());
    EXPECT_TRUE(context->set_tensor(engine->outputs()[0].name, y.data()).ok());
    EXPECT_TRUE(context->execute().ok());
    return y;
  }

  std::shared_ptr<Registry> registry_;
  BuildOptions options_;
  std::shared_ptr<TimingCache> known_;
  std::map<int, double> whole_ = {{1, 3.0}, {2, 2.0}};
  int broken_ = 0;
  int branches_ = 2;
  bool varying_ = false;
  std::string prefix_ = "branch";
  std::function<void()> on_run_;
  int plans_timed_ = 0;
};

TEST_F(StreamsTest, WhatIsClearlyFasterIsTakenRecordedAndRepeated) {
  RecordingLogger logger;
  options_.logger = &logger;
  const BuildOutput output = built();
  EXPECT_EQ(plans_timed_, 2);
  EXPECT_EQ(streams_of(output), (std::vector<int>{0, 1, 0}));
  const auto report = report_json(output);
  EXPECT_EQ(report["streams"], (nlohmann::json{{"count", 2}, {"events", 2}, {"ms_one", 3.0}, {"ms_several", 2.0}}));
  EXPECT_EQ(report["layers"][1]["stream"], 1);
  const auto told = logger.of(Severity::kVerbose);
  EXPECT_TRUE(std::any_of(told.begin(), told.end(), [](const std::string& text) {
    return text.find("3.000000 ms on 1 and 2.000000 ms on 2 with 2 events") != std::string::npos;
  }));
  ASSERT_EQ(line().streams.size(), 1u);
  EXPECT_EQ(line().streams[0].layer, "branch1");
  EXPECT_EQ(line().streams[0].step, 1);
  EXPECT_EQ(line().streams[0].stream, 1);
  EXPECT_EQ(run(output.plan, {1, 2, -1}), (std::vector<float>{2, 16, 9}));

  const std::string text = options_.cache->serialize();
  options_.cache = *TimingCache::parse(text, options_.cache->device_signature(), null_logger(), true);
  for (const bool frozen : {false, true}) {
    options_.frozen = frozen;
    const BuildOutput again = built();
    EXPECT_EQ(*write_plan(again.plan), *write_plan(output.plan));
    EXPECT_EQ(report_json(again)["streams"]["count"], 2);
    EXPECT_TRUE(report_json(again)["streams"]["ms_one"].is_null()) << "nothing was measured";
  }
  EXPECT_EQ(plans_timed_, 2);
  EXPECT_EQ(options_.cache->serialize(), text);
}

TEST_F(StreamsTest, WithinNoiseThereIsOneStreamAndThePlanIsAsWithout) {
  whole_[2] = 2.95;
  const BuildOutput output = built();
  EXPECT_EQ(plans_timed_, 2);
  EXPECT_EQ(report_json(output)["streams"],
            (nlohmann::json{{"count", 1}, {"events", 0}, {"ms_one", 3.0}, {"ms_several", 2.95}}));
  EXPECT_TRUE(line().streams.empty());
  EXPECT_EQ(*write_plan(built().plan), *write_plan(output.plan)) << "and it is not tried again";
  EXPECT_EQ(plans_timed_, 2);
  options_.max_streams = 1;
  EXPECT_EQ(*write_plan(built().plan), *write_plan(output.plan));
}

TEST_F(StreamsTest, MoreStreamsMustBeFasterThanFewer) {
  use_branches(4);
  options_.max_streams = 4;
  whole_ = {{1, 4.0}, {2, 3.0}, {4, 2.0}};
  EXPECT_EQ(built().streams.count, 4);
  EXPECT_EQ(plans_timed_, 3);
  forget();
  whole_[4] = 2.99;
  const BuildOutput two = built();
  EXPECT_EQ(two.streams.count, 2);
  EXPECT_EQ(two.streams.ms_one, 4.0);
  EXPECT_EQ(two.streams.ms_several, 3.0);
  EXPECT_EQ(run(two.plan, {1, 1, 1}), (std::vector<float>{24, 16, 81}));
}

TEST_F(StreamsTest, NothingIsTimedWhereItCannotPayOrMayNotBe) {
  options_.max_streams = 1;
  EXPECT_EQ(built().streams.count, 1);
  forget();
  options_.max_streams = 0;
  EXPECT_EQ(built().streams.count, 1) << "a CPU has one stream unless more are asked for";
  forget();
  options_.max_streams = 2;
  options_.time_budget = std::chrono::duration<double>(1e-9);
  EXPECT_EQ(built().streams.count, 1);
  options_.time_budget = {};
  options_.cache = known_;
  EXPECT_EQ(built().streams.count, 1) << "nothing was measured";
  use_branches(1);
  options_.retune = true;
  EXPECT_EQ(built().streams.count, 1) << "one layer";
  EXPECT_EQ(plans_timed_, 0);
  options_.max_streams = 65;
  EXPECT_NE(failure().find("max_streams is 65, expected 1 to 64"), std::string::npos);
}

TEST_F(StreamsTest, AnEditedListIsObeyed) {
  const BuildOutput first = built();
  edit({{"branch0", -1, 1}});
  options_.frozen = true;
  const BuildOutput frozen = built();
  EXPECT_EQ(streams_of(frozen), (std::vector<int>{1, 0, 0}));
  options_.frozen = false;
  EXPECT_EQ(*write_plan(built().plan), *write_plan(frozen.plan));
  EXPECT_EQ(line().streams.at(0).step, 0) << "the line is written as builds write it";
  EXPECT_EQ(run(frozen.plan, {1, 2, -1}), (std::vector<float>{2, 16, 9}));
  edit({});
  EXPECT_EQ(streams_of(built()), (std::vector<int>{0, 0, 0}));
  EXPECT_TRUE(line().streams.empty());
  EXPECT_EQ(plans_timed_, 2);
}

TEST_F(StreamsTest, AListThatCannotBeObeyedIsRefused) {
  built();
  const std::string key = to_text(line().key);
  const std::vector<std::pair<std::vector<CacheGraph::Stream>, std::vector<std::string>>> cases = {
      {{{"brunch1", -1, 1}}, {"\"brunch1\"", "nearest: branch1", key}},
      {{{"gone", 3, 1}}, {"\"gone\"", "step 3 is none of 0 to 2"}},
      {{{"branch1", 1, 2}}, {"branch1 is on stream 2, expected 0 to 1", "--max-streams"}},
      {{{"branch1", 1, -1}}, {"branch1 is on stream -1"}},
      {{{"branch1", 1, 1}, {"branch1", 0, 1}}, {"two entries", "branch1"}}};
  for (const auto& [streams, words] : cases) {
    edit(streams);
    for (const bool frozen : {false, true}) {
      options_.frozen = frozen;
      const std::string message = failure();
      for (const std::string& word : words) EXPECT_NE(message.find(word), std::string::npos) << message;
    }
  }
  options_.max_streams = 1;
  EXPECT_EQ(built().streams.count, 1) << "switched off, the list does not count";
  EXPECT_EQ(line().streams.size(), 2u) << "and stays";
}

TEST_F(StreamsTest, InANetworkWithOtherNamesTheNumbersOfLayersTell) {
  options_.editable = false;
  options_.cache = std::make_shared<TimingCache>(options_.device->info().signature);
  whole_ = {{1, 3.0}, {2, 2.0}};
  built();
  edit({{"branch1", 1, 1}});
  prefix_ = "other";
  EXPECT_EQ(streams_of(built()), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(line().streams.at(0).layer, "branch1") << "names are those of the first network";
}

TEST_F(StreamsTest, RetuningDecidesAnew) {
  built();
  whole_[2] = 4;
  options_.retune = true;
  // The times of the branches are measured too now, so that it need not be tried.
  EXPECT_EQ(built().streams.count, 1);
  EXPECT_TRUE(line().streams.empty());
}

TEST_F(StreamsTest, APlanThatCannotBeRunFailsNoBuild) {
  for (const int broken : {1, 2}) {
    forget();
    broken_ = broken;
    const BuildOutput output = built();
    EXPECT_EQ(output.streams.count, 1);
    EXPECT_FALSE(output.streams.ms_one.has_value());
  }
}

TEST_F(StreamsTest, CancellingEndsIt) {
  std::atomic<bool> cancel = false;
  options_.cancel = &cancel;
  on_run_ = [&] { cancel = true; };
  EXPECT_EQ(build(network(), options_).status().code(), Code::kCancelled);
}

TEST_F(StreamsTest, WhereDimsVaryThereIsOneStream) {
  varying_ = true;
  options_.cache = std::make_shared<TimingCache>(options_.device->info().signature);
  EXPECT_EQ(built().streams.count, 1);
  EXPECT_EQ(plans_timed_, 0);
  edit({{"branch1", 1, 1}});
  EXPECT_NE(failure().find("dims of this network vary"), std::string::npos);
}

}  // namespace
}  // namespace tenon
