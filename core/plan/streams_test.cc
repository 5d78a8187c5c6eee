// The order that streams give, against plain searches, and memory under it, by running random plans in random order.
#include "core/plan/streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "core/plan/placement.h"

namespace tenon {
namespace {

using Needs = std::vector<std::vector<std::size_t>>;

StreamOrder order_of(const std::vector<int>& streams, const Needs& needs) {
  return {streams, [&](std::size_t earlier, std::size_t later) {
            return std::count(needs[later].begin(), needs[later].end(), earlier) != 0;
          }};
}

TEST(StreamOrder, OneStreamIsThePlansOrder) {
  const StreamOrder order = order_of({0, 0, 0}, {{}, {}, {0}});
  EXPECT_EQ(order.count(), 1);
  EXPECT_EQ(order.events(), 0);
  EXPECT_TRUE(order.before(0, 1));
  EXPECT_FALSE(order.before(1, 1));
  EXPECT_EQ(StreamOrder().count(), 1);
}

TEST(StreamOrder, ADiamondTakesTwoEvents) {
  const StreamOrder order = order_of({0, 0, 1, 0}, {{}, {0}, {0}, {1, 2}});
  EXPECT_EQ(order.count(), 2);
  EXPECT_EQ(order.waits(2), std::vector<std::size_t>{0});
  EXPECT_EQ(order.waits(3), std::vector<std::size_t>{2});
  EXPECT_TRUE(order.waits(1).empty());
  EXPECT_TRUE(order.forks().empty());
  EXPECT_TRUE(order.joins().empty());
  EXPECT_EQ(order.events(), 2);
  EXPECT_TRUE(order.before(0, 2));
  EXPECT_TRUE(order.before(2, 3));
  EXPECT_FALSE(order.before(1, 2));
  EXPECT_FALSE(order.before(2, 1));
}

TEST(StreamOrder, NoWaitFollowsFromOthersAndOneEventServesAll) {
  // 0 is read on two other streams. 3 reads 0 and 1, but 1 has waited for 0; 4 reads 0, but 3 is before it.
  const StreamOrder order = order_of({0, 1, 0, 2, 2, 0}, {{}, {0}, {0}, {0, 1}, {0}, {2, 1, 4}});
  EXPECT_EQ(order.waits(1), std::vector<std::size_t>{0});
  EXPECT_EQ(order.waits(3), std::vector<std::size_t>{1});
  EXPECT_TRUE(order.waits(4).empty());
  EXPECT_EQ(order.waits(5), std::vector<std::size_t>{4});
  EXPECT_EQ(order.events(), 3);
}

TEST(StreamOrder, BranchesWithoutACommonBeginOrEndForkAndJoinTheMainStream) {
  const StreamOrder order = order_of({0, 1, 2, 2}, {{}, {}, {}, {1}});
  EXPECT_EQ(order.forks(), (std::vector<int>{1, 2}));
  EXPECT_EQ(order.joins(), std::vector<std::size_t>{3}) << "3 has waited for stream 1";
  EXPECT_EQ(order.events(), 3) << "begin, 1 and 3";
  const StreamOrder nothing_on_main = order_of({1, 2}, {{}, {}});
  EXPECT_EQ(nothing_on_main.joins(), (std::vector<std::size_t>{0, 1}));
}

/// Whether `from` reaches `to`, by one layer's stream or by waits, but for the wait of `layer` for `without`.
bool reaches(const StreamOrder& order, std::size_t from, std::size_t to, std::size_t layer, std::size_t without) {
  std::vector<bool> reached(to + 1, false);
  reached[from] = true;
  for (std::size_t n = from + 1; n <= to; ++n) {
    for (std::size_t m = from; m < n; ++m)
      reached[n] = reached[n] || (reached[m] && order.stream(m) == order.stream(n));
    for (const std::size_t wait : order.waits(n)) {
      if (n == layer && wait == without) continue;
      reached[n] = reached[n] || (wait >= from && reached[wait]);
    }
  }
  return reached[to];
}

TEST(StreamOrder, RandomGraphsHaveEveryWaitThatTheyNeedAndNoOther) {
  constexpr std::size_t kNone = ~std::size_t{0};
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 2 + random() % 14;
    const int count = 2 + static_cast<int>(random() % 3);
    std::vector<int> streams;
    Needs needs(n);
    for (std::size_t i = 0; i < n; ++i) {
      streams.push_back(static_cast<int>(random() % static_cast<unsigned>(count)));
      for (std::size_t j = 0; j < i; ++j) {
        if (random() % 4 == 0) needs[i].push_back(j);
      }
    }
    const StreamOrder order = order_of(streams, needs);
    if (order.count() == 1) continue;
    for (std::size_t i = 0; i < n; ++i) {
      for (const std::size_t need : needs[i]) EXPECT_TRUE(reaches(order, need, i, kNone, kNone));
      for (const std::size_t wait : order.waits(i)) {
        EXPECT_NE(order.stream(wait), order.stream(i));
        EXPECT_TRUE(order.signals(wait));
        EXPECT_FALSE(reaches(order, wait, i, i, wait)) << "layer " << i << " need not wait for " << wait;
      }
      for (std::size_t j = 0; j < n; ++j) {
        EXPECT_EQ(order.before(i, j), i < j && reaches(order, i, j, kNone, kNone)) << i << " " << j;
      }
    }
  }
}

// --- memory ---

constexpr std::uint64_t kUnit = 256;  // all tensors are of so many bytes, or a multiple

/// Layers of four kinds: plain ones, ones that may write over their first input, and concatenations and slices that are
/// views.
class RandomPlan {
 public:
  explicit RandomPlan(unsigned seed) : random_(seed) {
    const int nodes = 4 + pick(12);
    plan.tensors.push_back(tensor(Storage::kInput, 1));
    for (int n = 0; n < nodes; ++n) add_node(n + 1 == nodes);
  }
  Plan plan;

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  static PlanTensor tensor(Storage storage, std::int64_t units) {
    PlanTensor tensor;
    tensor.dtype = TN_F32;
    tensor.dims = make_dims({units * static_cast<std::int64_t>(kUnit) / 4});
    tensor.format = row_format();
    tensor.storage = storage;
    return tensor;
  }
  static std::int64_t units(const PlanTensor& tensor) {
    return tensor.dims.d[0] * 4 / static_cast<std::int64_t>(kUnit);
  }

