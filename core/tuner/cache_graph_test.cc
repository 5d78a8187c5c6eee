// Graph lines of the timing cache: their form, damage, and what merging does with them.
#include "core/tuner/cache_line.h"
#include "core/tuner/cache_test_util.h"

namespace tenon {
namespace {

constexpr const char* kHeader = "- {tenon_timing_cache: 1}\n";
constexpr const char* kGraphLine =
    "- {graph: 0x1814870c44ff0f8574df6e3dda04f001, device: \"cpu:avx512:2:Test\", regions: [{rule: acme.join/1, layer: "
    "conv1+conv2, taken: true, ms: 2.5, rival_ms: 3}], layout: [{value: conv1, format: nchw16c}, {value: \"a value, "
    "\\\"named\\\" {oddly}\", format: vendor.x/1}], streams: [{layer: conv2, step: 3, stream: 1}, {layer: \"pool "
    "1\", stream: 2}], rerank: [{key: 0x1814870c44ff0f8574df6e3dda040001, layer: conv1+relu1, tactic: 0x665ded9abbf88, "
    "ms: 1.25, rival: 0x91c0, "
    "rival_ms: 1.5}]}\n";

std::shared_ptr<TimingCache> parsed(const std::string& text, Logger& logger = null_logger(), bool strict = true) {
  auto cache = TimingCache::parse(text, kTestDevice, logger, strict);
  EXPECT_TRUE(cache.ok()) << cache.status().message();
  return cache.ok() ? *cache : nullptr;
}

TEST(CacheGraphText, IsTheDocumentedFormAndReadsBackExactly) {
  TimingCache cache(kTestDevice);
  cache.record(test_graph(1));
  EXPECT_EQ(cache.serialize(), std::string(kHeader) + kGraphLine);
  RecordingLogger logger;
  const auto again = parsed(cache.serialize(), logger);
  EXPECT_TRUE(logger.of(Severity::kWarning).empty());
  EXPECT_EQ(again->serialize(), cache.serialize());
  const auto graph = again->graph(test_graph(1).key);
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(graph->device, kTestDevice);
  ASSERT_EQ(graph->regions.size(), 1u);
  EXPECT_EQ(graph->regions[0].rule, "acme.join/1");
  EXPECT_EQ(graph->regions[0].layer, "conv1+conv2");
  EXPECT_TRUE(graph->regions[0].taken);
  EXPECT_EQ(graph->regions[0].ms, 2.5);
  EXPECT_EQ(graph->regions[0].rival_ms, 3);
  ASSERT_EQ(graph->layout.size(), 2u);
  EXPECT_EQ(graph->layout[1].value, "a value, \"named\" {oddly}");
  EXPECT_EQ(graph->layout[1].format, "vendor.x/1");
  ASSERT_EQ(graph->streams.size(), 2u);
  EXPECT_EQ(graph->streams[0].layer, "conv2");
  EXPECT_EQ(graph->streams[0].step, 3);
  EXPECT_EQ(graph->streams[0].stream, 1);
  EXPECT_EQ(graph->streams[1].layer, "pool 1");
  EXPECT_EQ(graph->streams[1].step, -1);
  ASSERT_EQ(graph->rerank.size(), 1u);
  EXPECT_EQ(graph->rerank[0].key, test_key(1));
  EXPECT_EQ(graph->rerank[0].layer, "conv1+relu1");
  EXPECT_EQ(graph->rerank[0].tactic, 0x665ded9abbf88u);
  EXPECT_EQ(graph->rerank[0].ms, 1.25);
  EXPECT_EQ(graph->rerank[0].rival, 0x91c0u);
  EXPECT_EQ(graph->rerank[0].rival_ms, 1.5);
}

TEST(CacheGraphText, EveryTruncationIsDamageOfOneLine) {
  TimingCache cache(kTestDevice);
  cache.insert(test_choice(1));
  const std::string before = cache.serialize(), line = kGraphLine;
  for (std::size_t n = 1; n + 1 < line.size(); ++n) {
    const std::string torn = before + line.substr(0, n) + "\n";
    std::vector<std::string> damaged;
    const auto read = TimingCache::parse(torn, kTestDevice, null_logger(), false, &damaged);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(damaged.size(), 1u) << n;
    EXPECT_TRUE((*read)->graphs().empty()) << n;
    EXPECT_EQ((*read)->choices().size(), 1u) << n;
    EXPECT_FALSE(TimingCache::parse(torn, kTestDevice, null_logger(), true).ok()) << n;
  }
}

// What a list does not say is decided as if it had never been recorded, so not even a frozen build fails over them.
TEST(CacheGraphText, AListThatWasEditedWronglyCostsItselfOnly) {
  const std::string begin = std::string(kHeader) + "- {graph: 0x1814870c44ff0f8574df6e3dda04f001, device: d, ";
  const std::string good = "{value: a, format: nhwc}";
  const std::pair<std::string, std::size_t> cases[] = {{"layout: nhwc", 0},
                                                       {"layout: ~", 0},
                                                       {"layout: [1, {a: 2}]", 0},
                                                       {"layout: [[" + good + "]]", 0},
                                                       {"layout: [{value: [a], format: nhwc}]", 0},
                                                       {"layout: [" + good + ", {value: b}]", 1},
                                                       {"layout: [" + good + ", {value: b, format: }]", 1},
                                                       {"layout: [" + good + ", {value: b, formt: nhwc}]", 1},
                                                       {"layout: [" + good + "], rerank: [{key: 0x1}]", 1},
                                                       {"layout: [" + good + "], regions: [{rule: r, layer: l}]", 1},
                                                       {"layout: [" + good + "], streams: [0, 1]", 1},
                                                       {"layout: [" + good + "], streams: [{layer: a}]", 1},
                                                       {"layout: [" + good + "], streams: [{layer: a, stream: b}]", 1}};
  for (const auto& [fields, kept] : cases) {
    SCOPED_TRACE(fields);
    RecordingLogger logger;
    const auto cache = parsed(begin + fields + "}\n", logger);
    ASSERT_NE(cache, nullptr);
    EXPECT_FALSE(logger.of(Severity::kWarning).empty());
    ASSERT_EQ(cache->graphs().size(), 1u);
    EXPECT_EQ(cache->graphs()[0].layout.size(), kept);
    EXPECT_TRUE(cache->graphs()[0].streams.empty());
    EXPECT_TRUE(cache->graphs()[0].rerank.empty());
  }
}

TEST(CacheGraph, WithoutItsKeyItIsDamage) {
  for (const char* line : {"- {graph: 0x1}\n", "- {graph: ~, device: d}\n", "- {graph: [1], layout: []}\n"}) {
    std::vector<std::string> damaged;
    ASSERT_TRUE(TimingCache::parse(std::string(kHeader) + line, kTestDevice, null_logger(), false, &damaged).ok());
    EXPECT_EQ(damaged.size(), 1u) << line;
  }
}

TEST(CacheGraph, OneThatIsTooLongForALineIsLeftOut) {
  TimingCache cache(kTestDevice);
  CacheGraph graph = test_graph(1);
  graph.layout.assign(20000, {"a_value_with_a_name_of_about_fifty_characters_here", "nchw16c"});
  cache.record(graph);
  EXPECT_TRUE(cache.graphs().empty());
}

TEST(CacheGraph, CombineKeepsOwnOnesAndTakesForeignDevicesOnlyWithTheFlag) {
  TimingCache own(kTestDevice), other("cuda:sm90:NVIDIA H200");
  own.record(test_graph(1));
  CacheGraph theirs = test_graph(1);
  theirs.layout.clear();
  other.record(theirs);
  other.record(test_graph(2));
  EXPECT_TRUE(own.combine(other, false));
  EXPECT_EQ(own.graphs().size(), 2u);
  EXPECT_EQ(own.graph(theirs.key)->layout.size(), 2u);
  CacheGraph foreign = test_graph(3);
  foreign.device = other.device_signature();
  other.record(foreign);
  EXPECT_FALSE(own.combine(other, false));
  EXPECT_EQ(own.graphs().size(), 2u);
  EXPECT_TRUE(own.combine(other, true));
  EXPECT_EQ(own.graph(foreign.key)->device, "cuda:sm90:NVIDIA H200");
}

TEST(CacheGraph, SavingMergesAndErasedOnesStayAway) {
  TemporaryFolder folder;
  const auto path = folder / "f";
  {
    TimingCache cache(kTestDevice);
    for (std::uint64_t i = 1; i <= 3; ++i) cache.record(test_graph(i));
    ASSERT_TRUE(cache.save(path, null_logger()).ok());
  }
  const auto first = *TimingCache::load(path, kTestDevice, null_logger(), true);
  const auto second = *TimingCache::load(path, kTestDevice, null_logger(), true);
  EXPECT_TRUE(first->erase(test_graph(1).key));
  EXPECT_FALSE(first->erase(test_graph(1).key));
  CacheGraph edited = test_graph(2);
  edited.layout.clear();
  second->record(edited);
  second->record(test_graph(4));
  ASSERT_TRUE(second->save(path, null_logger()).ok());
  ASSERT_TRUE(first->save(path, null_logger()).ok());
  const auto after = *TimingCache::load(path, kTestDevice, null_logger(), true);
  ASSERT_EQ(after->graphs().size(), 3u);
  EXPECT_FALSE(after->graph(test_graph(1).key).has_value());
  EXPECT_TRUE(after->graph(edited.key)->layout.empty()) << "what this cache only loaded yields to an edit of the file";
  EXPECT_EQ(after->graph(test_graph(3).key)->layout.size(), 2u);
  EXPECT_TRUE(after->graph(test_graph(4).key).has_value());
}

}  // namespace
}  // namespace tenon
