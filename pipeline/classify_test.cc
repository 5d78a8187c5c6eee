#include "pipeline/classify.h"

#include <gtest/gtest.h>

#include <limits>

#include "pipeline/labels.h"
#include "pipeline/testing/golden.h"

namespace tenon::pipeline {
namespace {

std::vector<int> ids(const std::vector<ClassScore>& classes) {
  std::vector<int> result;
  for (const ClassScore& one : classes) result.push_back(one.class_id);
  return result;
}

TEST(TopClasses, LargestFirstAndLowerClassFirstOfEquals) {
  const float values[] = {0.1f, 0.5f, 0.2f, 0.5f, 0.2f};
  EXPECT_EQ(ids(top_classes(values, 4)), (std::vector<int>{1, 3, 2, 4}));
  EXPECT_FLOAT_EQ(top_classes(values, 1)[0].score, 0.5f);
}

TEST(TopClasses, CountsBeyondTheClassesAndBelowOne) {
  const float values[] = {0.1f, 0.9f};
  EXPECT_EQ(ids(top_classes(values, 10)), (std::vector<int>{1, 0}));
  EXPECT_TRUE(top_classes(values, 0).empty());
  EXPECT_TRUE(top_classes(values, -3).empty());
  EXPECT_TRUE(top_classes({}, 5).empty());
}

TEST(TopClasses, NanIsLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float values[] = {nan, 0.1f, nan, 0.2f};
  EXPECT_EQ(ids(top_classes(values, 4)), (std::vector<int>{3, 1, 0, 2}));
}

TEST(TopClasses, AgreesWithTheReferenceList) {
  const testing::GoldenCase golden{"darknet-tiny-imagenet", "dog_stretch"};
  TENON_NEED_DATA(golden.json_path());
  const auto json = testing::read_json(golden.json_path());
  ASSERT_TRUE(json.contains("top5")) << json.dump(1).substr(0, 3000);
  const auto found = top_classes(testing::read_floats(golden.folder() / "dog_stretch.prob_21.npy"), 5);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(found[i].class_id, json["top5"][i]["class"].get<int>());
    EXPECT_NEAR(found[i].score, json["top5"][i]["score"].get<double>(), 1e-6);
  }
}

}  // namespace
}  // namespace tenon::pipeline
