#include "core/tuner/timing_cache.h"

#include <array>
#include <cmath>
#include <limits>
#include <thread>

#include "core/tuner/cache_test_util.h"

namespace tenon {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::shared_ptr<TimingCache> parsed(const std::string& text) {
  auto cache = TimingCache::parse(text, kTestDevice, null_logger(), true);
  EXPECT_TRUE(cache.ok()) << cache.status().message();
  return cache.ok() ? *cache : nullptr;
}

TEST(TimingCacheText, IsTheDocumentedForm) {
  TimingCache cache("");
  CacheChoice choice;
  choice.key = {0x1814870c44ff0f85ull, 0x74df6e3dda04cbd7ull};
  choice.layer = "matMul1";
  choice.op = "tenon.matmul/1";
  choice.combo = "f32:row,f32:row>f32:row";
  choice.kernel = "tenon.matmul.cublaslt.f32";
  choice.tactic = 0x665ded9abbf88;
  choice.params = "algo=21;tile=128x64";
  choice.ms = 0.011264;
  cache.insert(choice);
  CacheMeasurement measurement;
  measurement.key = choice.key;
  measurement.combo = choice.combo;
  measurement.kernel = "tenon.matmul.tiled.f32";
  measurement.revision = 3;
  measurement.tactic = 0x91c0;
  measurement.params = "tile=64";
  measurement.ms = 0.0142;
  measurement.launches = 2;
  cache.record(measurement);
  measurement.kind = CacheMeasurement::Kind::kRejected;
  measurement.tactic = 0x91c1;
  measurement.reason = "output 0 [1,2]: expected 1, found 2";
  cache.record(measurement);
  measurement.kind = CacheMeasurement::Kind::kQuarantined;
  measurement.tactic = 0x91c2;
  measurement.build = "0xabc";
  measurement.blob = {0x0f, 0xa0};
  measurement.workspace = 4096;
  measurement.reason = "process 7 on h died while trying it";
  cache.record(measurement);
  EXPECT_EQ(
      cache.serialize(),
      "- {tenon_timing_cache: 1}\n"
      "- {choice: 0x1814870c44ff0f8574df6e3dda04cbd7, layer: matMul1, op: tenon.matmul/1, combo: "
      "\"f32:row,f32:row>f32:row\", kernel: tenon.matmul.cublaslt.f32, tactic: 0x665ded9abbf88, params: "
      "\"algo=21;tile=128x64\", ms: 0.011264, pinned: false}\n"
      "- {measured: 0x1814870c44ff0f8574df6e3dda04cbd7, combo: \"f32:row,f32:row>f32:row\", kernel: "
      "tenon.matmul.tiled.f32, revision: 3, tactic: 0x91c0, params: \"tile=64\", ms: 0.0142, launches: 2}\n"
      "- {rejected: 0x1814870c44ff0f8574df6e3dda04cbd7, combo: \"f32:row,f32:row>f32:row\", kernel: "
      "tenon.matmul.tiled.f32, revision: 3, tactic: 0x91c1, params: \"tile=64\", reason: \"output 0 [1,2]: "
      "expected 1, found 2\"}\n"
      "- {quarantined: 0x1814870c44ff0f8574df6e3dda04cbd7, combo: \"f32:row,f32:row>f32:row\", kernel: "
      "tenon.matmul.tiled.f32, revision: 3, build: \"0xabc\", tactic: 0x91c2, params: \"tile=64\", blob: \"0fa0\", "
      "workspace: 4096, reason: \"process 7 on h died while trying it\"}\n");
}

TEST(TimingCacheText, ReadsBackExactly) {
  TimingCache cache(kTestDevice);
  for (std::uint64_t i = 0; i < 50; ++i) {
    cache.insert(test_choice(i));
    cache.record(test_measurement(i, i + 1));
  }
  // Names that YAML readers might take for something else, or that need escapes.
  std::uint64_t number = 100;
  for (const char* name : {"",
                           "true",
                           "Null",
                           "12",
                           "-",
                           "a: b",
                           "a #b",
                           "{}",
                           "[x",
                           "\"quoted\"",
                           "back\\slash",
                           "tab\t",
                           "line\nbreak",
                           "\x01\x7f",
                           "caf\xc3\xa9",
                           "\xe2\x80\xa8\xc2\x85",
                           "*alias",
                           "&anchor",
                           "!tag",
                           "~",
                           "#",
                           "conv1+bn1+relu1",
                           "0x12",
                           "1e5",
                           "- {choice: 0x1}"}) {
    CacheChoice choice = test_choice(number++);
    choice.layer = choice.kernel = choice.params = choice.combo = name;
    cache.insert(choice);
    cache.record(test_measurement(1, number));
  }
  for (const double ms : {0.1 + 0.2, 1e-9, 5e-324, 9e9, 0.0, 1.0 / 3, 1.7976931348623157e308}) {
    CacheChoice choice = test_choice(number++);
    choice.ms = ms;
    cache.insert(choice);
  }
  const std::string text = cache.serialize();
  const auto again = parsed(text);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->serialize(), text);
  for (const CacheChoice& choice : cache.choices()) {
    const auto read = again->choice(choice.key);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->layer, choice.layer);
    EXPECT_EQ(read->params, choice.params);
    EXPECT_EQ(read->kernel, choice.kernel);
    EXPECT_EQ(read->ms, choice.ms);
  }
}

