// How a kernel uses the caller's threads. Kernels start no threads; they hand loops to the `Parallel` that they were
// given. The partition of the work never changes a result: outputs are the same bits for every thread count.
#ifndef TENON_KERNELS_CPU_PARALLEL_H_
#define TENON_KERNELS_CPU_PARALLEL_H_

#include <cstdint>

#include "kernels/cpu/inline.h"

namespace tenon::cpu {

struct Parallel {
  // Most threads that `run` uses at once; workspaces hold one slot for each. Values below 1 mean 1.
  int threads = 1;
  void* context = nullptr;
  // Calls body(arg, index) once for every index in [0, count), from up to `threads` threads, and returns when all calls
  // have returned. Null means serial. It must neither throw nor call `body` after it returned.
  void (*run)(void* context, int64_t count, void (*body)(void* arg, int64_t index), void* arg) = nullptr;
  // Products of fewer multiply-adds are done before other threads have taken their part.
  int64_t serial_below = 0;
};

struct Range {
  int64_t begin;
  int64_t end;
};

// The part `index` of `parts` (>= 1) nearly equal contiguous parts of [0, count); parts may be empty.
TENON_CPU_INLINE Range split_range(int64_t count, int64_t parts, int64_t index) {
  const int64_t base = count / parts;
  const int64_t extra = count % parts;
  const int64_t begin = index * base + (index < extra ? index : extra);
  return {begin, begin + base + (index < extra ? 1 : 0)};
}

TENON_CPU_INLINE int parallel_threads(const Parallel& parallel) {
  return parallel.run == nullptr || parallel.threads < 1 ? 1 : parallel.threads;
}

// Calls function(index) for every index in [0, count).
template <class Function>
TENON_CPU_INLINE void parallel_for(const Parallel& parallel, int64_t count, const Function& function) {
  if (parallel_threads(parallel) == 1 || count <= 1) {
    for (int64_t index = 0; index < count; ++index) function(index);
    return;
  }
  parallel.run(
      parallel.context, count, [](void* arg, int64_t index) { (*static_cast<const Function*>(arg))(index); },
      const_cast<Function*>(&function));
}

// Calls function(begin, end) on contiguous ranges that cover [0, count), each of at least `grain` items but the last.
template <class Function>
TENON_CPU_INLINE void parallel_ranges(const Parallel& parallel, int64_t count, int64_t grain,
                                      const Function& function) {
  const int64_t most = (count + grain - 1) / grain;
  const int64_t parts = most < parallel_threads(parallel) ? most : parallel_threads(parallel);
  if (count <= 0) return;
  parallel_for(parallel, parts, [&](int64_t part) {
    const Range range = split_range(count, parts, part);
    function(range.begin, range.end);
  });
}

// Calls function(begin, end) on contiguous ranges of `chunk` items (the last may have fewer) that cover [0, count).
// Threads that are early take more of them.
template <class Function>
TENON_CPU_INLINE void parallel_chunks(const Parallel& parallel, int64_t count, int64_t chunk,
                                      const Function& function) {
  parallel_for(parallel, (count + chunk - 1) / chunk, [&](int64_t index) {
    const int64_t begin = index * chunk;
    function(begin, begin + chunk < count ? begin + chunk : count);
  });
}

// `parallel`, or one thread where the work, in multiply-adds, is not worth it.
TENON_CPU_INLINE Parallel parallel_if_worth(const Parallel& parallel, int64_t work) {
  return work < parallel.serial_below ? Parallel{} : parallel;
}

// Calls function(slot, task) for every task in [0, tasks). No two calls with the same slot run at once and slots lie in
// [0, threads), so that a slot may own scratch memory. Threads that are early take more tasks.
template <class Function>
TENON_CPU_INLINE void parallel_tasks(const Parallel& parallel, int64_t tasks, const Function& function) {
  const int64_t slots = tasks < parallel_threads(parallel) ? tasks : parallel_threads(parallel);
  if (slots <= 1) {
    for (int64_t task = 0; task < tasks; ++task) function(int64_t{0}, task);
    return;
  }
  int64_t next = 0;
  parallel_for(parallel, slots, [&](int64_t slot) {
    for (int64_t task; (task = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < tasks;) function(slot, task);
  });
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_PARALLEL_H_
