// Independent layers on several streams give what they give on one: inception blocks whose branches are told apart by
// the timing cache, and the same blocks with what the builder measures.
#include <gtest/gtest.h>

#include <random>

#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

using Values = std::vector<float>;

constexpr int kBlocks = 3;
constexpr std::int64_t kChannels = 64, kSize = 14;

class Streams : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(library_.discover().ok());
    const std::string reason = why_not(library_, test_device());
    if (!reason.empty()) GTEST_SKIP() << reason;
    TensorId x = network_.add_input("x", {1, kChannels, kSize, kSize}).value();
    for (int b = 0; b < kBlocks; ++b) x = block(x, "block" + std::to_string(b));
    ASSERT_TRUE(network_.rename(x, "y").ok());
    ASSERT_TRUE(network_.mark_output(x).ok());
    cache_ = TimingCache::create(library_, "", 0, test_device()).value();
  }

  TensorId conv(const std::string& name, TensorId x, std::int64_t from, std::int64_t to, std::int64_t kernel) {
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(from * kernel * kernel)));
    Values weights(static_cast<std::size_t>(to * from * kernel * kernel));
    for (float& weight : weights) weight = normal(random_);
    const TensorId w = network_.add_constant(name + ".w", {to, from, kernel, kernel}, weights).value();
    const std::string pad = std::to_string(kernel / 2);
    return layer("conv2d", name, {x, w}, R"({"pads": [)" + pad + ", " + pad + ", " + pad + ", " + pad + "]}");
  }
  TensorId layer(const std::string& op, const std::string& name, const std::vector<TensorId>& inputs,
                 const std::string& attrs) {
    return network_.add_layer("tenon." + op + "/1", name, inputs, attrs).value();
  }

  /// Figure 2b of "Going Deeper with Convolutions", with as many channels at the end as at the begin.
  TensorId block(TensorId x, const std::string& name) {
    const TensorId a = conv(name + ".a", x, kChannels, 16, 1);
    const TensorId b = conv(name + ".b2", conv(name + ".b1", x, kChannels, 24, 1), 24, 24, 3);
    const TensorId c = conv(name + ".c2", conv(name + ".c1", x, kChannels, 8, 1), 8, 12, 5);
    const TensorId pool = layer("max_pool", name + ".d1", {x}, R"({"kernel": [3, 3], "pads": [1, 1, 1, 1]})");
    const TensorId d = conv(name + ".d2", pool, kChannels, 12, 1);
    return layer("concat", name + ".concat", {a, b, c, d}, R"({"axis": 1})");
  }

  BuiltEngine build(const std::string& max_streams, bool frozen = false) {
    BuilderConfig config = BuilderConfig::create().value();
    EXPECT_TRUE(config.set("device", test_device()).ok());
    EXPECT_TRUE(config.set("editable_timing_cache", "1").ok());
    EXPECT_TRUE(config.set("max_streams", max_streams).ok());
    EXPECT_TRUE(config.set("frozen_cache", frozen ? "1" : "0").ok());
    EXPECT_TRUE(config.set_cache(*cache_).ok());
    return Builder(library_).build(network_, config).value();
  }

  /// Puts each branch of a block on a stream of its own, as a person may.
  void put_branches_on_streams(const json& report) {
    std::string list;
    for (const json& layer : report["layers"]) {
      const std::string name = layer["name"];
      const std::size_t dot = name.find('.');
      const int stream = dot == std::string::npos ? 0 : name[dot + 1] - 'a';
      if (name.rfind("block", 0) != 0 || name.find("reformat") != std::string::npos || stream < 1 || stream > 3)
        continue;
      if (name.find(".concat") != std::string::npos) continue;
      list += (list.empty() ? "" : ", ") + ("{layer: " + name) + ", stream: " + std::to_string(stream) + "}";
    }
    std::string text = cache_->serialize().value();
    // As long as nothing was decided about streams, the line of the graph that is built is the one without regions.
    const std::size_t line = text.find("regions: []");
    const std::size_t at = text.find("streams: [", line) + std::string("streams: [").size();
    ASSERT_NE(line, std::string::npos);
    text.replace(at, text.find("], rerank", at) - at, list);
    cache_ = TimingCache::create(library_, text, 0, test_device()).value();
  }

  ExecutionContext context(const BuiltEngine& built) {
    return ExecutionContext::create(Runtime(library_, test_device()).create(built.data(), built.size()).value())
        .value();
  }
  Values run(ExecutionContext& context, Values x) {
    Values y(static_cast<std::size_t>(kChannels * kSize * kSize), -99);
    EXPECT_TRUE(context.set_tensor("x", x.data()).ok());
    EXPECT_TRUE(context.set_tensor("y", y.data()).ok());
    const Status status = context.execute();
    EXPECT_TRUE(status.ok()) << status.message();
    return y;
  }
  /// Runs both over and over with other inputs each time, so that a race has its chance to show.
  void expect_equal_results(const BuiltEngine& one, const BuiltEngine& other, bool graph) {
    ExecutionContext expected = context(one), found = context(other);
    ASSERT_TRUE(found.use_graph(graph).ok());
    std::normal_distribution<float> normal;
    for (int i = 0; i < 30; ++i) {
      Values x(static_cast<std::size_t>(kChannels * kSize * kSize));
      for (float& value : x) value = normal(random_);
      ASSERT_LT(distance(run(expected, x), run(found, x)), 1e-6) << "run " << i;
    }
  }

  Library library_ = Library::create({}).value();
  Network network_ = Network::create(library_).value();
  std::optional<TimingCache> cache_;
  std::mt19937 random_{1};
};

