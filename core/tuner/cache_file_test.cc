// Damaged files, and merging with what is on disk.
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <thread>

#include "core/tuner/cache_line.h"
#include "core/tuner/cache_test_util.h"
#include "core/tuner/locked_file.h"

namespace tenon {
namespace {

constexpr std::size_t kEntries = 50;

/// A good cache of 50 entries; short ones, because some tests read it thousands of times.
std::string good_text() {
  std::string text = "- {tenon_timing_cache: 1}\n";
  for (std::uint64_t i = 0; i < kEntries; ++i) {
    const CacheChoice choice = test_choice(i);
    const char* quote = i % 2 == 0 ? "\"" : "'";
    text += "- {choice: " + to_text(choice.key) + ", tactic: " + to_text(choice.tactic) + ", params: " + quote +
            choice.params + quote + "}\n";
  }
  return text;
}

struct Outcome {
  std::size_t hits = 0;
  std::size_t damaged = 0;
};

/// Parses gently, where nothing may fail, and strictly, where the first damage must be the error, with line and byte.
Outcome outcome(const std::string& text) {
  RecordingLogger logger;
  std::vector<std::string> damaged;
  const auto cache = TimingCache::parse(text, kTestDevice, logger, false, &damaged);
  EXPECT_TRUE(cache.ok());
  if (!cache.ok()) return {};
  EXPECT_EQ(logger.of(Severity::kWarning).size(), damaged.size());
  for (const CacheChoice& choice : (*cache)->choices()) {
    std::uint64_t number = choice.key.low & 0xffff;
    EXPECT_EQ(choice.tactic, test_choice(number).tactic);
    EXPECT_EQ(choice.params, test_choice(number).params);
  }
  const auto strict = TimingCache::parse(text, kTestDevice, null_logger(), true);
  EXPECT_EQ(strict.ok(), damaged.empty()) << text;
  if (!strict.ok() && !damaged.empty()) {
    EXPECT_EQ(strict.status().code(), Code::kInvalid);
    EXPECT_EQ(strict.status().message().find(damaged[0]), 0u) << strict.status().message();
    EXPECT_NE(damaged[0].find(", line "), std::string::npos) << damaged[0];
    EXPECT_NE(damaged[0].find(" (byte "), std::string::npos) << damaged[0];
  }
  return {(*cache)->query_keys(nullptr, 0), damaged.size()};
}

TEST(DamagedCache, EveryTruncationKeepsTheEntriesBeforeIt) {
  const std::string good = good_text();
  std::size_t complete = 0;  // entries that end before N, with or without their newline
  for (std::size_t n = 0; n <= good.size(); ++n) {
    if (n > 0 && good[n - 1] == '}' && (n == good.size() || good[n] == '\n')) ++complete;
    const Outcome found = outcome(good.substr(0, n));
    const std::size_t hits = complete > 0 ? complete - 1 : 0;  // the header is no entry
    ASSERT_EQ(found.hits, hits) << n;
    const bool at_line_end = n == 0 || good[n - 1] == '\n' || (n < good.size() && good[n] == '\n');
    ASSERT_EQ(found.damaged, at_line_end ? 0u : 1u) << n;
  }
  EXPECT_EQ(complete, kEntries + 1);
}

TEST(DamagedCache, ASecondCopyWithoutNewlineLosesNothing) {
  std::string good = good_text();
  good.pop_back();
  const Outcome twice = outcome(good + good_text());
  EXPECT_EQ(twice.hits, kEntries);
  EXPECT_EQ(twice.damaged, 1u);
  // After a torn line the entries that were appended count.
  const Outcome torn = outcome(good.substr(0, good.size() - 20) + good_text());
  EXPECT_EQ(torn.hits, kEntries);
  EXPECT_EQ(torn.damaged, 1u);
}

TEST(DamagedCache, OneBadByteCostsOneLine) {
  const std::string good = good_text();
  for (std::size_t at = 0; at < good.size(); at += 31) {
    if (good[at] == '\n') continue;
    for (const char byte : {'\xff', '\0', '\x80'}) {
      std::string bad = good;
      bad[at] = byte;
      const Outcome found = outcome(bad);
      ASSERT_GE(found.hits, kEntries - 1) << at;
      ASSERT_EQ(found.damaged, 1u) << at;
    }
  }
  for (std::size_t at = good.find('\n'); at + 1 < good.size(); at = good.find('\n', at + 1)) {
    std::string bad = good;
    bad[at] = '\xff';
    const Outcome found = outcome(bad);  // two entries in one bad line: what is behind the byte is recovered
    ASSERT_GE(found.hits, kEntries - 1) << at;
    ASSERT_EQ(found.damaged, 1u) << at;
  }
}

TEST(DamagedCache, InvalidUtf8CostsOneLine) {
  const std::string good = good_text();
  // A lone continuation and lead bytes, an overlong slash, a surrogate, a sequence cut short, beyond U+10FFFF, 5 bytes.
  for (const char* bytes : {"\x80", "\xC3", "\xFE", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xE2\x82",
                            "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80"}) {
    for (std::size_t at = 1; at < good.size(); at += 97) {
      if (good[at - 1] == '\n' || good[at] == '\n') continue;
      std::string bad = good;
      bad.insert(at, bytes);
      const Outcome found = outcome(bad);
      ASSERT_GE(found.hits, kEntries - 1) << at;
      ASSERT_EQ(found.damaged, 1u) << at;
    }
  }
}

TEST(DamagedCache, JunkIsNeverACrash) {
  EXPECT_EQ(outcome("").damaged, 0u);
  EXPECT_EQ(outcome("\n\n# nothing\n").hits, 0u);
  EXPECT_EQ(outcome(std::string(4096, '\0')).damaged, 1u);
  EXPECT_EQ(outcome(std::string(4096, '\xff')).damaged, 1u);
  EXPECT_EQ(outcome(std::string(3u << 20, 'x')).damaged, 1u);
  EXPECT_EQ(outcome("\x89PNG\r\n\x1a\n\0\0\0\rIHDR").hits, 0u);
  EXPECT_EQ(outcome("{\"json\": [1, 2]}\n").damaged, 1u);
  EXPECT_EQ(outcome(good_text() + std::string(512, '\0')).hits, kEntries);
  const std::string bomb =
      "- {a: &a [x, x, x, x], b: &b [*a, *a, *a, *a], c: &c [*b, *b, *b, *b], d: [*c, *c, *c, *c]}\n";
  EXPECT_EQ(outcome(good_text() + bomb).damaged, 1u);
  EXPECT_EQ(outcome(good_text() + bomb).hits, kEntries);
}

TEST(DamagedCache, EntriesWithFieldsCutShortAreRefused) {
  const std::string header = "- {tenon_timing_cache: 1}\n";
  for (const char* line :
       {"- {choice: 0x1814870c44ff0f8574df6e3dda04cbd, tactic: 0x1}", "- {choice: 0x1814870c44ff0f8574df6e3dda04cbd7}",
        "- {choice: 0x1814870c44ff0f8574df6e3dda04cbd7, tactic: 0x}",
        "- {choice: 0x1814870c44ff0f8574df6e3dda04cbd7, tactic: 0xffffffffffffffff}",
        "- {choice: 0x1814870c44ff0f8574df6e3dda04cbd7, tactic: 0x1, ms: soon}",
        "- {measured: 0x1814870c44ff0f8574df6e3dda04cbd7, combo: c, kernel: k, tactic: 0x1}",
        "- {measured: 0x1814870c44ff0f8574df6e3dda04cbd7, combo: c, kernel: k, tactic: 0x1, ms: -1}",
        "- {measured: 0x1814870c44ff0f8574df6e3dda04cbd7, kernel: k, tactic: 0x1, ms: 1}",
        "- {measured: 0x1814870c44ff0f8574df6e3dda04cbd7, combo: c, kernel: k, tactic: 0x1, blob: \"0\", ms: 1}",
        "- {measured: 0x1814870c44ff0f8574df6e3dda04cbd7, combo: c, kernel: k, tactic: 0x1, workspace: -1, ms: 1}"}) {
    EXPECT_EQ(outcome(header + line + "\n").damaged, 1u) << line;
  }
  EXPECT_EQ(outcome("- {choice: 0x1814870c44ff0f8574df6e3dda040001, tactic: 0x665ded9abbf89, params: "
                    "\"tile=1;order=a{b}\"}")
                .damaged,
            1u)
      << "no header";
}

TEST(DamagedCache, FrozenErrorsNameLineAndOffset) {
  const auto cache =
      TimingCache::parse("- {tenon_timing_cache: 1}\n- {choice: 0x18\n", kTestDevice, null_logger(), true);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), Code::kInvalid);
  EXPECT_NE(cache.status().message().find("line 2 (byte 26)"), std::string::npos) << cache.status().message();
}