TEST(TimingCacheText, KeepsTheTacticWholeAndWhatIsPartial) {
  TimingCache cache(kTestDevice);
  CacheMeasurement measurement = test_measurement(1, 2);
  for (int byte = 0; byte < 256; ++byte) measurement.blob.push_back(static_cast<std::uint8_t>(byte));
  measurement.workspace = std::uint64_t{1} << 40;
  cache.record(measurement);
  CacheChoice choice = test_choice(1);
  choice.partial = true;
  cache.insert(choice);
  const auto again = parsed(cache.serialize());
  EXPECT_EQ(again->measurements(measurement.key)[0].blob, measurement.blob);
  EXPECT_EQ(again->measurements(measurement.key)[0].workspace, measurement.workspace);
  EXPECT_TRUE(again->choice(choice.key)->partial);
  EXPECT_EQ(again->serialize(), cache.serialize());
}

TEST(TimingCacheText, WhatIsNoUtf8IsReplacedOnTheWayIn) {
  TimingCache cache("");
  CacheChoice choice = test_choice(1);
  choice.layer = "bad\xff name";
  cache.insert(choice);
  EXPECT_EQ(cache.choice(test_key(1))->layer, "bad\uFFFD name");
  EXPECT_EQ(parsed(cache.serialize())->choice(test_key(1))->layer, "bad\uFFFD name");
}

TEST(TimingCacheText, KeepsLinesOfUnknownKinds) {
  const std::string line = "- {profile: 0x77, device: \"cuda:sm90:NVIDIA H200\", regions: [1, {a: 2}], layout: []}";
  const auto cache = parsed("- {tenon_timing_cache: 1}\n" + line + "\n- {profile: 0x78, streams: [0]}\n");
  ASSERT_NE(cache, nullptr);
  EXPECT_EQ(cache->serialize(), "- {tenon_timing_cache: 1}\n" + line + "\n- {profile: 0x78, streams: [0]}\n");
}

TEST(TimingCacheText, TakesWhatPeopleWrite) {
  RecordingLogger logger;
  const auto cache = TimingCache::parse(
      "\xEF\xBB\xBF# my cache\r\n"
      "- {tenon_timing_cache: 1}\r\n"
      "\r\n"
      "   # forced by hand\n"
      "-   { choice : 0x1814870C44FF0F8574DF6E3DDA040001 ,tactic: '0x91c0', pined: true, ms: 9e9 }  # faster\n"
      "- {build: x, combo: c, kernel: k, measured: 0x1814870c44ff0f8574df6e3dda040001, ms: 1, tactic: 0x91c0}\n"
      "- {choice: 0x1814870c44ff0f8574df6e3dda040002, tactic: 0x1, pinned: True, ms: -1}",
      kTestDevice, logger, true);
  ASSERT_TRUE(cache.ok()) << cache.status().message();
  EXPECT_EQ((*cache)->choice(test_key(1))->tactic, 0x91c0u);
  EXPECT_EQ((*cache)->choice(test_key(1))->ms, 9e9);
  EXPECT_FALSE((*cache)->choice(test_key(1))->pinned);
  EXPECT_TRUE((*cache)->choice(test_key(2))->pinned);
  EXPECT_EQ((*cache)->measurements(test_key(1)).size(), 1u);
  const auto warnings = logger.of(Severity::kWarning);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("'pined' (did you mean 'pinned'?)"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("line 5"), std::string::npos) << warnings[0];
}

TEST(TimingCacheText, EmptyBytesAreAnEmptyCacheAndAnotherVersionIsRefused) {
  EXPECT_EQ(parsed("")->serialize(), "- {tenon_timing_cache: 1}\n");
  const auto newer = TimingCache::parse("- {tenon_timing_cache: 2}\n", "", null_logger());
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.status().code(), Code::kVersion);
  EXPECT_NE(newer.status().message().find("version 2, expected 1"), std::string::npos);
}

