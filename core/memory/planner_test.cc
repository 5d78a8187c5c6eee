#include "core/memory/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>

namespace tenon {
namespace {

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Recomputes everything that a plan promises, by the definitions.
void check(const std::vector<Lifetime>& lives, const MemoryPlan& plan, std::uint64_t alignment) {
  ASSERT_EQ(plan.offsets.size(), lives.size());
  std::map<int, std::uint64_t> load;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].bytes == 0) {
      EXPECT_EQ(plan.offsets[i], 0u);
      continue;
    }
    EXPECT_EQ(plan.offsets[i] % alignment, 0u);
    end = std::max(end, plan.offsets[i] + rounded(lives[i].bytes, alignment));
    for (int step = lives[i].first_use; step <= lives[i].last_use; ++step)
      load[step] += rounded(lives[i].bytes, alignment);
    for (std::size_t j = 0; j < i; ++j) {
      if (lives[j].bytes == 0 || lives[i].first_use > lives[j].last_use || lives[j].first_use > lives[i].last_use)
        continue;
      EXPECT_TRUE(plan.offsets[i] + lives[i].bytes <= plan.offsets[j] ||
                  plan.offsets[j] + lives[j].bytes <= plan.offsets[i])
          << "buffers " << j << " and " << i << " share bytes while both are alive";
    }
  }
  std::uint64_t bound = 0;
  for (const auto& [step, bytes] : load) bound = std::max(bound, bytes);
  EXPECT_EQ(plan.lower_bound, bound);
  EXPECT_EQ(plan.total, end);
  EXPECT_GE(plan.total, bound);
}

MemoryPlan planned(const std::vector<Lifetime>& lives, std::uint64_t alignment = 256) {
  Result<MemoryPlan> plan = plan_memory(lives, alignment);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  check(lives, *plan, alignment);
  return *plan;
}

TEST(Planner, NothingNeedsNothing) {
  EXPECT_EQ(planned({}).total, 0u);
  EXPECT_EQ(planned({{0, 0, 5}, {0, 2, 2}}).total, 0u);
}

TEST(Planner, ChainNeedsTwoNeighbours) {
  // Four values of a chain, each alive from its producer to its one reader: 300 + 500 bytes are the worst pair.
  const MemoryPlan plan = planned({{100, 0, 1}, {300, 1, 2}, {500, 2, 3}, {200, 3, 4}}, 100);
  EXPECT_EQ(plan.lower_bound, 800u);
  EXPECT_EQ(plan.total, 800u);
}

TEST(Planner, EndsOfLivesCount) {
  EXPECT_EQ(planned({{256, 0, 1}, {256, 1, 2}}).total, 512u);  // both alive at step 1
  EXPECT_EQ(planned({{256, 0, 1}, {256, 2, 3}}).total, 256u);
}

TEST(Planner, RefusesWhatMakesNoSense) {
  const Result<MemoryPlan> backwards = plan_memory({{1, 0, 0}, {10, 5, 4}});
  ASSERT_FALSE(backwards.ok());
  EXPECT_EQ(backwards.status().code(), Code::kInvalid);
  EXPECT_NE(backwards.status().message().find("buffer 1"), std::string::npos) << backwards.status().message();
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(plan_memory({{huge, 0, 0}}).status().code(), Code::kInvalid);
  EXPECT_EQ(plan_memory({{huge / 2, 0, 0}, {huge / 2 + 2, 1, 1}}, 1).status().code(), Code::kInvalid);
  EXPECT_EQ(plan_memory({{1, 0, 0}}, 0).status().code(), Code::kInvalid);
}

// A network written down as values with producers and readers; lives follow from the positions of the layers.
class Net {
 public:
  int layer(std::uint64_t bytes, const std::vector<int>& inputs) {
    const int step = static_cast<int>(lives_.size());
    for (const int input : inputs) lives_[static_cast<std::size_t>(input)].last_use = step;
    lives_.push_back({bytes, step, step});
    return step;
  }
  double ratio() const {
    const MemoryPlan plan = planned(lives_);
    return static_cast<double>(plan.total) / static_cast<double>(plan.lower_bound);
  }

 private:
  std::vector<Lifetime> lives_;
};