TEST(CacheFile, AMissingAndAnEmptyFileAreEmptyCaches) {
  TemporaryFolder folder;
  for (const bool strict : {false, true}) {
    const auto missing = TimingCache::load(folder / "none", kTestDevice, null_logger(), strict);
    ASSERT_TRUE(missing.ok());
    EXPECT_EQ((*missing)->query_keys(nullptr, 0), 0u);
    write_text(folder / "empty", "");
    EXPECT_TRUE(TimingCache::load(folder / "empty", kTestDevice, null_logger(), strict).ok());
  }
  const auto is_folder = TimingCache::load(folder / ".", kTestDevice, null_logger());
  EXPECT_FALSE(is_folder.ok());
  EXPECT_EQ(is_folder.status().code(), Code::kIo);
}

TEST(CacheFile, SavingRepairsADamagedFile) {
  TemporaryFolder folder;
  TimingCache original(kTestDevice);
  for (std::uint64_t i = 0; i < kEntries; ++i) original.insert(test_choice(i));
  const std::string good = original.serialize();
  for (std::size_t n = 997; n < good.size(); n += 997) {
    write_text(folder / "f", good.substr(0, n) + "\xff");
    const auto cache = TimingCache::load(folder / "f", kTestDevice, null_logger());
    ASSERT_TRUE(cache.ok());
    for (std::uint64_t i = 0; i < kEntries; ++i) (*cache)->insert(test_choice(i));
    ASSERT_TRUE((*cache)->save(folder / "f", null_logger()).ok());
    EXPECT_EQ(read_text(folder / "f"), good);
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
}

// `--timing-cache picture.png` once replaced the picture by a cache, after a thousand warnings.
TEST(CacheFile, AFileOfSomethingElseIsNeverReplaced) {
  TemporaryFolder folder;
  const auto path = folder / "f";
  const std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  for (const std::string& text : {png, std::string("# a pipeline\n\ntenon: 1\nlayers:\n  - {match: \"conv*\"}\n"),
                                  std::string("{\"json\": [1, 2]}"), std::string("\xEF\xBB\xBFtext")}) {
    write_text(path, text);
    RecordingLogger logger;
    const auto cache = TimingCache::load(path, kTestDevice, logger);
    ASSERT_FALSE(cache.ok()) << text;
    EXPECT_EQ(cache.status().code(), Code::kInvalid);
    EXPECT_NE(cache.status().message().find(path.string() + " is not a timing cache"), std::string::npos)
        << cache.status().message();
    TimingCache other(kTestDevice);
    other.insert(test_choice(1));
    EXPECT_EQ(other.save(path, logger).code(), Code::kInvalid);
    EXPECT_TRUE(logger.of(Severity::kWarning).empty());
    EXPECT_EQ(read_text(path), text);
    EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
  }
  for (const std::string& text :
       {std::string("-"), std::string("- {tenon"), std::string("# nothing\n"), "\xff" + good_text()}) {
    write_text(path, text);
    EXPECT_TRUE(TimingCache::load(path, kTestDevice, null_logger()).ok()) << text;
  }
}

TEST(CacheFile, ABadEntryIsOneWarning) {
  TemporaryFolder folder;
  const auto path = folder / "f";
  write_text(path, good_text() + "- {choice: 0x18");
  RecordingLogger logger;
  const auto cache = TimingCache::load(path, kTestDevice, logger);
  ASSERT_TRUE(cache.ok());
  ASSERT_TRUE((*cache)->save(path, logger).ok());
  const auto warnings = logger.of(Severity::kWarning);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].find(path.string() + ", line 52 (byte "), 0u) << warnings[0];
}

