#include "core/memory/planner.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>

namespace tenon {
namespace {

enum class Fit { kLowest, kTightest };

struct Buffer {
  std::uint64_t size = 0;  // rounded up to the alignment, never 0
  int first = 0;
  int last = 0;
  std::uint64_t busiest = 0;  // most bytes alive at any step of its life
  std::size_t index = 0;      // in the caller's list
};

bool overlap(const Buffer& a, const Buffer& b) { return a.first <= b.last && b.first <= a.last; }

// Fills `busiest` of every buffer and returns the most bytes alive at any step.
std::uint64_t measure_load(std::vector<Buffer>* buffers) {
  std::vector<int> steps;  // the load grows only where a life begins
  for (const Buffer& buffer : *buffers) steps.push_back(buffer.first);
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  std::vector<std::uint64_t> load(steps.size(), 0);
  const auto at_or_after = [&](int step) {
    return static_cast<std::size_t>(std::lower_bound(steps.begin(), steps.end(), step) - steps.begin());
  };
  for (const Buffer& buffer : *buffers) {
    for (std::size_t i = at_or_after(buffer.first); i < steps.size() && steps[i] <= buffer.last; ++i) {
      load[i] += buffer.size;
    }
  }
  for (Buffer& buffer : *buffers) {
    for (std::size_t i = at_or_after(buffer.first); i < steps.size() && steps[i] <= buffer.last; ++i) {
      buffer.busiest = std::max(buffer.busiest, load[i]);
    }
  }
  return load.empty() ? 0 : *std::max_element(load.begin(), load.end());
}

struct Placement {
  std::vector<std::uint64_t> offsets;  // by position in the list of buffers
  std::uint64_t total = std::numeric_limits<std::uint64_t>::max();
};

// Places the buffers one after another, each in a gap between those that are placed already and alive with it.
Placement place(const std::vector<Buffer>& buffers, const std::vector<std::size_t>& order, Fit fit) {
  Placement result;
  result.offsets.assign(buffers.size(), 0);
  result.total = 0;
  std::vector<std::size_t> placed;  // by offset
  placed.reserve(buffers.size());
  for (const std::size_t id : order) {
    const Buffer& buffer = buffers[id];
    std::uint64_t end = 0;  // of the occupied bytes seen so far
    std::uint64_t best = 0;
    std::uint64_t best_gap = std::numeric_limits<std::uint64_t>::max();
    for (const std::size_t other : placed) {
      if (!overlap(buffer, buffers[other])) continue;
      const std::uint64_t start = result.offsets[other];
      if (start > end && start - end >= buffer.size && start - end < best_gap) {
        best = end;
        best_gap = start - end;
        if (fit == Fit::kLowest) break;
      }
      end = std::max(end, start + buffers[other].size);
    }
    const std::uint64_t offset = best_gap != std::numeric_limits<std::uint64_t>::max() ? best : end;
    result.offsets[id] = offset;
    result.total = std::max(result.total, offset + buffer.size);
    const auto position =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](std::uint64_t value, std::size_t b) { return value < result.offsets[b]; });
    placed.insert(position, id);
  }
  return result;
}

template <class Key>
std::vector<std::size_t> order_by(const std::vector<Buffer>& buffers, Key key) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return key(buffers[a]) < key(buffers[b]); });
  return order;
}

std::vector<std::vector<std::size_t>> candidate_orders(const std::vector<Buffer>& buffers) {
  const auto length = [](const Buffer& b) { return std::int64_t{b.last} - b.first; };
  const auto large_first = [](const Buffer& b) { return ~b.size; };
  return {
      order_by(buffers, [&](const Buffer& b) { return std::tuple(large_first(b), -length(b), b.first); }),
      order_by(buffers, [&](const Buffer& b) { return std::tuple(~b.busiest, large_first(b), b.first); }),
      order_by(buffers, [&](const Buffer& b) { return std::tuple(-length(b), large_first(b), b.first); }),
      order_by(buffers,
               [&](const Buffer& b) {
                 return std::tuple(-static_cast<double>(b.size) * static_cast<double>(length(b) + 1), b.first);
               }),
      order_by(buffers, [&](const Buffer& b) { return std::tuple(b.first, large_first(b)); }),
      order_by(buffers, [&](const Buffer& b) { return std::tuple(-std::int64_t{b.last}, large_first(b)); }),
  };
}

