#include "kernels/cpu/parallel.h"

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

TEST(Parallel, SplitRangeCoversEverythingOnceAndEvenly) {
  for (int64_t count = 0; count < 30; ++count) {
    for (int64_t parts = 1; parts < 12; ++parts) {
      int64_t next = 0;
      for (int64_t i = 0; i < parts; ++i) {
        const Range range = split_range(count, parts, i);
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.end - range.begin, count / parts);
        EXPECT_LE(range.end - range.begin, count / parts + 1);
        next = range.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(Parallel, LoopsVisitEveryIndexOnce) {
  for (const int threads : {0, 1, 2, 3, 8}) {
    for (const int64_t count : {0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> visits(count);
      const auto check = [&](int expected) {
        for (const auto& visit : visits) EXPECT_EQ(visit, expected);
      };
      const Parallel parallel = make_parallel(threads);
      parallel_for(parallel, count, [&](int64_t i) { ++visits[i]; });
      check(1);
      parallel_ranges(parallel, count, 3, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[i];
      });
      check(2);
      parallel_tasks(parallel, count, [&](int64_t, int64_t i) { ++visits[i]; });
      check(3);
      parallel_chunks(parallel, count, 3, [&](int64_t begin, int64_t end) {
        EXPECT_LE(end - begin, 3);
        for (int64_t i = begin; i < end; ++i) ++visits[i];
      });
      check(4);
    }
  }
}

TEST(Parallel, ASlotIsUsedByOneThreadAtATime) {
  constexpr int kThreads = 3;
  std::atomic<int> users[kThreads] = {};
  std::atomic<bool> shared{false};
  parallel_tasks(make_parallel(kThreads), 200, [&](int64_t slot, int64_t) {
    ASSERT_LT(slot, kThreads);
    if (++users[slot] != 1) shared = true;
    std::this_thread::yield();
    --users[slot];
  });
  EXPECT_FALSE(shared);
}

TEST(Parallel, LittleWorkIsSerial) {
  Parallel parallel = make_parallel(3);
  EXPECT_EQ(parallel_threads(parallel_if_worth(parallel, 0)), 3);
  parallel.serial_below = 100;
  EXPECT_EQ(parallel_threads(parallel_if_worth(parallel, 99)), 1);
  EXPECT_EQ(parallel_threads(parallel_if_worth(parallel, 100)), 3);
}

TEST(Parallel, NullRunIsSerial) {
  Parallel parallel;
  parallel.threads = 8;
  EXPECT_EQ(parallel_threads(parallel), 1);
  int64_t sum = 0;
  parallel_for(parallel, 10, [&](int64_t i) { sum += i; });
  EXPECT_EQ(sum, 45);
}

}  // namespace
}  // namespace tenon::cpu