  void add_node(bool last) {
    PlanNode node;
    node.stream = pick(3);
    const int kind = pick(4);
    const int wanted = kind == 3 ? 1 : 1 + pick(3);
    for (int i = 0; i < wanted; ++i) {
      // Recent tensors, so that chains and branches come about.
      const int from = std::max(0, static_cast<int>(plan.tensors.size()) - 5);
      const auto id = static_cast<std::uint32_t>(from + pick(static_cast<int>(plan.tensors.size()) - from));
      if (std::count(node.inputs.begin(), node.inputs.end(), id) == 0) node.inputs.push_back(id);
    }
    std::int64_t size = 1 + pick(3);
    if (kind == 1) size = units(plan.tensors[node.inputs[0]]);
    if (kind == 2) size = 0;
    for (std::uint32_t i = 0; kind == 2 && i < node.inputs.size(); ++i) {
      node.shares.push_back({i, 0, false, static_cast<std::uint64_t>(size) * kUnit});
      size += units(plan.tensors[node.inputs[i]]);
    }
    if (kind == 3) {
      const std::int64_t whole = units(plan.tensors[node.inputs[0]]);
      size = 1 + pick(static_cast<int>(whole));
      node.shares = {{0, 0, true, static_cast<std::uint64_t>(pick(static_cast<int>(whole - size) + 1)) * kUnit}};
    }
    if (kind == 1) node.combo.aliases = {{0, 0, TN_MAY_ALIAS, 0}};
    node.combo.inputs.resize(node.inputs.size());
    node.combo.outputs.resize(1);
    node.outputs = {static_cast<std::uint32_t>(plan.tensors.size())};
    plan.tensors.push_back(tensor(last ? Storage::kOutput : Storage::kArena, size));
    plan.nodes.push_back(std::move(node));
  }

