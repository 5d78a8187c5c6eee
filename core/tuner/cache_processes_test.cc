// Many processes on one cache file, some killed; and what crashed processes leave in the journal. The processes are
// cache_writer_program, started by exec.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>

#include "core/tuner/cache_test_util.h"
#include "core/tuner/code_store.h"
#include "core/tuner/crash_journal.h"

extern char** environ;

namespace tenon {
namespace {

/// A running cache_writer_program; killed with the object.
class Writer {
 public:
  explicit Writer(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CACHE_WRITER_PROGRAM);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int input[2];
    int output[2];
    EXPECT_EQ(::pipe2(input, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(output, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    EXPECT_EQ(::posix_spawn(&pid_, CACHE_WRITER_PROGRAM, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(input[0]);
    ::close(output[1]);
    input_ = input[1];
    output_ = output[0];
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() {
    kill();
    wait();
    close_input();
    ::close(output_);
  }
  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }
  void close_input() {
    if (input_ >= 0) ::close(input_);
    input_ = -1;
  }
  /// Exit status, or -1 if it was killed.
  int wait() {
    if (pid_ > 0) {
      int status = 0;
      ::waitpid(pid_, &status, 0);
      result_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      pid_ = -1;
    }
    return result_;
  }
  void wait_for_output() {
    char byte = 0;
    while (::read(output_, &byte, 1) == 1 && byte != '\n') {
    }
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  int result_ = -1;
};

/// 8 processes add entries of their own to one file, a ninth that does the same is killed at a random moment.
void run_rounds(int rounds) {
  constexpr std::uint64_t kWriters = 8;
  constexpr std::uint64_t kEntries = 3;
  TemporaryFolder folder;
  const auto path = folder / "f";
  std::mt19937 random(7);
  std::vector<std::uint64_t> expected;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::unique_ptr<Writer>> writers;
    const std::uint64_t base = static_cast<std::uint64_t>(round) * 1000;
    for (std::uint64_t w = 0; w < kWriters; ++w) {
      writers.push_back(std::make_unique<Writer>(std::vector<std::string>{
          "write", path.string(), std::to_string(base + w * kEntries), std::to_string(kEntries), "1"}));
    }
    Writer victim({"write", path.string(), std::to_string(base + 500), "400", "0"});
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
    victim.kill();
    EXPECT_EQ(victim.wait(), -1);
    for (std::uint64_t w = 0; w < kWriters; ++w) {
      ASSERT_EQ(writers[w]->wait(), 0) << "round " << round << ", writer " << w;
      for (std::uint64_t i = 0; i < kEntries; ++i) expected.push_back(base + w * kEntries + i);
    }
    auto cache = TimingCache::load(path, kTestDevice, null_logger(), true);
    ASSERT_TRUE(cache.ok()) << cache.status().message();
    for (const std::uint64_t number : expected) {
      ASSERT_TRUE((*cache)->choice(test_key(number)).has_value()) << "round " << round << ", entry " << number;
      ASSERT_EQ((*cache)->measurements(test_key(number)).size(), 1u);
      ASSERT_TRUE((*cache)->graph(test_graph(number).key).has_value());
      const auto code = (*cache)->code().find("source " + std::to_string(number));
      ASSERT_TRUE(code != nullptr && *code == "code " + std::to_string(number)) << "entry " << number;
    }
    // What the killed one left does not block, and is gone after the next save.
    const auto start = std::chrono::steady_clock::now();
    (*cache)->insert(test_choice(base + 999));
    ASSERT_TRUE((*cache)->save(path, null_logger()).ok());
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
    std::vector<std::string> names = folder.names();
    std::sort(names.begin(), names.end());
    ASSERT_EQ(names, (std::vector<std::string>{"f", "f.code"}));
  }
}

TEST(CacheProcesses, ManyWritersOneKilled) { run_rounds(8); }

TEST(LongCacheProcesses, ManyWritersOneKilledFiftyTimes) { run_rounds(50); }

TEST(CrashJournalTest, ACrashedTacticIsQuarantinedByName) {
  TemporaryFolder folder;
  const auto path = folder / "f";
  EXPECT_EQ(Writer({"crash", path.string(), "5", "9"}).wait(), -1);
  RecordingLogger logger;
  const auto cache = TimingCache::load(path, kTestDevice, logger);
  ASSERT_TRUE(cache.ok());
  const auto found = (*cache)->measurements(test_key(5));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, CacheMeasurement::Kind::kQuarantined);
  EXPECT_EQ(found[0].tactic, 9u);
  EXPECT_EQ(found[0].revision, 3u);
  EXPECT_EQ(found[0].kernel, "tenon.conv2d.tiled.f32");
  const auto warnings = logger.of(Severity::kWarning);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("0x9 (tenon.conv2d.tiled.f32 tile=9"), std::string::npos) << warnings[0];
  // It is in the file by now, and not in the journal any more.
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
  const auto again = TimingCache::load(path, kTestDevice, null_logger(), true);
  EXPECT_EQ((*again)->measurements(test_key(5)).size(), 1u);
}

TEST(CrashJournalTest, ALivingProcessIsNoCrash) {
  TemporaryFolder folder;
  const auto path = folder / "f";
  const auto journal_path = folder / "f.journal";
  Writer living({"try", path.string(), "5", "9"});
  living.wait_for_output();
  EXPECT_EQ(Writer({"crash", path.string(), "6", "10"}).wait(), -1);
  CrashJournal own(journal_path);
  ASSERT_TRUE(own.begin(test_measurement(7, 11)).ok());
  const auto cache = TimingCache::load(path, kTestDevice, null_logger());
  ASSERT_TRUE(cache.ok());
  EXPECT_TRUE((*cache)->measurements(test_key(5)).empty());
  EXPECT_EQ((*cache)->measurements(test_key(6)).size(), 1u);
  EXPECT_TRUE((*cache)->measurements(test_key(7)).empty());
  const std::string journal = read_text(journal_path);
  EXPECT_EQ(std::count(journal.begin(), journal.end(), '\n'), 2);
  own.end();
  EXPECT_EQ(read_text(journal_path).find("tactic: 0xb"), std::string::npos);
  EXPECT_NE(read_text(journal_path).find("tactic: 0x9"), std::string::npos);
  living.close_input();
  EXPECT_EQ(living.wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(journal_path));
}

TEST(CrashJournalTest, WithoutAPathItDoesNothing) {
  CrashJournal journal("");
  EXPECT_TRUE(journal.begin(test_measurement(1, 1)).ok());
  journal.end();
}

TEST(CrashJournalTest, TornLinesAreSkipped) {
  TemporaryFolder folder;
  const std::string line =
      journal_line(test_measurement(5, 9), {999999999, 1, "h", this_process().boot, this_process().pid_space, 0});
  EXPECT_EQ(dead_tactics(line + "\n").size(), 1u);
  for (std::size_t n = 0; n < line.size(); ++n) EXPECT_TRUE(dead_tactics(line.substr(0, n)).empty()) << n;
  write_text(folder / "f.journal", line.substr(0, 40) + "\n" + line + "\n\xff\n");
  const auto cache = TimingCache::load(folder / "f", kTestDevice, null_logger());
  ASSERT_TRUE(cache.ok());
  EXPECT_EQ((*cache)->measurements(test_key(5)).size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(folder / "f.journal"));
}

TEST(ProcessIdentityTest, KnowsTheDeadFromTheLiving) {
  const ProcessIdentity own = this_process();
  EXPECT_NE(own.started, 0);
  EXPECT_FALSE(is_gone(own));
  ProcessIdentity other = own;
  other.started += 1;  // the pid is in use again
  EXPECT_TRUE(is_gone(other));
  other = own;
  other.boot = "an earlier one";
  EXPECT_TRUE(is_gone(other)) << "this host was booted since";
  other.host = "elsewhere";
  EXPECT_FALSE(is_gone(other)) << "another host, a moment ago";
  other.time -= 7200;
  EXPECT_TRUE(is_gone(other)) << "another host, two hours ago";
  other = own;
  other.pid_space = "pid:[1]";
  EXPECT_FALSE(is_gone(other)) << "another container of this host, a moment ago";
}

}  // namespace
}  // namespace tenon
