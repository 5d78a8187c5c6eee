// Compiled code by key, in memory and in F.code: what comes back, what damage costs, what many writers leave.
#include "core/tuner/code_store.h"

#include <gtest/gtest.h>
#include <tenon/plugin/ext/code.h>

#include <thread>

#include "core/base/failure.h"
#include "core/tuner/cache_test_util.h"

namespace tenon {
namespace {

constexpr std::size_t kHeader = 16, kHead = 24;  // docs/file_formats.md

std::string found(const CodeStore& store, const std::string& key) {
  const auto code = store.find(key);
  return code != nullptr ? *code : "none";
}

class CodeFile : public ::testing::Test {
 protected:
  std::string write(const std::vector<std::pair<std::string, std::string>>& pieces) {
    CodeStore store;
    for (const auto& [key, code] : pieces) store.put(key, code);
    EXPECT_TRUE(store.save(path_, logger_).ok());
    return read_text(path_);
  }
  std::string warnings() {
    std::string all;
    for (const std::string& text : logger_.of(Severity::kWarning)) all += text + "\n";
    return all;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "f.code";
  RecordingLogger logger_;
};

const std::string kBinary("\0ELF\n\xff", 6);

TEST_F(CodeFile, KeepsKeysAndCodeAsTheyAre) {
  const std::string text = write({{"nvrtc 13.0 sm_90\nsource", kBinary}, {"", "x"}, {"empty", ""}});
  EXPECT_EQ(text.substr(0, kHeader), "TENON CODE 1   \n");
  EXPECT_EQ(text.size(), kHeader + 3 * kHead + 23 + 6 + 1 + 5);
  CodeStore store;
  store.load(path_, logger_);
  EXPECT_EQ(found(store, "nvrtc 13.0 sm_90\nsource"), kBinary);
  EXPECT_EQ(found(store, ""), "x");
  EXPECT_EQ(found(store, "empty"), "");
  EXPECT_EQ(found(store, "nvrtc 13.0 sm_90\nsourc"), "none");
  EXPECT_EQ(store.size().pieces, 3u);
  EXPECT_EQ(store.size().bytes, text.size() - kHeader);
  EXPECT_EQ(warnings(), "");
}

TEST_F(CodeFile, NothingNewIsNotWritten) {
  write({{"a", "1"}, {"b", "2"}});
  const auto before = std::filesystem::last_write_time(path_) - std::chrono::hours(1);
  std::filesystem::last_write_time(path_, before);
  CodeStore store, empty;
  store.load(path_, logger_);
  store.put("a", "1");
  EXPECT_TRUE(store.save(path_, logger_).ok());
  EXPECT_TRUE(empty.save(path_, logger_).ok());
  EXPECT_EQ(std::filesystem::last_write_time(path_), before);
  store.put("a", "other");
  EXPECT_TRUE(store.save(path_, logger_).ok());
  EXPECT_NE(std::filesystem::last_write_time(path_), before);
  EXPECT_TRUE(empty.save(folder_ / "no.code", logger_).ok());
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"f.code"});
}

TEST_F(CodeFile, SavingKeepsWhatOthersWrote) {
  CodeStore first, second;
  first.put("a", "1");
  second.put("b", "2");
  EXPECT_TRUE(first.save(path_, logger_).ok());
  EXPECT_TRUE(second.save(path_, logger_).ok());
  CodeStore both;
  both.load(path_, logger_);
  EXPECT_EQ(found(both, "a"), "1");
  EXPECT_EQ(found(both, "b"), "2");
}

TEST_F(CodeFile, AnyByteThatFlipsCostsWarningsButNeverGivesOtherCode) {
  const std::string good = write({{"a", "first"}, {"b", "second"}, {"c", "third"}});
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    write_text(path_, bad);
    RecordingLogger logger;
    CodeStore store;
    store.load(path_, logger);
    EXPECT_EQ(logger.of(Severity::kWarning).size(), 1u) << at;
    for (const auto& [key, code] : {std::pair{"a", "first"}, std::pair{"b", "second"}, std::pair{"c", "third"}}) {
      const std::string now = found(store, key);
      EXPECT_TRUE(now == code || now == "none") << at << ": " << now;
    }
    // Behind the sizes of the second piece: it alone is lost.
    const std::size_t second = kHeader + kHead + 6 + kHead;
    if (at >= second && at < second + 7) {
      EXPECT_EQ(store.size().pieces, 2u) << at;
    }
  }
}

