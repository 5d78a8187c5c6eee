// Memory planner: places buffers with known lifetimes in one arena so that buffers alive at the same time never
// overlap.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/status.hpp>

namespace tenon {

/// Of every buffer in activation memory: what cudaMalloc promises, and enough for any vector load.
inline constexpr std::uint64_t kArenaAlignment = 256;

/// One buffer: alive from step first_use to step last_use, both included.
struct Lifetime {
  std::uint64_t bytes = 0;
  int first_use = 0;
  int last_use = 0;
};

struct MemoryPlan {
  std::vector<std::uint64_t> offsets;  ///< one per lifetime, multiples of `alignment`
  std::uint64_t total = 0;             ///< arena size in bytes
  std::uint64_t lower_bound = 0;       ///< most bytes alive at any one step (each rounded up to `alignment`)
};

/// Same lifetimes, same offsets. Zero-sized buffers get offset 0. kInvalid for last_use < first_use or overflow.
Result<MemoryPlan> plan_memory(const std::vector<Lifetime>& lifetimes, std::uint64_t alignment = kArenaAlignment);

}  // namespace tenon