TEST(CacheFile, SaveMergesWithWhatOthersWrote) {
  TemporaryFolder folder;
  const auto path = folder / "f";
  TimingCache first(kTestDevice);
  TimingCache second(kTestDevice);
  first.insert(test_choice(1));
  second.insert(test_choice(2));
  CacheChoice rival = test_choice(1);
  rival.tactic = 5;
  second.insert(rival);
  ASSERT_TRUE(first.save(path, null_logger()).ok());
  ASSERT_TRUE(second.save(path, null_logger()).ok());
  const auto both = TimingCache::load(path, kTestDevice, null_logger(), true);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ((*both)->query(test_key(1)).tactic, 5u);
  EXPECT_EQ((*both)->query(test_key(2)).tactic, test_choice(2).tactic);
}

TEST(CacheFile, ErasedEntriesStayAwayAndEditsMadeMeanwhileAreKept) {
  TemporaryFolder folder;
  const auto path = folder / "f";
  {
    TimingCache cache(kTestDevice);
    for (std::uint64_t i = 1; i <= 3; ++i) cache.insert(test_choice(i));
    ASSERT_TRUE(cache.save(path, null_logger()).ok());
  }
  const auto builder = TimingCache::load(path, kTestDevice, null_logger(), true);
  const auto editor = TimingCache::load(path, kTestDevice, null_logger(), true);
  ASSERT_TRUE(builder.ok() && editor.ok());
  EXPECT_TRUE((*builder)->erase(test_key(1)));
  EXPECT_TRUE((*editor)->update(test_key(2), {77, 1}));
  EXPECT_TRUE((*editor)->pin(test_key(2), true));
  ASSERT_TRUE((*editor)->save(path, null_logger()).ok());
  (*builder)->insert(test_choice(4));
  ASSERT_TRUE((*builder)->save(path, null_logger()).ok());
  const auto after = TimingCache::load(path, kTestDevice, null_logger(), true);
  ASSERT_TRUE(after.ok());
  EXPECT_FALSE((*after)->choice(test_key(1)).has_value());
  EXPECT_EQ((*after)->choice(test_key(2))->tactic, 77u);
  EXPECT_TRUE((*after)->choice(test_key(2))->pinned);
  EXPECT_TRUE((*after)->choice(test_key(3)).has_value());
  EXPECT_TRUE((*after)->choice(test_key(4)).has_value());
  // The erasure is done: an entry that somebody makes anew is not taken away again.
  (*after)->insert(test_choice(1));
  ASSERT_TRUE((*after)->save(path, null_logger()).ok());
  ASSERT_TRUE((*builder)->save(path, null_logger()).ok());
  EXPECT_TRUE((*TimingCache::load(path, kTestDevice, null_logger()))->choice(test_key(1)).has_value());
}

