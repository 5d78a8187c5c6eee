#include "core/builder/min_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace tenon {
namespace {

TEST(MinCut, CostsOfOne) {
  MinCut cut(3);
  cut.add_cost(0, 1, 2);
  cut.add_cost(1, 2, 1);
  cut.add_cost(2, -3, -4);
  EXPECT_EQ(cut.solve(), (std::vector<bool>{false, true, true}));
}

TEST(MinCut, APairChangesTogetherOrNotAtAll) {
  for (const double apart : {0.1, 2.0}) {
    MinCut cut(2);
    cut.add_cost(0, 1, 0);
    cut.add_cost(1, 0, 0.5);
    cut.add_cost(0, 1, 0, apart, apart, 0);
    EXPECT_EQ(cut.solve(), (std::vector<bool>{true, apart > 1}));
  }
}

// Against all answers, where no pair prefers to differ.
TEST(MinCut, AsGoodAsTryingEverything) {
  std::mt19937 random(1);
  const auto number = [&] { return static_cast<double>(random() % 1000) / 100; };
  for (int round = 0; round < 200; ++round) {
    constexpr std::size_t kCount = 7;
    std::vector<std::array<double, 2>> alone(kCount);
    struct Pair {
      std::size_t a, b;
      double costs[2][2];
    };
    std::vector<Pair> pairs;
    MinCut cut(kCount);
    for (std::size_t a = 0; a < kCount; ++a) {
      alone[a] = {number(), number()};
      cut.add_cost(a, alone[a][0], alone[a][1]);
      for (std::size_t b = 0; b < kCount; ++b) {
        if (a == b || random() % 3 != 0) continue;
        const double same = number(), no = std::min(same, number());
        pairs.push_back({a, b, {{same, same + number()}, {same + number(), no}}});
        const auto& costs = pairs.back().costs;
        cut.add_cost(a, b, costs[0][0], costs[0][1], costs[1][0], costs[1][1]);
      }
    }
    const auto total = [&](const std::vector<bool>& yes) {
      double sum = 0;
      for (std::size_t a = 0; a < kCount; ++a) sum += alone[a][yes[a]];
      for (const Pair& pair : pairs) sum += pair.costs[yes[pair.a]][yes[pair.b]];
      return sum;
    };
    double best = 1e9;
    for (unsigned answers = 0; answers < 1u << kCount; ++answers) {
      std::vector<bool> yes;
      for (std::size_t a = 0; a < kCount; ++a) yes.push_back((answers >> a & 1) != 0);
      best = std::min(best, total(yes));
    }
    EXPECT_NEAR(total(cut.solve()), best, 1e-9);
  }
}

}  // namespace
}  // namespace tenon
