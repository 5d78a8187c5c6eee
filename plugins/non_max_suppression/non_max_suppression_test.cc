// Expected values by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

using Floats = std::vector<float>;

class NonMaxSuppressionTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("non_max_suppression")); }
  // Three boxes: the second overlaps the first by 0.9 / 1.1, the third lies elsewhere.
  OpTester nms(const Dims& boxes_dims, const Floats& boxes, const Dims& scores_dims, const Floats& scores, int64_t most,
               float iou) {
    OpTester tester(host_, "tenon.non_max_suppression/1");
    tester.input(boxes_dims, boxes).constant().input(scores_dims, scores).constant();
    tester.input<int64_t>({}, {most}).constant().input<float>({}, {iou}).constant();
    return tester;
  }
  const Floats three_ = {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 5, 1, 6};
  TestHost host_;
};

TEST_F(NonMaxSuppressionTest, OverlapsAndLimits) {
  nms({1, 3, 4}, three_, {1, 1, 3}, {0.8f, 0.9f, 0.7f}, 5, 0.5f).expect({2, 3}, {0, 0, 1, 0, 0, 2});
  nms({1, 3, 4}, three_, {1, 1, 3}, {0.8f, 0.9f, 0.7f}, 5, 0.9f).expect({3, 3}, {0, 0, 1, 0, 0, 0, 0, 0, 2});
  nms({1, 3, 4}, three_, {1, 1, 3}, {0.8f, 0.9f, 0.7f}, 1, 0.9f).expect({1, 3}, {0, 0, 1});
}

TEST_F(NonMaxSuppressionTest, FlippedCorners) {
  const Floats flipped = {1, 1, 0, 0, 0, 1.1f, 1, 0.1f, 1, 5, 0, 6};
  nms({1, 3, 4}, flipped, {1, 1, 3}, {0.8f, 0.9f, 0.7f}, 5, 0.5f).expect({2, 3}, {0, 0, 1, 0, 0, 2});
}

TEST_F(NonMaxSuppressionTest, Centers) {
  // The same boxes as x, y of the centre, width, height.
  const Floats centers = {0.5f, 0.5f, 1, 1, 0.6f, 0.5f, 1, 1, 5.5f, 0.5f, 1, 1};
  nms({1, 3, 4}, centers, {1, 1, 3}, {0.8f, 0.9f, 0.7f}, 5, 0.5f)
      .attr("center_point_box", int64_t{1})
      .expect({2, 3}, {0, 0, 1, 0, 0, 2});
}

TEST_F(NonMaxSuppressionTest, ImagesAndClasses) {
  Floats twice = three_;
  twice.insert(twice.end(), three_.begin(), three_.end());
  nms({2, 3, 4}, twice, {2, 2, 3}, {0.8f, 0.9f, 0.7f, 0.3f, 0.1f, 0.2f, 0.8f, 0.9f, 0.7f, 0.3f, 0.1f, 0.2f}, 5, 0.5f)
      .expect({8, 3}, {0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 1, 2, 1, 0, 1, 1, 0, 2, 1, 1, 0, 1, 1, 2});
}

TEST_F(NonMaxSuppressionTest, EqualScoresAndFlatBoxes) {
  // Lower numbers first; boxes without an area overlap nothing and come once each.
  const Floats flat = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 5};
  nms({1, 3, 4}, flat, {1, 1, 3}, {0.5f, 0.5f, 0.5f}, 9, 0).expect({3, 3}, {0, 0, 0, 0, 0, 1, 0, 0, 2});
  nms({1, 3, 4}, three_, {1, 1, 3}, {0.5f, 0.5f, 0.5f}, 9, 0.5f).expect({2, 3}, {0, 0, 0, 0, 0, 2});
}

TEST_F(NonMaxSuppressionTest, ScoreThresholdIsExclusive) {
  OpTester tester = nms({1, 3, 4}, three_, {1, 1, 3}, {0.8f, 0.5f, NAN}, 9, 0.9f);
  tester.input<float>({1}, {0.5f}).constant().expect({1, 3}, {0, 0, 0});
}

TEST_F(NonMaxSuppressionTest, WithoutLimitNothingStays) {
  OpTester(host_, "tenon.non_max_suppression/1")
      .input({1, 3, 4}, three_)
      .input({1, 1, 3}, {1, 2, 3})
      .expect({0, 3}, {});
}

// No more than the limit per class, if it is known, and no more than there are boxes.
TEST_F(NonMaxSuppressionTest, Bound) {
  const auto two_classes = [&] {
    OpTester tester(host_, "tenon.non_max_suppression/1");
    tester.input({1, 3, 4}, three_).input({1, 2, 3}, {0.8f, 0.9f, 0.7f, 0.1f, 0.2f, 0.3f});
    return tester;
  };
  const std::vector<double> best = {0, 0, 1, 0, 1, 2};
  const auto filled = [](std::vector<double> values, size_t rows) { return values.resize(3 * rows), values; };
  two_classes().input<int64_t>({}, {1}).constant().expect_bound({2, 3}, best);
  two_classes().input<int64_t>({1}, {1}).expect_bound({6, 3}, filled(best, 6));
  two_classes()
      .input<int64_t>({}, {INT64_MAX})
      .constant()
      .input<float>({}, {0.5f})
      .expect_bound({6, 3}, filled({0, 0, 1, 0, 0, 2, 0, 1, 2, 0, 1, 1}, 6));
  two_classes().input<int64_t>({}, {-1}).constant().expect_bound({0, 3}, {});
  two_classes().expect_bound({0, 3}, {});
}

TEST_F(NonMaxSuppressionTest, NoBoxes) {
  OpTester tester(host_, "tenon.non_max_suppression/1");
  tester.input({1, 0, 4}, {}).input({1, 2, 0}, {}).input<int64_t>({}, {5}).constant();
  tester.expect({0, 3}, {}).expect_bound({0, 3}, {});
}

TEST_F(NonMaxSuppressionTest, Errors) {
  OpTester(host_, "tenon.non_max_suppression/1")
      .input({1, 3, 4}, three_)
      .input({1, 1, 3}, {1, 2, 3})
      .input<int64_t>({}, {3})
      .constant()
      .expect_invalid({"boxes", "known"});
  nms({1, 3, 4}, three_, {1, 1, 2}, {1, 2}, 1, 0).expect_invalid({"scores", "[1,C,3]", "[1,1,2]"});
  nms({1, 4, 3}, three_, {1, 1, 4}, {1, 2, 3, 4}, 1, 0).expect_invalid({"boxes", "[1,4,3]"});
}

}  // namespace
}  // namespace tenon::testing