TEST(TimingCacheText, LaterLinesWin) {
  const std::string choice = "- {choice: 0x1814870c44ff0f8574df6e3dda040001, tactic: ";
  const auto cache = parsed("- {tenon_timing_cache: 1}\n" + choice + "0x1}\n" + choice + "0x2}\n");
  EXPECT_EQ(cache->query(test_key(1)).tactic, 2u);
}

TEST(TimingCache, QueryOfAnAbsentKeyIsInvalid) {
  TimingCache cache("");
  EXPECT_FALSE(cache.query(test_key(1)).valid());
  cache.insert(test_choice(1));
  const CacheValue value = cache.query(test_key(1));
  EXPECT_TRUE(value.valid());
  EXPECT_EQ(value.tactic, 0x665ded9abbf89u);
  EXPECT_EQ(value.ms, static_cast<float>(0.111264));
}

TEST(TimingCache, QueryKeysGivesTheFullCountAndCopiesAtMostCapacity) {
  TimingCache cache("");
  for (std::uint64_t i = 5; i > 0; --i) cache.insert(test_choice(i));
  EXPECT_EQ(cache.query_keys(nullptr, 0), 5u);
  std::array<Hash128, 6> keys{};
  EXPECT_EQ(cache.query_keys(keys.data(), 3), 5u);
  EXPECT_EQ(keys[2], test_key(3));
  EXPECT_EQ(keys[3], Hash128());
  EXPECT_EQ(cache.query_keys(keys.data(), 6), 5u);
  EXPECT_EQ(keys[4], test_key(5));
  EXPECT_EQ(keys[5], Hash128());
}

TEST(TimingCache, UpdateFollowsThePublishedRules) {
  TimingCache cache("");
  EXPECT_FALSE(cache.update(test_key(1), {1, 1.0f}));
  EXPECT_FALSE(cache.update(test_key(1), {1, kNan}));
  cache.insert(test_choice(1));
  EXPECT_FALSE(cache.update(test_key(1), {~0ull, 1.0f}));
  EXPECT_FALSE(cache.update(test_key(1), {5, -1.0f}));
  EXPECT_EQ(cache.query(test_key(1)).tactic, test_choice(1).tactic);
  EXPECT_TRUE(cache.update(test_key(1), {5, 0.011264f}));
  EXPECT_EQ(cache.query(test_key(1)).tactic, 5u);
  EXPECT_EQ(cache.query(test_key(1)).ms, 0.011264f);
  EXPECT_EQ(cache.choice(test_key(1))->ms, 0.011264);
  EXPECT_TRUE(cache.update(test_key(1), {~0ull, kNan}));
  EXPECT_FALSE(cache.query(test_key(1)).valid());
  EXPECT_EQ(cache.query_keys(nullptr, 0), 0u);
}

TEST(TimingCache, UpdateTakesNamesFromMeasurements) {
  TimingCache cache("");
  cache.insert(test_choice(1));
  CacheMeasurement measurement = test_measurement(1, 7);
  measurement.combo = "slow";
  measurement.ms = 2;
  cache.record(measurement);
  measurement.combo = "fast";
  measurement.ms = 1;
  cache.record(measurement);
  measurement.combo = "fastest, but wrong";
  measurement.kind = CacheMeasurement::Kind::kRejected;
  measurement.ms = 0;
  cache.record(measurement);
  EXPECT_TRUE(cache.update(test_key(1), {7, 3}));
  EXPECT_EQ(cache.choice(test_key(1))->combo, "fast");
  EXPECT_EQ(cache.choice(test_key(1))->kernel, "tenon.conv2d.tiled.f32");
  EXPECT_EQ(cache.choice(test_key(1))->params, "tile=7");
  EXPECT_EQ(cache.choice(test_key(1))->layer, test_choice(1).layer);
  // The same tactic: nothing but the time changes.
  EXPECT_TRUE(cache.update(test_key(1), {7, 4}));
  EXPECT_EQ(cache.choice(test_key(1))->combo, "fast");
  // A combo that the choice has already goes before a faster one.
  CacheChoice choice = test_choice(1);
  choice.combo = "slow";
  cache.insert(choice);
  EXPECT_TRUE(cache.update(test_key(1), {7, 3}));
  EXPECT_EQ(cache.choice(test_key(1))->combo, "slow");
  // One that nobody knows.
  EXPECT_TRUE(cache.update(test_key(1), {8, 3}));
  EXPECT_EQ(cache.choice(test_key(1))->combo, "");
  EXPECT_EQ(cache.choice(test_key(1))->kernel, "");
}

