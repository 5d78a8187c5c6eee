#include "pipeline/nms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon::pipeline {
namespace {

Candidate candidate(RelativeBox box, float score, int class_id = 0) { return {box, class_id, score, score}; }

TEST(Iou, HandComputedValues) {
  const RelativeBox unit{0.5f, 0.5f, 1, 1};
  EXPECT_FLOAT_EQ(iou(unit, unit), 1);
  EXPECT_FLOAT_EQ(iou(unit, {1.0f, 0.5f, 1, 1}), 0.5f / 1.5f);  // half of each overlaps
  EXPECT_FLOAT_EQ(iou(unit, {0.5f, 0.5f, 0.5f, 0.5f}), 0.25f);  // one inside the other
  EXPECT_EQ(iou(unit, {1.5f, 0.5f, 1, 1}), 0);                  // they touch
  EXPECT_EQ(iou(unit, {5, 5, 1, 1}), 0);
  EXPECT_EQ(iou({0.5f, 0.5f, 0, 0}, {0.5f, 0.5f, 0, 0}), 0);  // no area
}

TEST(Diou, HandComputedValues) {
  // Unit squares half a side apart: IoU 1/3, d = 0.25, c = 1.5^2 + 1 = 3.25.
  const float expected = static_cast<float>(1.0 / 3 - std::pow(0.25 / 3.25, 0.6));
  EXPECT_NEAR(diou({0.5f, 0.5f, 1, 1}, {1.0f, 0.5f, 1, 1}), expected, 1e-6);
  EXPECT_FLOAT_EQ(diou({0.5f, 0.5f, 1, 1}, {0.5f, 0.5f, 1, 1}), 1);
  EXPECT_EQ(diou({0.5f, 0.5f, 0, 0}, {0.5f, 0.5f, 0, 0}), 0);
}

TEST(Suppress, DiouKeepsANeighbourThatIouDrops) {
  // Shifted by 0.35 of their width: IoU 0.65 / 1.35 = 0.48; DIoU 0.48 - (0.1225 / 2.8225)^0.6 = 0.33.
  const std::vector<Candidate> pair{candidate({0.5f, 0.5f, 1, 1}, 0.9f), candidate({0.85f, 0.5f, 1, 1}, 0.8f)};
  EXPECT_EQ(suppress(pair, 0.45f, NmsKind::kIou).size(), 1u);
  EXPECT_EQ(suppress(pair, 0.45f, NmsKind::kDiou).size(), 2u);
}

TEST(Suppress, ClassesDoNotSuppressEachOther) {
  const RelativeBox box{0.5f, 0.5f, 1, 1};
  const auto kept =
      suppress({candidate(box, 0.5f, 0), candidate(box, 0.9f, 1), candidate(box, 0.4f, 1)}, 0.45f, NmsKind::kIou);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].class_id, 1);
  EXPECT_EQ(kept[1].class_id, 0);
}

TEST(Suppress, ADroppedBoxDropsNobody) {
  // In a row, each overlaps its neighbour with IoU 0.6 / 1.4 = 0.43 > 0.4, but the first and third only 0.2 / 1.8.
  const auto kept = suppress(
      {candidate({0.5f, 0.5f, 1, 1}, 0.9f), candidate({0.9f, 0.5f, 1, 1}, 0.8f), candidate({1.3f, 0.5f, 1, 1}, 0.7f)},
      0.4f, NmsKind::kIou);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_FLOAT_EQ(kept[1].score, 0.7f);
}

TEST(Suppress, TheThresholdItselfIsKept) {
  const std::vector<Candidate> pair{candidate({0.5f, 0.5f, 1, 1}, 0.9f), candidate({0.5f, 0.5f, 0.5f, 0.5f}, 0.8f)};
  EXPECT_EQ(suppress(pair, 0.25f, NmsKind::kIou).size(), 2u);
  EXPECT_EQ(suppress(pair, 0.2499f, NmsKind::kIou).size(), 1u);
}

TEST(Suppress, EqualScoresKeepTheirOrder) {
  const auto kept =
      suppress({candidate({0.1f, 0.1f, 0.1f, 0.1f}, 0.5f, 3), candidate({0.9f, 0.1f, 0.1f, 0.1f}, 0.5f, 1),
                candidate({0.1f, 0.1f, 0.1f, 0.1f}, 0.5f, 3)},
               0.45f, NmsKind::kIou);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].class_id, 3);
  EXPECT_EQ(kept[1].class_id, 1);
}

TEST(Suppress, NothingOfNothing) { EXPECT_TRUE(suppress({}, 0.45f, NmsKind::kDiou).empty()); }

TEST(NmsKindOf, TheLastHeadDecides) {
  DetectionMetadata metadata;
  EXPECT_EQ(nms_kind_of(metadata), NmsKind::kIou);
  metadata.heads.resize(2);
  metadata.heads[0].nms_kind = "greedynms";
  EXPECT_EQ(nms_kind_of(metadata), NmsKind::kIou);
  metadata.heads[1].nms_kind = "greedynms";
  EXPECT_EQ(nms_kind_of(metadata), NmsKind::kDiou);
}

}  // namespace
}  // namespace tenon::pipeline
