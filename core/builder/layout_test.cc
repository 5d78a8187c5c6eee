#include "core/builder/layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon {
namespace {

LayoutProblem::Option option(double ms, const std::string& in, const std::string& out) { return {ms, {in}, {out}}; }

/// in -> node 0 -> v1 -> node 1 -> v2 ..., each a site of its own; the last value is needed row-major.
LayoutProblem chain(const std::vector<std::vector<LayoutProblem::Option>>& sites, double reformat_ms) {
  LayoutProblem problem;
  problem.sites = sites;
  const int count = static_cast<int>(sites.size());
  for (int i = 0; i < count; ++i) problem.nodes.push_back({i, {i}, {i + 1}});
  problem.num_values = count + 1;
  problem.row_values = {count};
  problem.reformat_ms = [=](int, const std::string&, const std::string&) { return reformat_ms; };
  return problem;
}

TEST(Layout, FastestOfEachWhenConversionsAreFree) {
  const auto solution = solve_layout(chain({{option(2, "row", "row"), option(1, "nhwc", "nhwc")}}, 0));
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(solution->options, std::vector<int>{1});
  EXPECT_DOUBLE_EQ(solution->ms, 1);
}

TEST(Layout, OneFasterLayerIsNotWorthTwoConversions) {
  // 1 ms saved, two conversions of 0.6 ms.
  const auto solution = solve_layout(chain({{option(2, "row", "row"), option(1, "nhwc", "nhwc")}}, 0.6));
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(solution->options, std::vector<int>{0});
}

TEST(Layout, AWholeChainChangesTogether) {
  // Each layer saves 0.5 ms; only all ten together pay for two conversions of 2 ms: 10 * 1.5 + 4 = 19 < 20.
  const std::vector<std::vector<LayoutProblem::Option>> sites(10,
                                                              {option(2, "row", "row"), option(1.5, "nhwc", "nhwc")});
  const auto solution = solve_layout(chain(sites, 2));
  ASSERT_TRUE(solution.ok());
  EXPECT_DOUBLE_EQ(solution->ms, 19);
}

TEST(Layout, OneConversionServesAllReaders) {
  LayoutProblem problem;
  problem.sites = {{option(1, "row", "row")}, {option(1, "nhwc", "row")}};
  problem.nodes = {{0, {0}, {1}}, {1, {1}, {2}}, {1, {1}, {3}}};
  problem.num_values = 4;
  problem.row_values = {2, 3};
  problem.reformat_ms = [](int, const std::string&, const std::string&) { return 0.25; };
  const auto solution = solve_layout(problem);
  ASSERT_TRUE(solution.ok());
  EXPECT_DOUBLE_EQ(solution->ms, 3.25);
}

TEST(Layout, ImpossibleConversionsAreAvoidedOrAnError) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto avoided =
      solve_layout(chain({{option(9, "row", "row"), option(1, "vendor.x/1", "vendor.x/1")}}, infinity));
  ASSERT_TRUE(avoided.ok());
  EXPECT_EQ(avoided->options, std::vector<int>{0});
  const auto impossible = solve_layout(chain({{option(1, "vendor.x/1", "vendor.x/1")}}, infinity));
  ASSERT_FALSE(impossible.ok());
  EXPECT_EQ(impossible.status().code(), Code::kNotFound);
}

TEST(Layout, InputsThatDoNotMatterCostNothing) {
  LayoutProblem problem;
  problem.sites = {{{1, {"row", ""}, {"row"}}}};
  problem.nodes = {{0, {0, -1}, {1}}};
  problem.num_values = 2;
  problem.row_values = {1};
  problem.reformat_ms = [](int, const std::string&, const std::string&) { return 100.0; };
  EXPECT_DOUBLE_EQ(solve_layout(problem)->ms, 1);
}

TEST(Layout, AConversionCostsALaunch) {
  // 0.5 ms saved by two conversions of 0.2 ms.
  LayoutProblem problem = chain({{option(2, "row", "row"), option(1.5, "nhwc", "nhwc")}}, 0.2);
  EXPECT_EQ(solve_layout(problem)->options, std::vector<int>{1});
  problem.launch_ms = 0.1;
  EXPECT_EQ(solve_layout(problem)->options, std::vector<int>{0});
}

TEST(Layout, StretchesOfAChainChangeTogether) {
  // Six layers that are fastest in two formats in turns; a format that all of them know costs 0.1 ms more each, and
  // saves five conversions of 0.15 ms, but one layer or two would save less than they lose. Another six with another
  // such format.
  std::vector<std::vector<LayoutProblem::Option>> sites;
  for (const std::string common : {"nhwc", "nchw8c"}) {
    for (int i = 0; i < 6; ++i) {
      const std::string own = i % 2 == 0 ? "nchw16c" : "nchw32c";
      sites.push_back({option(1, own, own), option(1.1, common, common)});
    }
    sites.push_back({option(1, "row", "row")});
  }
  const auto solution = solve_layout(chain(sites, 0.15));
  ASSERT_TRUE(solution.ok());
  EXPECT_NEAR(solution->ms, 12 * 1.1 + 2 + 4 * 0.15, 1e-9);
}

}  // namespace
}  // namespace tenon