TEST_F(CodeFile, AFileThatEndsEarlyLosesItsLastPiecesOnly) {
  const std::string good = write({{"a", "first"}, {"b", "second"}});
  const std::size_t first_end = kHeader + kHead + 6;
  for (std::size_t size = 0; size < good.size(); ++size) {
    write_text(path_, good.substr(0, size));
    RecordingLogger logger;
    CodeStore store;
    store.load(path_, logger);
    EXPECT_EQ(store.size().pieces, size >= first_end ? 1u : 0u) << size;
    const bool whole = size == 0 || size == kHeader || size == first_end;
    EXPECT_EQ(logger.of(Severity::kWarning).size(), whole ? 0u : 1u) << size;
    // It is whole again when the code has been compiled again.
    store.put("a", "first");
    store.put("b", "second");
    EXPECT_TRUE(store.save(path_, logger).ok());
    EXPECT_EQ(read_text(path_), good) << size;
    EXPECT_EQ(logger.of(Severity::kWarning).size(), whole ? 0u : 1u) << "said once";
  }
}

TEST_F(CodeFile, FilesOfOthersStay) {
  for (const char* other : {"- {tenon_timing_cache: 1}\n", "TENON CODE 2   \nwhat is to come", "x"}) {
    write_text(path_, other);
    CodeStore store;
    store.load(path_, logger_);
    store.put("a", "1");
    const Status saved = store.save(path_, logger_);
    EXPECT_FALSE(saved.ok());
    EXPECT_NE(saved.message().find("f.code"), std::string::npos) << saved.message();
    EXPECT_NE(saved.message().find("left as it is"), std::string::npos) << saved.message();
    EXPECT_EQ(read_text(path_), other);
  }
  EXPECT_NE(warnings().find("\"TENON CODE 2   \", expected \"TENON CODE 1   \""), std::string::npos) << warnings();
}

TEST_F(CodeFile, BeyondTheLimitTheOldestGo) {
  constexpr std::size_t kPiece = kHead + 1 + 75;  // 100 bytes
  CodeStore store(10 * kPiece);
  for (char key = 'a'; key <= 'l'; ++key) store.put(std::string(1, key), std::string(75, key));
  store.put("huge", std::string(3 * kPiece, '.'));
  EXPECT_EQ(store.size().pieces, 10u);
  EXPECT_EQ(store.size().bytes, 10 * kPiece);
  EXPECT_EQ(found(store, "huge"), "none") << "more than a quarter of the limit";
  EXPECT_EQ(found(store, "b"), "none");
  EXPECT_EQ(found(store, "c"), std::string(75, 'c'));
  ASSERT_TRUE(store.save(path_, logger_).ok());
  // Merged with a full file, new pieces stay and those that came first go.
  CodeStore other(10 * kPiece);
  other.put("z", std::string(75, 'z'));
  ASSERT_TRUE(other.save(path_, logger_).ok());
  EXPECT_EQ(std::filesystem::file_size(path_), kHeader + 10 * kPiece);
  EXPECT_EQ(found(other, "c"), "none");
  EXPECT_EQ(found(other, "d"), std::string(75, 'd'));
  EXPECT_EQ(found(other, "z"), std::string(75, 'z'));
}

