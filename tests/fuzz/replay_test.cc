// Every input of corpus/<target>, among them each that once was a find: nothing crashes, hangs or takes much memory.
// The target's name is in TENON_FUZZ_TARGET.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "tests/fuzz/fuzzing.h"
#include "tests/support/data_dirs.h"

TEST(Fuzz, Corpus) {
  const char* target = std::getenv("TENON_FUZZ_TARGET");
  ASSERT_NE(target, nullptr);
  LLVMFuzzerInitialize(nullptr, nullptr);
  double longest = 0;
  std::string slowest;
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(tenon::testing::source_dir() / "tests" / "fuzz" / "corpus" / target)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string input((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    SCOPED_TRACE(entry.path().string());
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size()), 0);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (seconds > longest) slowest = entry.path().filename().string();
    longest = std::max(longest, seconds);
    ++count;
  }
  EXPECT_GT(count, 10);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 2 << 20) << "KiB";
  std::printf("%d inputs, the slowest %s: %.0f ms; %ld MiB of memory at most\n", count, slowest.c_str(), longest * 1000,
              usage.ru_maxrss / 1024);
}
