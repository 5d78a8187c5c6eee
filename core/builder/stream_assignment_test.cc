// Which layers go to which stream, for graphs whose best assignment is plain to see.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/builder/streams.h"
#include "core/plan/streams.h"

namespace tenon {
namespace {

int events_of(const StreamProblem& problem, const StreamAssignment& assignment) {
  return StreamOrder(assignment.streams,
                     [&](std::size_t earlier, std::size_t later) {
                       return std::count(problem.needs[later].begin(), problem.needs[later].end(), earlier) != 0;
                     })
      .events();
}

TEST(StreamAssignment, AChainStaysOnItsStream) {
  const StreamAssignment chain = assign_streams({{1, 2, 3, 4}, {{}, {0}, {1}, {2}}}, 4);
  EXPECT_EQ(chain.count, 1);
  EXPECT_EQ(chain.streams, (std::vector<int>{0, 0, 0, 0}));
  EXPECT_DOUBLE_EQ(chain.ms, 10);
  EXPECT_EQ(assign_streams({{}, {}}, 4).count, 1);
}

TEST(StreamAssignment, InADiamondTheLongerBranchKeepsTheStream) {
  const StreamProblem short_first{{1, 1, 5, 1}, {{}, {0}, {0}, {1, 2}}};
  const StreamAssignment a = assign_streams(short_first, 4);
  EXPECT_EQ(a.streams, (std::vector<int>{0, 1, 0, 0}));
  EXPECT_EQ(events_of(short_first, a), 2);
  EXPECT_DOUBLE_EQ(a.ms, 7);
  EXPECT_EQ(assign_streams({{1, 5, 1, 1}, {{}, {0}, {0}, {1, 2}}}, 4).streams, (std::vector<int>{0, 0, 1, 0}));
}

TEST(StreamAssignment, AJoinContinuesWhereTheLongestBranchEnds) {
  // The heir of 0 is 1 (6 to the end), but the branch over 2 and 3 has no longer way and ends first.
  const StreamProblem problem{{1, 5, 2, 2, 1, 1}, {{}, {0}, {0}, {2}, {1, 3}, {4}}};
  const StreamAssignment assignment = assign_streams(problem, 4);
  EXPECT_EQ(assignment.streams, (std::vector<int>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(events_of(problem, assignment), 2);
}

TEST(StreamAssignment, AShortBranchIsNotMoved) {
  const StreamAssignment assignment = assign_streams({{1, 0.001, 5, 1}, {{}, {0}, {0}, {1, 2}}}, 4);
  EXPECT_EQ(assignment.count, 1);
}

TEST(StreamAssignment, IndependentLayersFillTheStreamsThatThereAre) {
  const StreamProblem six{{3, 3, 2, 2, 1, 1}, {{}, {}, {}, {}, {}, {}}};
  const StreamAssignment two = assign_streams(six, 2);
  EXPECT_EQ(two.count, 2);
  EXPECT_DOUBLE_EQ(two.ms, 6);
  const StreamAssignment four = assign_streams(six, 4);
  EXPECT_EQ(four.count, 4);
  EXPECT_DOUBLE_EQ(four.ms, 3);
  EXPECT_EQ(assign_streams(six, 1).count, 1);
}

/// The module of "Going Deeper with Convolutions", figure 2b: 1x1; 1x1, 3x3; 1x1, 5x5; pool, 1x1; concatenation (a
/// view).
TEST(StreamAssignment, AnInceptionModuleTakesOneStreamForEachBranch) {
  const StreamProblem module{{1, 0.3, 0.3, 2, 0.2, 1, 0.4, 0.2, 0, 1},
                             {{}, {0}, {0}, {2}, {0}, {4}, {0}, {6}, {1, 3, 5, 7}, {8}}};
  const StreamAssignment four = assign_streams(module, 4);
  EXPECT_EQ(four.count, 4);
  EXPECT_EQ(four.streams[0], four.streams[2]) << "the way over 3x3 is the longest";
  EXPECT_EQ(four.streams[2], four.streams[3]);
  EXPECT_EQ(four.streams[4], four.streams[5]);
  EXPECT_EQ(four.streams[6], four.streams[7]);
  EXPECT_EQ(four.streams[8], four.streams[3]);
  EXPECT_EQ(four.streams[9], four.streams[3]);
  EXPECT_EQ(events_of(module, four), 4) << "one that begins the three other branches, one at the end of each";
  EXPECT_NEAR(four.ms, 4.3, 0.01);
  const StreamAssignment two = assign_streams(module, 2);
  EXPECT_EQ(two.count, 2);
  EXPECT_EQ(two.streams[3], two.streams[9]);
  EXPECT_EQ(events_of(module, two), 2);
  EXPECT_NEAR(two.ms, 4.3, 0.01) << "the three short branches take 2.1 ms together, the long one 2.3 ms";
}

}  // namespace
}  // namespace tenon