TEST_F(Streams, BranchesOnFourStreamsGiveWhatOneStreamGives) {
  const BuiltEngine one = build("1");
  const json before = parse_json(one.report());
  EXPECT_EQ(before["streams"]["count"], 1);
  for (const json& layer : before["layers"]) EXPECT_EQ(layer["stream"], 0);
  put_branches_on_streams(before);
  const BuiltEngine four = build("4", true);
  const json report = parse_json(four.report());
  EXPECT_EQ(report["streams"]["count"], 4);
  // Of each block one event begins the branches and each of the three ends with one. Where the pictures are not in one
  // format, conversions come between.
  EXPECT_GE(report["streams"]["events"], 4 * kBlocks - 1);
  EXPECT_GE(report["memory"]["activation"], before["memory"]["activation"]);
  EXPECT_EQ(build("4", true).bytes(), four.bytes());
  EXPECT_EQ(build("1").bytes(), one.bytes()) << "the list does not count where one stream is asked for";
  for (const bool graph : {true, false}) expect_equal_results(one, four, graph);

  ExecutionContext profiled = context(four);
  Values x(static_cast<std::size_t>(kChannels * kSize * kSize)), y(x.size());
  ASSERT_TRUE(profiled.set_tensor("x", x.data()).ok());
  ASSERT_TRUE(profiled.set_tensor("y", y.data()).ok());
  EXPECT_EQ(parse_json(profiled.profile().value()).size(), report["layers"].size() + report["views"].size());
}

TEST_F(Streams, WhatIsMeasuredIsRepeatedFromTheCache) {
  const BuiltEngine chosen = build("0");
  const json streams = parse_json(chosen.report())["streams"];
  RecordProperty("streams", streams.dump());
  std::printf("streams: %s\n", streams.dump().c_str());
  if (test_device() == "cpu") {
    EXPECT_EQ(streams["count"], 1) << "a CPU has one stream unless more are asked for";
  } else if (streams["count"] != 1) {
    EXPECT_LT(streams["ms_several"], streams["ms_one"]);
  }
  EXPECT_EQ(build("0", true).bytes(), chosen.bytes());
  const BuiltEngine one = build("1", true);
  for (const bool graph : {true, false}) expect_equal_results(one, chosen, graph);
}

}  // namespace
}  // namespace tenon::e2e