TEST(CacheFile, ResetTakesAwayWhatWasThere) {
  TemporaryFolder folder;
  const auto path = folder / "f";
  write_text(path, good_text() + cache_line(test_graph(1)) + "\n- {profile: 0x1}\n");
  const auto cache = TimingCache::load(path, kTestDevice, null_logger(), true);
  ASSERT_TRUE(cache.ok());
  (*cache)->reset();
  ASSERT_TRUE((*cache)->save(path, null_logger()).ok());
  EXPECT_EQ(read_text(path), "- {tenon_timing_cache: 1}\n");
}

TEST(CacheFile, AQuarantineOnDiskIsKeptUnlessItWasKnownAndLifted) {
  TemporaryFolder folder;
  const auto path = folder / "f";
  TimingCache unaware(kTestDevice);
  unaware.record(test_measurement(1, 1));
  TimingCache crashed(kTestDevice);
  CacheMeasurement quarantined = test_measurement(1, 1);
  quarantined.kind = CacheMeasurement::Kind::kQuarantined;
  crashed.record(quarantined);
  ASSERT_TRUE(crashed.save(path, null_logger()).ok());
  ASSERT_TRUE(unaware.save(path, null_logger()).ok());
  const auto retune = TimingCache::load(path, kTestDevice, null_logger());
  ASSERT_EQ((*retune)->measurements(test_key(1))[0].kind, CacheMeasurement::Kind::kQuarantined);
  (*retune)->record(test_measurement(1, 1));
  ASSERT_TRUE((*retune)->save(path, null_logger()).ok());
  EXPECT_EQ((*TimingCache::load(path, kTestDevice, null_logger()))->measurements(test_key(1))[0].kind,
            CacheMeasurement::Kind::kMeasured);
}