TEST_F(CodeFile, TimingCachesBringTheirsAlong) {
  const auto cache_path = folder_ / "f", merged_path = folder_ / "m";
  TimingCache cache(kTestDevice), merged(kTestDevice);
  cache.insert(test_choice(1));
  cache.code().put("a", "1");
  ASSERT_TRUE(cache.save(cache_path, logger_).ok());
  auto loaded = *TimingCache::load(cache_path, kTestDevice, logger_, true);
  EXPECT_EQ(found(loaded->code(), "a"), "1");
  merged.code().put("a", "own");
  loaded->code().put("b", "2");
  EXPECT_TRUE(merged.combine(*loaded, false));
  loaded->reset();
  EXPECT_EQ(found(loaded->code(), "a"), "1") << "code is of no site";
  ASSERT_TRUE(merged.save(merged_path, logger_).ok());
  loaded = *TimingCache::load(merged_path, kTestDevice, logger_);
  EXPECT_EQ(found(loaded->code(), "a"), "own");
  EXPECT_EQ(found(loaded->code(), "b"), "2");
  EXPECT_EQ(warnings(), "");
  // What is wrong with it costs no cache.
  write_text(merged_path.string() + ".code", "mine");
  EXPECT_TRUE(TimingCache::load(merged_path, kTestDevice, logger_, true).ok());
  EXPECT_TRUE(merged.save(merged_path, logger_).ok());
  EXPECT_NE(warnings().find("compiled code is not kept"), std::string::npos);
  EXPECT_EQ(read_text(merged_path.string() + ".code"), "mine");
}

/// What plugins see.
class CodeInterface : public ::testing::Test {
 protected:
  TnStatus find(const char* key) {
    TnWriter writer = {TN_HEADER(TnWriter), this, [](TnWriter* self, const void* bytes, std::uint64_t size) {
                         auto& test = *static_cast<CodeInterface*>(self->context);
                         test.got_.assign(static_cast<const char*>(bytes), size);
                         return test.takes_ ? static_cast<std::int64_t>(size) : std::int64_t{-1};
                       }};
    return code_.find(nullptr, key, &writer);
  }
  TnStatus put(const char* key, const std::string& code) { return code_.put(nullptr, key, code.data(), code.size()); }

  const TnCode& code_ = *static_cast<const TnCode*>(code_interface());
  std::string got_;
  bool takes_ = true;
  CodeStore store_, inner_;
};

TEST_F(CodeInterface, ReachesTheStoreOfTheBuildOnThisThread) {
  EXPECT_EQ(put("a", "lost"), TN_OK);
  EXPECT_EQ(find("a"), TN_NOTFOUND);
  EXPECT_EQ(take_failure(TN_NOTFOUND, "find").message(), "find: no engine is being built on this thread");
  {
    const CodeScope scope(&store_);
    EXPECT_EQ(find("a"), TN_NOTFOUND);
    EXPECT_EQ(put("a", kBinary), TN_OK);
    EXPECT_EQ(find("a"), TN_OK);
    EXPECT_EQ(got_, kBinary);
    {
      const CodeScope nested(&inner_);
      EXPECT_EQ(find("a"), TN_NOTFOUND);
    }
    std::thread([&] { EXPECT_EQ(find("a"), TN_NOTFOUND); }).join();
    EXPECT_EQ(find("a"), TN_OK);
  }
  EXPECT_EQ(find("a"), TN_NOTFOUND);
  EXPECT_EQ(found(store_, "a"), kBinary);
}

TEST_F(CodeInterface, WrongCallsAreRefused) {
  const CodeScope scope(&store_);
  EXPECT_EQ(find(nullptr), TN_INVALID);
  EXPECT_EQ(code_.find(nullptr, "a", nullptr), TN_INVALID);
  EXPECT_EQ(code_.put(nullptr, "a", nullptr, 1), TN_INVALID);
  EXPECT_EQ(put("a", "1"), TN_OK);
  takes_ = false;
  EXPECT_EQ(find("a"), TN_IO);
  EXPECT_NE(take_failure(TN_IO, "find").message().find("1 bytes"), std::string::npos);
}

}  // namespace
}  // namespace tenon
