// Forms of a network that are decided between by measured time: what is reported, recorded, obeyed and forced.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/fusion/engines.h"
#include "tests/fusion/network_maker.h"
#include "tests/fusion/random_network.h"

namespace tenon::fusion {
namespace {

using nlohmann::json;

constexpr char kRule[] = "tenon.core.join_siblings/1";

class Rivals : public ::testing::Test {
 protected:
  Rivals() {
    must(library_.discover());
    const Value x = make_.input({1, 8, 6, 5});
    std::vector<Value> parts;
    for (const std::int64_t filters : {3, 4}) {
      const Value weights = make_.constant({filters, 8, 1, 1}, Random(7).numbers(filters * 8, -1, 1));
      parts.push_back(make_.op("max_pool", {make_.op("conv2d", {x, weights})}, {{"kernel", {2, 2}}}));
    }
    for (const Value& part : parts) make_.output(make_.op("softmax", {part}, {{"axis", 3}}));
  }

  Result<BuiltEngine> build(const std::map<std::string, std::string>& options) {
    BuilderConfig config = must(BuilderConfig::create());
    must(config.set("device", "cpu"));
    must(config.set("threads", "1"));
    must(config.set_cache(cache_));
    for (const auto& [key, value] : options) must(config.set(key, value));
    return Builder(library_).build(make_.network(), config);
  }
  json report(const std::map<std::string, std::string>& options = {}) {
    const Result<BuiltEngine> built = build(options);
    EXPECT_TRUE(built.ok()) << built.status().message();
    if (!built.ok()) return json::object();
    bytes_ = built->bytes();
    return json::parse(built->report());
  }
  static std::size_t convolutions(const json& report) {
    return static_cast<std::size_t>(std::count_if(report["layers"].begin(), report["layers"].end(),
                                                  [](const json& l) { return l["op"] == "tenon.conv2d/1"; }));
  }
  /// Lets the cache say the opposite.
  void edit(const std::string& from, const std::string& to) {
    std::string text = must(cache_.serialize());
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    text.replace(at, from.size(), to);
    cache_ = must(TimingCache::create(library_, text, 1, "cpu"));
  }

  Library library_ = must(Library::create({}));
  NetworkMaker make_{library_};
  TimingCache cache_ = must(TimingCache::create(library_, "", 1, "cpu"));
  std::string bytes_;
};

TEST_F(Rivals, TheDecisionIsReportedRecordedAndObeyed) {
  const json first = report();
  ASSERT_EQ(first["alternatives"].size(), 1u);
  const json decision = first["alternatives"][0];
  EXPECT_EQ(decision["rule"], kRule);
  EXPECT_GT(decision["ms"], 0);
  EXPECT_GT(decision["rival_ms"], 0);
  EXPECT_NE(decision["reason"].get<std::string>().find("launches without"), std::string::npos);
  const bool taken = decision["taken"];
  EXPECT_EQ(convolutions(first), taken ? 1u : 2u);
  const std::string bytes = bytes_;

  const json again = report();
  EXPECT_EQ(again["cache"]["measured"], 0);
  EXPECT_EQ(again["alternatives"][0]["taken"], taken);
  EXPECT_EQ(again["alternatives"][0]["reason"], "recorded");
  EXPECT_EQ(bytes_, bytes);
  EXPECT_EQ(report({{"frozen_cache", "1"}})["cache"]["measured"], 0);
  EXPECT_EQ(bytes_, bytes);

  const json regions = json::parse(must(cache_.describe()))["graphs"];
  const auto of_the_rule = [](const json& graph) { return !graph["regions"].empty(); };
  ASSERT_EQ(std::count_if(regions.begin(), regions.end(), of_the_rule), 1);
  EXPECT_EQ(std::find_if(regions.begin(), regions.end(), of_the_rule)->at("regions")[0]["rule"], kRule);

  // What the losing form needs is not recorded as a choice, so this is no frozen build.
  edit(taken ? "taken: true" : "taken: false", taken ? "taken: false" : "taken: true");
  EXPECT_EQ(convolutions(report()), taken ? 2u : 1u);
}

TEST_F(Rivals, RulesCanBeForcedAndDisabled) {
  const json forced = report({{"force_rule", kRule}});
  EXPECT_EQ(convolutions(forced), 1u);
  EXPECT_EQ(forced["alternatives"][0]["reason"], "forced");
  EXPECT_EQ(convolutions(report({{"disable_rule", kRule}})), 2u);
  EXPECT_EQ(convolutions(report({{"editable_timing_cache", "1"}, {"force_rule", kRule}})), 2u)
      << "an editable cache has a record for each convolution";
}

TEST_F(Rivals, FrozenBuildsDecideNothingAnew) {
  report({{"disable_rule", kRule}});
  const json frozen = report({{"frozen_cache", "1"}});
  EXPECT_EQ(convolutions(frozen), 2u);
  EXPECT_TRUE(frozen["alternatives"].empty());
}

TEST_F(Rivals, TheFewestLaunchesCanBeForced) {
  const json free_choice = report({{"disable_rule", kRule}});
  cache_ = must(TimingCache::create(library_, "", 1, "cpu"));
  const json fewest = report({{"disable_rule", kRule}, {"force_rule", kFewestLaunches}});
  // Of all that this network launches only conversions can be avoided.
  for (const json& layer : fewest["layers"]) EXPECT_NE(layer["op"], "tenon.reformat/1") << layer;
  EXPECT_LE(fewest["layers"].size(), free_choice["layers"].size());
  cache_ = must(TimingCache::create(library_, "", 1, "cpu"));
  EXPECT_EQ(convolutions(report({{"force_rule", kFewestLaunches}})), 1u) << "decides between rivals, too";
  if (fewest["alternatives"].empty()) return;  // they are the same
  EXPECT_EQ(fewest["alternatives"][0]["rule"], kFewestLaunches);
  EXPECT_EQ(fewest["alternatives"][0]["taken"], true);
}

TEST_F(Rivals, UnknownRulesAreErrors) {
  const Result<BuiltEngine> unknown = build({{"disable_rule", "tenon.core.join_sibling/1"}});
  EXPECT_EQ(unknown.status().code(), Code::kInvalid);
  EXPECT_NE(
      unknown.status().message().find("there is no rule tenon.core.join_sibling/1 (nearest: " + std::string(kRule)),
      std::string::npos)
      << unknown.status().message();
  const Result<BuiltEngine> both = build({{"disable_rule", kRule}, {"force_rule", kRule}});
  EXPECT_NE(both.status().message().find("both disabled and forced"), std::string::npos) << both.status().message();
}

}  // namespace
}  // namespace tenon::fusion