TEST(TimingCache, PinEraseAndReset) {
  TimingCache cache("");
  EXPECT_FALSE(cache.pin(test_key(1), true));
  EXPECT_FALSE(cache.erase(test_key(1)));
  cache.insert(test_choice(1));
  EXPECT_TRUE(cache.pin(test_key(1), true));
  EXPECT_TRUE(cache.choice(test_key(1))->pinned);
  EXPECT_TRUE(cache.update(test_key(1), {3, 1}));
  EXPECT_TRUE(cache.choice(test_key(1))->pinned);
  EXPECT_TRUE(cache.pin(test_key(1), false));
  EXPECT_FALSE(cache.choice(test_key(1))->pinned);
  cache.record(test_measurement(1, 1));
  EXPECT_TRUE(cache.erase(test_key(1)));
  EXPECT_FALSE(cache.choice(test_key(1)).has_value());
  EXPECT_EQ(cache.measurements(test_key(1)).size(), 1u);
  cache.reset();
  EXPECT_EQ(cache.serialize(), TimingCache("").serialize());
}

TEST(TimingCache, FindsTheChoicesOfALayerByPrefix) {
  TimingCache cache("");
  std::uint64_t number = 0;
  for (const char* name : {"conv1", "conv1+bn1+relu1", "conv1.body", "conv11", "conv", "xconv1"}) {
    CacheChoice choice = test_choice(number++);
    choice.layer = name;
    cache.insert(choice);
  }
  const auto found = cache.choices_of_layer("conv1");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].layer, "conv1");
  EXPECT_EQ(found[1].layer, "conv1+bn1+relu1");
  EXPECT_EQ(found[2].layer, "conv1.body");
}

TEST(TimingCache, RecordReplacesAnEqualCandidate) {
  TimingCache cache("");
  CacheMeasurement measurement = test_measurement(1, 1);
  cache.record(measurement);
  measurement.revision = 4;
  measurement.ms = 7;
  cache.record(measurement);
  ASSERT_EQ(cache.measurements(test_key(1)).size(), 1u);
  EXPECT_EQ(cache.measurements(test_key(1))[0].revision, 4u);
  measurement.combo = "another";
  cache.record(measurement);
  EXPECT_EQ(cache.measurements(test_key(1)).size(), 2u);
  EXPECT_EQ(cache.all_measurements().size(), 2u);
  EXPECT_TRUE(cache.measurements(test_key(2)).empty());
}

TEST(TimingCache, CombineKeepsOwnEntries) {
  TimingCache own(kTestDevice);
  TimingCache other(kTestDevice);
  own.insert(test_choice(1));
  CacheChoice theirs = test_choice(1);
  theirs.tactic = 99;
  other.insert(theirs);
  other.insert(test_choice(2));
  other.record(test_measurement(2, 1));
  EXPECT_TRUE(own.combine(other, false));
  EXPECT_EQ(own.query(test_key(1)).tactic, test_choice(1).tactic);
  EXPECT_EQ(own.query(test_key(2)).tactic, test_choice(2).tactic);
  EXPECT_EQ(own.measurements(test_key(2)).size(), 1u);
  EXPECT_TRUE(own.combine(own, false));
}

TEST(TimingCache, CombineTakesForeignDevicesOnlyWithTheFlag) {
  TimingCache own(kTestDevice);
  TimingCache other("cuda:sm90:NVIDIA H200");
  CacheChoice theirs = test_choice(1);
  theirs.device = other.device_signature();
  other.insert(theirs);
  CacheChoice by_hand = test_choice(2);
  by_hand.device.clear();
  other.insert(by_hand);
  EXPECT_EQ(other.foreign_entries(kTestDevice), 1u);
  EXPECT_FALSE(own.combine(other, false));
  EXPECT_EQ(own.query_keys(nullptr, 0), 0u);
  EXPECT_TRUE(own.combine(other, true));
  EXPECT_EQ(own.query_keys(nullptr, 0), 2u);
  EXPECT_EQ(own.choice(test_key(1))->device, "cuda:sm90:NVIDIA H200");
}

TEST(TimingCache, ManyThreadsMayUseOne) {
  TimingCache cache(kTestDevice);
  TimingCache other(kTestDevice);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 50; ++i) {
        cache.insert(test_choice(t * 1000 + i));
        cache.record(test_measurement(t * 1000 + i, i));
        cache.update(test_key(t * 1000 + i), {i, 1});
        cache.pin(test_key(i), true);
        static_cast<void>(cache.query(test_key(i)));
        static_cast<void>(cache.choices());
        if (i % 10 == 0) static_cast<void>(cache.serialize());
        if (i % 10 == 0) static_cast<void>(t % 2 == 0 ? cache.combine(other, true) : other.combine(cache, true));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.query_keys(nullptr, 0), 200u);
}

}  // namespace
}  // namespace tenon