  std::mt19937 random_;
};

using Contents = std::vector<std::size_t>;  // one number a unit

/// Runs the layers in an order that the streams allow, and checks that each finds what it is to read.
class Simulation {
 public:
  explicit Simulation(const Plan& plan) : plan_(plan), arena_(plan.arena_bytes / kUnit, 0) {}

  void run(const StreamOrder& order, std::mt19937* random) {
    std::vector<bool> done(plan_.nodes.size(), false);
    for (std::size_t count = 0; count < plan_.nodes.size(); ++count) {
      std::vector<std::size_t> ready;
      std::vector<bool> busy(static_cast<std::size_t>(order.count()), false);
      for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
        const auto stream = static_cast<std::size_t>(order.stream(n));
        if (done[n] || busy[stream]) continue;
        busy[stream] = true;
        const auto over = [&](std::size_t wait) { return bool{done[wait]}; };
        if (order.count() == 1 || std::all_of(order.waits(n).begin(), order.waits(n).end(), over)) ready.push_back(n);
      }
      ASSERT_FALSE(ready.empty());
      const std::size_t next = ready[(*random)() % ready.size()];
      run_node(next);
      done[next] = true;
    }
  }

 private:
  std::size_t units(std::uint32_t id) const { return plan_.tensors[id].bytes / kUnit; }
  /// What lies where a tensor is; inputs and outputs of the network lie elsewhere and are always right.
  Contents found(std::uint32_t id) const {
    if (plan_.tensors[id].storage != Storage::kArena)
      return wanted_.count(id) != 0 ? wanted_.at(id) : Contents(units(id));
    const auto begin = arena_.begin() + static_cast<std::ptrdiff_t>(plan_.tensors[id].offset / kUnit);
    return {begin, begin + static_cast<std::ptrdiff_t>(units(id))};
  }
  void write(std::uint32_t id, std::size_t at, const Contents& contents) {
    if (plan_.tensors[id].storage != Storage::kArena) return;
    std::copy(contents.begin(), contents.end(),
              arena_.begin() + static_cast<std::ptrdiff_t>(plan_.tensors[id].offset / kUnit + at));
  }

  void run_node(std::size_t n) {
    const PlanNode& node = plan_.nodes[n];
    for (const std::uint32_t input : node.inputs) {
      if (wanted_.count(input) == 0) continue;
      EXPECT_EQ(found(input), wanted_.at(input)) << "layer " << n << " reads " << input;
    }
    const std::uint32_t output = node.outputs[0];
    Contents& result = wanted_[output];
    if (node.shares.empty()) {
      for (std::size_t i = 0; i < units(output); ++i) result.push_back(1000 * (n + 1) + i);
      write(output, 0, result);
      return;
    }
    for (const Share& share : node.shares) {
      Contents part = found(node.inputs[share.input]);
      if (share.output_inside) {
        const auto begin = part.begin() + static_cast<std::ptrdiff_t>(share.offset / kUnit);
        part = {begin, begin + static_cast<std::ptrdiff_t>(units(output))};
        if (!is_in_place(plan_, node, share)) write(output, 0, part);
        result = part;
        continue;
      }
      result.insert(result.end(), part.begin(), part.end());
      if (!is_in_place(plan_, node, share)) write(output, share.offset / kUnit, part);
    }
  }

  const Plan& plan_;
  Contents arena_;
  std::map<std::uint32_t, Contents> wanted_;
};

/// As the report's readers compute it (tools/check_memory.py), for plans whose tensors share nothing.
std::uint64_t most_alive(const Plan& plan) {
  std::uint64_t most = 0;
  for (int step = 0; step < static_cast<int>(plan.nodes.size()); ++step) {
    std::uint64_t alive = 0;
    for (const PlanTensor& tensor : plan.tensors) {
      const bool lives = tensor.storage == Storage::kArena && tensor.first_use <= step && step <= tensor.last_use;
      alive += lives ? tensor.bytes : 0;
    }
    most = std::max(most, alive);
  }
  return most;
}