// Work of one placement is about the square of the buffers; so many pair checks are spent on improving the best order.
constexpr std::uint64_t kImprovementWork = 40'000'000;
constexpr std::uint64_t kMostRounds = 400;

// Moves a buffer that reaches the arena's end to the front of the order for as long as that does no harm.
void improve(const std::vector<Buffer>& buffers, std::uint64_t lower_bound, Fit fit, std::vector<std::size_t> order,
             Placement* best) {
  const std::uint64_t n = buffers.size();
  const std::uint64_t rounds = std::min(kMostRounds, kImprovementWork / (n * n + 1));
  Placement current = *best;
  for (std::uint64_t round = 0; round < rounds && best->total > lower_bound; ++round) {
    const auto top = std::find_if(order.begin(), order.end(), [&](std::size_t id) {
      return current.offsets[id] + buffers[id].size == current.total;
    });
    if (top == order.begin()) return;  // it does not fit lower even alone
    std::rotate(order.begin(), top, top + 1);
    current = place(buffers, order, fit);
    if (current.total < best->total) *best = current;
  }
}

}  // namespace

Result<MemoryPlan> plan_memory(const std::vector<Lifetime>& lifetimes, std::uint64_t alignment) {
  if (alignment == 0) return Status(Code::kInvalid, "memory planner: the alignment is 0, expected at least 1");
  std::vector<Buffer> buffers;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const Lifetime& life = lifetimes[i];
    const std::string name = "memory planner: buffer " + std::to_string(i);
    if (life.last_use < life.first_use) {
      return Status(Code::kInvalid, name + " is last used at step " + std::to_string(life.last_use) +
                                        ", before its first use at step " + std::to_string(life.first_use));
    }
    if (life.bytes == 0) continue;
    const std::uint64_t blocks = (life.bytes - 1) / alignment + 1;
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(blocks, alignment, &size) || __builtin_add_overflow(sum, size, &sum)) {
      return Status(Code::kInvalid, name + " of " + std::to_string(life.bytes) +
                                        " bytes takes all buffers together beyond 2^64 bytes; use smaller shapes");
    }
    buffers.push_back({size, life.first_use, life.last_use, 0, i});
  }

  MemoryPlan plan;
  plan.offsets.assign(lifetimes.size(), 0);
  plan.lower_bound = measure_load(&buffers);
  if (buffers.empty()) return plan;

  const std::vector<std::vector<std::size_t>> orders = candidate_orders(buffers);
  struct Attempt {
    Placement placement;
    std::size_t order;
    Fit fit;
  };
  std::vector<Attempt> attempts;
  for (std::size_t o = 0; o < orders.size(); ++o) {
    for (const Fit fit : {Fit::kLowest, Fit::kTightest}) {
      attempts.push_back({place(buffers, orders[o], fit), o, fit});
      if (attempts.back().placement.total == plan.lower_bound) break;
    }
    if (attempts.back().placement.total == plan.lower_bound) break;
  }
  std::stable_sort(attempts.begin(), attempts.end(),
                   [](const Attempt& a, const Attempt& b) { return a.placement.total < b.placement.total; });
  Placement best = attempts.front().placement;
  for (std::size_t i = 0; i < attempts.size() && i < 4 && best.total > plan.lower_bound; ++i) {
    Placement improved = attempts[i].placement;
    improve(buffers, plan.lower_bound, attempts[i].fit, orders[attempts[i].order], &improved);
    if (improved.total < best.total) best = improved;
  }

  plan.total = best.total;
  for (std::size_t i = 0; i < buffers.size(); ++i) plan.offsets[buffers[i].index] = best.offsets[i];
  return plan;
}

}  // namespace tenon