TEST(Planner, NetworksAreWithinFivePercentOfTheBound) {
  const auto activation = [](std::uint64_t channels, std::uint64_t size) { return channels * size * size * 4; };
  Net resnet;  // ResNet-50: bottlenecks with a projection in the first of each stage
  int x = resnet.layer(activation(64, 56), {resnet.layer(activation(64, 112), {})});
  const std::uint64_t width[] = {64, 128, 256, 512}, size[] = {56, 28, 14, 7};
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    for (int block = 0; block < blocks[stage]; ++block) {
      const std::uint64_t s = size[stage], w = width[stage];
      const int skip = block == 0 ? resnet.layer(activation(4 * w, s), {x}) : x;
      const int a = resnet.layer(activation(w, stage > 0 && block == 0 ? 2 * s : s), {x});
      const int b = resnet.layer(activation(w, s), {a});
      const int c = resnet.layer(activation(4 * w, s), {b});
      x = resnet.layer(activation(4 * w, s), {c, skip});
    }
  }
  EXPECT_LE(resnet.ratio(), 1.05);

  Net inception;  // GoogLeNet-like: four branches and a concat
  x = inception.layer(activation(192, 28), {});
  const std::uint64_t table[][6] = {{64, 96, 128, 16, 32, 32},   {128, 128, 192, 32, 96, 64},
                                    {192, 96, 208, 16, 48, 64},  {160, 112, 224, 24, 64, 64},
                                    {112, 144, 288, 32, 64, 64}, {256, 160, 320, 32, 128, 128}};
  for (const auto& t : table) {
    const int b1 = inception.layer(activation(t[0], 28), {x});
    const int b2 = inception.layer(activation(t[2], 28), {inception.layer(activation(t[1], 28), {x})});
    const int b3 = inception.layer(activation(t[4], 28), {inception.layer(activation(t[3], 28), {x})});
    const int pool = inception.layer(activation(192, 28), {x});
    const int b4 = inception.layer(activation(t[5], 28), {pool});
    x = inception.layer(activation(t[0] + t[2] + t[4] + t[5], 28), {b1, b2, b3, b4});
  }
  EXPECT_LE(inception.ratio(), 1.05);

  Net dense;  // DenseNet block: every value lives to the block's end, concats grow
  std::vector<int> features = {dense.layer(activation(64, 56), {})};
  for (int i = 0; i < 12; ++i) {
    const int joined = dense.layer(activation(64 + 32 * static_cast<std::uint64_t>(i), 56), features);
    features.push_back(dense.layer(activation(32, 56), {dense.layer(activation(128, 56), {joined})}));
  }
  EXPECT_LE(dense.ratio(), 1.05);

  Net yolo;  // Darknet-53 trunk with two upsampled routes
  x = yolo.layer(activation(32, 416), {});
  std::vector<int> routes;
  const int repeats[] = {1, 2, 8, 8, 4};
  for (std::uint64_t stage = 0; stage < 5; ++stage) {
    const std::uint64_t channels = 64u << stage, side = 208u >> stage;
    x = yolo.layer(activation(channels, side), {x});
    for (int i = 0; i < repeats[stage]; ++i) {
      const int narrow = yolo.layer(activation(channels / 2, side), {x});
      x = yolo.layer(activation(channels, side), {yolo.layer(activation(channels, side), {narrow}), x});
    }
    routes.push_back(x);
  }
  for (std::size_t head = 0; head < 3; ++head) {
    const std::uint64_t side = 13u << head, channels = 512u >> head;
    for (int i = 0; i < 3; ++i)
      x = yolo.layer(activation(channels, side), {yolo.layer(activation(2 * channels, side), {x})});
    yolo.layer(activation(255, side), {yolo.layer(activation(2 * channels, side), {x})});
    if (head == 2) break;
    const int up = yolo.layer(activation(channels / 2, 2 * side), {yolo.layer(activation(channels / 2, side), {x})});
    x = yolo.layer(activation(channels * 3 / 2, 2 * side), {up, routes[3 - head]});
  }
  EXPECT_LE(yolo.ratio(), 1.05);
}

TEST(Planner, RandomLivesNeverShareBytesAndStayNearTheBound) {
  std::mt19937 random(7);
  double sum = 0;
  const int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Lifetime> lives(1 + random() % 60);
    for (Lifetime& life : lives) {
      life.bytes = random() % 8 == 0 ? 0 : random() % (random() % 2 == 0 ? 100'000 : 3'000);
      life.first_use = static_cast<int>(random() % 50) - 5;
      life.last_use = life.first_use + static_cast<int>(random() % (random() % 3 == 0 ? 30 : 4));
    }
    const MemoryPlan plan = planned(lives, round % 2 == 0 ? 256 : 64);
    if (plan.lower_bound > 0) sum += static_cast<double>(plan.total) / static_cast<double>(plan.lower_bound);
  }
  EXPECT_LE(sum / rounds, 1.03);
}

TEST(Planner, SameLivesGiveSameOffsets) {
  std::mt19937 random(11);
  std::vector<Lifetime> lives(200);
  for (Lifetime& life : lives) {
    life.bytes = 1 + random() % 5000;
    life.first_use = static_cast<int>(random() % 100);
    life.last_use = life.first_use + static_cast<int>(random() % 20);
  }
  EXPECT_EQ(planned(lives).offsets, planned(lives).offsets);
}

// Layers that read one to three of the values before them, mostly the latest.
Net random_net(unsigned seed, int layers, int reach) {
  std::mt19937 random(seed);
  Net net;
  for (int i = 0; i < layers; ++i) {
    std::vector<int> inputs;
    for (std::uint32_t n = 0; i > 0 && n < 1 + random() % 3; ++n) {
      const int back = static_cast<int>(std::min(random() % reach, random() % reach));
      inputs.push_back(std::max(0, i - 1 - back));
    }
    net.layer(1000 * (1 + random() % 200) << random() % 3, inputs);
  }
  return net;
}

TEST(Planner, TwoThousandBuffersAreNearTheBound) {
  for (const int reach : {3, 8, 30}) EXPECT_LE(random_net(3, 2000, reach).ratio(), 1.05) << reach;
}

}  // namespace
}  // namespace tenon