TEST(MemoryOnStreams, NoLayerFindsItsDataWrittenOverWhateverTheStreamsDo) {
  int several = 0, in_place = 0, shared = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    RandomPlan random_plan(seed);
    Plan& plan = random_plan.plan;
    ASSERT_TRUE(place_tensors(&plan).ok());
    const StreamOrder order = memory_order(plan), by_data = data_order(plan);
    ASSERT_EQ(order.count(), by_data.count());
    several += order.count() > 1 ? 1 : 0;
    for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
      if (order.count() > 1) {
        EXPECT_EQ(order.waits(n), by_data.waits(n)) << "memory adds a wait at layer " << n;
      }
      const PlanNode& node = plan.nodes[n];
      for (const Share& share : node.shares) shared += is_in_place(plan, node, share) ? 1 : 0;
      const PlanTensor& from = plan.tensors[node.inputs[0]];
      const PlanTensor& to = plan.tensors[node.outputs[0]];
      const bool arena = from.storage == Storage::kArena && to.storage == Storage::kArena;
      if (!node.combo.aliases.empty() && arena && from.offset == to.offset) {
        ++in_place;
        EXPECT_EQ(from.last_use, static_cast<int>(n)) << "tools/check_memory.py relies on it";
      }
    }
    std::mt19937 random(seed);
    for (int run = 0; run < 10; ++run) Simulation(plan).run(order, &random);
  }
  EXPECT_GT(several, 300);
  EXPECT_GT(in_place, 20);
  EXPECT_GT(shared, 100);
}

TEST(MemoryOnStreams, LivesInTheReportGiveTheLowerBound) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    RandomPlan random_plan(seed);
    Plan& plan = random_plan.plan;
    for (PlanNode& node : plan.nodes) {
      node.shares.clear();
      node.combo.aliases.clear();
    }
    ASSERT_TRUE(place_tensors(&plan).ok());
    EXPECT_EQ(plan.arena_lower_bound, most_alive(plan)) << seed;
    for (const PlanTensor& a : plan.tensors) {
      for (const PlanTensor& b : plan.tensors) {
        if (&a == &b || a.storage != Storage::kArena || b.storage != Storage::kArena) continue;
        const bool together = a.first_use <= b.last_use && b.first_use <= a.last_use;
        const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        EXPECT_FALSE(together && overlap) << seed;
      }
    }
  }
}

TEST(MemoryOnStreams, ABranchKeepsItsMemoryUntilTheOtherOneHasJoined) {
  // x -> a -> b -> c -> d(c, e), and x -> e: with one stream b may lie where nothing else does and c where a was.
  Plan plan;
  const auto add = [&](Storage storage) {
    PlanTensor tensor;
    tensor.dtype = TN_F32;
    tensor.dims = make_dims({64});
    tensor.format = row_format();
    tensor.storage = storage;
    plan.tensors.push_back(tensor);
  };
  for (const Storage storage :
       {Storage::kInput, Storage::kArena, Storage::kArena, Storage::kArena, Storage::kArena, Storage::kOutput}) {
    add(storage);
  }
  const std::vector<std::pair<std::vector<std::uint32_t>, std::uint32_t>> nodes = {
      {{0}, 1}, {{1}, 2}, {{2}, 3}, {{0}, 4}, {{3, 4}, 5}};
  for (const auto& [inputs, output] : nodes) {
    PlanNode node;
    node.inputs = inputs;
    node.outputs = {output};
    plan.nodes.push_back(node);
  }
  ASSERT_TRUE(place_tensors(&plan).ok());
  EXPECT_EQ(plan.arena_bytes, 2 * kUnit);
  EXPECT_EQ(plan.tensors[1].last_use, 1);
  plan.nodes[3].stream = 1;
  ASSERT_TRUE(place_tensors(&plan).ok());
  // e may be written at any time before d, so nothing else may lie there.
  EXPECT_EQ(plan.tensors[1].last_use, 3) << "layer 3 may run while layer 1 has not begun";
  EXPECT_EQ(plan.tensors[3].last_use, 4);
  for (const std::uint32_t other : {1u, 2u, 3u}) EXPECT_NE(plan.tensors[other].offset, plan.tensors[4].offset);
}

}  // namespace
}  // namespace tenon