TEST(CacheFile, SavingTwiceLeavesTheFileUntouched) {
  TemporaryFolder folder;
  const auto path = folder / "f";
  TimingCache cache(kTestDevice);
  cache.insert(test_choice(1));
  ASSERT_TRUE(cache.save(path, null_logger()).ok());
  struct stat before {};
  struct stat after {};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  ASSERT_TRUE(cache.save(path, null_logger()).ok());
  ASSERT_EQ(::stat(path.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST(CacheFile, RemovesLeftoversKeepsModeAndFollowsLinks) {
  TemporaryFolder folder;
  const auto path = folder / "f";
  write_text(path, "");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  write_text(folder / "f.tmp.12345.0", "half a file");
  write_text(folder / "f.lock", "process 12345 on nowhere");
  write_text(folder / "f.tmpl", "not ours");
  std::filesystem::create_symlink("f", folder / "link");
  TimingCache cache(kTestDevice);
  cache.insert(test_choice(1));
  ASSERT_TRUE(cache.save(folder / "link", null_logger()).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  auto names = folder.names();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"f", "f.tmpl", "link"}));
}

TEST(CacheFile, ErrorsNameThePath) {
  TemporaryFolder folder;
  TimingCache cache(kTestDevice);
  const Status no_folder = cache.save(folder / "none/f", null_logger());
  EXPECT_EQ(no_folder.code(), Code::kIo);
  EXPECT_NE(no_folder.message().find("none/f"), std::string::npos);
  write_text(folder / "newer", "- {tenon_timing_cache: 2}\n");
  EXPECT_EQ(cache.save(folder / "newer", null_logger()).code(), Code::kVersion);
  EXPECT_EQ(read_text(folder / "newer"), "- {tenon_timing_cache: 2}\n");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"newer"}) << "the lock file stayed";
}

// A build with a full cache in a read-only folder once failed at its end, although nothing was to be written.
TEST(CacheFile, WhatTheFileHoldsAlreadyNeedsNoWriting) {
  TemporaryFolder folder;
  const auto path = folder / "f";
  TimingCache cache(kTestDevice);
  cache.insert(test_choice(1));
  ASSERT_TRUE(cache.save(path, null_logger()).ok());
  std::filesystem::create_directory(folder / "f.lock");  // no lock can be had, not even by root
  const auto loaded = TimingCache::load(path, kTestDevice, null_logger());
  ASSERT_TRUE(loaded.ok());
  EXPECT_TRUE((*loaded)->save(path, null_logger()).ok());
  (*loaded)->insert(test_choice(2));
  const Status status = (*loaded)->save(path, null_logger());
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("f.lock"), std::string::npos) << status.message();
}

TEST(CacheFile, ThreadsThatSaveTheirOwnCachesLoseNothing) {
  TemporaryFolder folder;
  const auto path = folder / "f";
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 5; ++i) {
        auto cache = TimingCache::load(path, kTestDevice, null_logger(), true);
        ASSERT_TRUE(cache.ok()) << cache.status().message();
        (*cache)->insert(test_choice(t * 100 + i));
        ASSERT_TRUE((*cache)->save(path, null_logger()).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ((*TimingCache::load(path, kTestDevice, null_logger(), true))->query_keys(nullptr, 0), 20u);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
}

TEST(CacheFile, TenThousandLinesAreReadQuickly) {
  TimingCache cache(kTestDevice);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    cache.insert(test_choice(i));
    cache.record(test_measurement(i, i));
  }
  const std::string text = cache.serialize();
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(TimingCache::parse(text, kTestDevice, null_logger(), true).ok());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  RecordProperty("milliseconds", static_cast<int>(taken.count() * 1000));
  EXPECT_LT(taken.count(), 10) << "about 0.03 s is usual; sanitizers and a busy machine need more";
}

TEST(LockedFile, NamesTheHolderWhenPatienceEnds) {
  TemporaryFolder folder;
  const auto path = folder / "f.lock";
  auto holder = LockedFile::open(path, std::chrono::milliseconds(0));
  ASSERT_TRUE(holder.ok());
  holder->write_holder();
  const auto start = std::chrono::steady_clock::now();
  const auto second = LockedFile::open(path, std::chrono::milliseconds(50));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("held by process " + std::to_string(::getpid()) + " on "), std::string::npos)
      << second.status().message();
  holder->remove();
  EXPECT_TRUE(LockedFile::open(path, std::chrono::milliseconds(0)).ok()) << "a removed lock file is nobody's lock";
}

TEST(LockedFile, IsFreeOnceClosed) {
  TemporaryFolder folder;
  const auto path = folder / "f.lock";
  { ASSERT_TRUE(LockedFile::open(path, std::chrono::milliseconds(0)).ok()); }
  EXPECT_TRUE(LockedFile::open(path, std::chrono::milliseconds(0)).ok());
}

}  // namespace
}  // namespace tenon
