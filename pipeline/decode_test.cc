#include "pipeline/decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "pipeline/testing/golden.h"

namespace tenon::pipeline {
namespace {

using testing::GoldenCase;

HeadMetadata region_head() {
  HeadMetadata head;
  head.output = "layer18";
  head.kind = HeadKind::kRegion;
  head.classes = 2;
  head.anchors = {{1.0f, 2.0f}};
  head.anchors_in_pixels = false;
  return head;
}

/// A 2 x 2 grid in which only cell x=1, y=0 has an object: raw (0, 0, 0, ln 2, 0) and the given class values, so that
/// after the logistic x, y and objectness are 0.5.
std::vector<float> region_values(float class0, float class1) {
  std::vector<float> values(7 * 4, 0.0f);
  const float cell[] = {0.5f, 0.5f, 0.0f, std::log(2.0f), 0.5f, class0, class1};
  for (int c = 0; c < 7; ++c) values[c * 4 + 1] = cell[c];
  return values;
}

Geometry unit_geometry() { return *plan_geometry(Resize::kStretch, 1, 1, 64, 64); }

TEST(DecodeHead, RegionExampleWithSoftmax) {
  const auto values = region_values(0.25f, 0.75f);  // softmax of (0, ln 3)
  std::vector<Candidate> found;
  ASSERT_TRUE(decode_head(region_head(), {values, 7, 2, 2}, unit_geometry(), 0.1f, found).ok());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_FLOAT_EQ(found[0].box.x, 0.75f);
  EXPECT_FLOAT_EQ(found[0].box.y, 0.25f);
  EXPECT_FLOAT_EQ(found[0].box.width, 0.5f);
  EXPECT_FLOAT_EQ(found[0].box.height, 2.0f);
  EXPECT_FLOAT_EQ(found[0].objectness, 0.5f);
  EXPECT_EQ(found[0].class_id, 0);
  EXPECT_FLOAT_EQ(found[0].score, 0.125f);
  EXPECT_EQ(found[1].class_id, 1);
  EXPECT_FLOAT_EQ(found[1].score, 0.375f);
}

TEST(DecodeHead, RegionExampleWithLogisticClasses) {
  const auto values = region_values(0.5f, 0.75f);  // logistic of 0 and ln 3
  std::vector<Candidate> found;
  ASSERT_TRUE(decode_head(region_head(), {values, 7, 2, 2}, unit_geometry(), 0.1f, found).ok());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_FLOAT_EQ(found[0].score, 0.25f);
  EXPECT_FLOAT_EQ(found[1].score, 0.375f);
}

TEST(DecodeHead, ThresholdsAreStrict) {
  const auto values = region_values(0.25f, 0.75f);
  std::vector<Candidate> found;
  ASSERT_TRUE(decode_head(region_head(), {values, 7, 2, 2}, unit_geometry(), 0.5f, found).ok());
  EXPECT_TRUE(found.empty());  // objectness is 0.5, not greater
  ASSERT_TRUE(decode_head(region_head(), {values, 7, 2, 2}, unit_geometry(), 0.375f, found).ok());
  EXPECT_TRUE(found.empty());  // the better score is 0.375, not greater
}

TEST(DecodeHead, YoloAnchorsArePixelsOfANetworkThatIsNotSquare) {
  HeadMetadata head = region_head();
  head.kind = HeadKind::kYolo;
  head.anchors = {{10, 20}, {272, 160}};
  head.anchors_in_pixels = true;
  // 34 x 20 cells of a 1088 x 640 network; the second anchor of cell x=16, y=9.
  const int plane = 34 * 20;
  std::vector<float> values(14 * plane, 0.0f);
  const float cell[] = {1.0f, 1.0f, 0.0f, std::log(0.5f), 0.9f, 0.0f, 1.0f};
  for (int c = 0; c < 7; ++c) values[(7 + c) * plane + 9 * 34 + 16] = cell[c];
  const auto geometry = plan_geometry(Resize::kStretch, 2176, 1280, 1088, 640);
  const DetectionMetadata metadata{{head}, 1088, 640, 3, {}};
  const HeadValues input{values, 14, 20, 34};
  const auto found = detect(metadata, {&input, 1}, *geometry, {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 1u);
  const Detection& d = (*found)[0];
  EXPECT_EQ(d.class_id, 1);
  EXPECT_FLOAT_EQ(d.score, 0.9f);
  EXPECT_NEAR(d.box.width, 2 * 272, 1e-3);  // twice the network's size
  EXPECT_NEAR(d.box.height, 2 * 80, 1e-3);
  EXPECT_NEAR(d.box.left, 1088 - 272, 1e-3);  // centre (17/34, 10/20) is the centre of the picture
  EXPECT_NEAR(d.box.top, 640 - 80, 1e-3);
}

TEST(DecodeHead, RefusesAnotherShape) {
  const auto values = region_values(0.25f, 0.75f);
  std::vector<Candidate> found;
  const Status status = decode_head(region_head(), {values, 14, 2, 1}, unit_geometry(), 0.1f, found);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("layer18"), std::string::npos) << status.message();
  EXPECT_FALSE(decode_head(region_head(), {std::span(values).first(27), 7, 2, 2}, unit_geometry(), 0.1f, found).ok());
  EXPECT_FALSE(detect({}, std::vector<HeadValues>(1), unit_geometry(), {}).ok());
}

TEST(DecodeHead, AnOverflowIsAnErrorAndNotAnEmptyResult) {
  std::vector<Candidate> found;
  auto values = region_values(0.25f, 0.75f);
  values[4 * 4 + 2] = std::numeric_limits<float>::quiet_NaN();  // objectness of another cell
  EXPECT_FALSE(decode_head(region_head(), {values, 7, 2, 2}, unit_geometry(), 0.1f, found).ok());
  values = region_values(0.25f, 0.75f);
  values[2 * 4 + 1] = 1000;  // exp overflows
  EXPECT_FALSE(decode_head(region_head(), {values, 7, 2, 2}, unit_geometry(), 0.1f, found).ok());
}

/// The heads of a model as its cfg gives them.
DetectionMetadata metadata_of(const std::string& model) {
  const auto head = [](const char* output, int classes, std::vector<std::array<float, 2>> anchors) {
    HeadMetadata h;
    h.output = output;
    h.classes = classes;
    h.anchors = std::move(anchors);
    h.nms_kind = "greedynms";
    return h;
  };
  if (model == "face-tiny-region") {
    HeadMetadata h = head("act_18", 1,
                          {{1.603231f, 2.094468f},
                           {6.041143f, 7.080126f},
                           {2.882459f, 3.518061f},
                           {4.266906f, 5.178857f},
                           {9.041765f, 10.66308f}});
    h.kind = HeadKind::kRegion;
    h.anchors_in_pixels = false;
    h.nms_kind = "default";
    return {{h}, 416, 416, 3, {}};
  }
  if (model == "yolo-fastest-1.1-body") {
    return {
        {head("act_121", 1, {{64, 187}, {123, 211}, {227, 264}}), head("act_130", 1, {{7, 17}, {20, 50}, {45, 99}})},
        320,
        320,
        3,
        {}};
  }
  if (model == "yolo-fastest-1.1-coco") {
    return {{head("act_121", 80, {{115, 73}, {119, 199}, {242, 238}}),
             head("act_130", 80, {{12, 18}, {37, 49}, {52, 132}})},
            320,
            320,
            3,
            {}};
  }
  return {
      {head("act_69", 80, {{115, 74}, {119, 199}, {243, 238}}), head("act_79", 80, {{12, 18}, {37, 49}, {52, 132}})},
      320,
      320,
      3,
      {}};
}

Geometry geometry_of(const nlohmann::json& input) {
  const Resize resize = input["resize"] == "stretch" ? Resize::kStretch : Resize::kLetterbox;
  const auto& shape = input["tensor"]["shape"];
  return *plan_geometry(resize, input["image_size"][0], input["image_size"][1], shape[3], shape[2]);
}

/// A stored head, or nothing when it is not stored in full.
struct StoredHead {
  std::vector<float> values;
  HeadValues view() const { return {values, channels, height, width}; }
  int channels = 0;
  int height = 0;
  int width = 0;
};

StoredHead stored_head(const GoldenCase& golden, const nlohmann::json& json, const std::string& name) {
  const auto& output = json["outputs"][name];
  StoredHead head;
  if (output["stored"] != "full") return head;
  head.values = testing::read_floats(golden.folder() / output["file"].get<std::string>());
  head.channels = output["shape"][1];
  head.height = output["shape"][2];
  head.width = output["shape"][3];
  return head;
}

struct Tolerance {
  double score;
  double box;
};
// Same input tensor and same batch-norm: from the golden README. The other Darknet differs in its batch-norm; the cases
// themselves record score differences up to 1.6e-5 for this model's lists, boxes move by up to 0.2 px.
constexpr Tolerance kSameReference{2e-5, 0.01};
constexpr Tolerance kOtherReference{2e-4, 0.5};

void expect_equal(const Detection& found, const nlohmann::json& expected, const Tolerance& tolerance) {
  EXPECT_EQ(found.class_id, expected["class"].get<int>());
  EXPECT_NEAR(found.score, expected["score"].get<double>(), tolerance.score);
  EXPECT_NEAR(found.objectness, expected["objectness"].get<double>(), tolerance.score);
  const auto& box = expected["box_xyxy_px"];
  EXPECT_NEAR(found.box.left, box[0].get<double>(), tolerance.box);
  EXPECT_NEAR(found.box.top, box[1].get<double>(), tolerance.box);
  EXPECT_NEAR(found.box.left + found.box.width, box[2].get<double>(), tolerance.box);
  EXPECT_NEAR(found.box.top + found.box.height, box[3].get<double>(), tolerance.box);
}

class FullHeads : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(FullHeads, GiveTheListsOfBothDarknets) {
  TENON_NEED_DATA(GetParam().json_path());
  const auto json = testing::read_json(GetParam().json_path());
  const DetectionMetadata metadata = metadata_of(GetParam().model);
  const bool fork_is_reference = json["reference"].get<std::string>().find("fork") != std::string::npos;
  std::vector<StoredHead> stored;
  std::vector<HeadValues> heads;
  for (const HeadMetadata& head : metadata.heads) stored.push_back(stored_head(GetParam(), json, head.output));
  for (const StoredHead& head : stored) heads.push_back(head.view());
  for (const auto& [title, expected] : json["detections"].items()) {
    SCOPED_TRACE(title);
    const bool is_fork = title.starts_with("fork");
    DetectOptions options;
    options.threshold = std::stof(title.substr(title.rfind(' ') + 1));
    options.nms_kind = is_fork ? NmsKind::kDiou : NmsKind::kIou;
    const auto found = detect(metadata, heads, geometry_of(json["input"]), options);
    ASSERT_TRUE(found.ok()) << found.status().message();
    ASSERT_EQ(found->size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expect_equal((*found)[i], expected[i], is_fork == fork_is_reference ? kSameReference : kOtherReference);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, FullHeads,
                         ::testing::Values(GoldenCase{"face-tiny-region", "astronaut_letter"},
                                           GoldenCase{"face-tiny-region", "person_letter"},
                                           GoldenCase{"yolo-fastest-1.1-body", "astronaut_letter"},
                                           GoldenCase{"yolo-fastest-1.1-body", "person_stretch"}),
                         testing::test_name);

RelativeBox relative(const Box& box, const Geometry& geometry) {
  const float width = static_cast<float>(geometry.image_width);
  const float height = static_cast<float>(geometry.image_height);
  return {(box.left + box.width / 2) / width, (box.top + box.height / 2) / height, box.width / width,
          box.height / height};
}

RelativeBox relative(const nlohmann::json& center) {
  return {center[0].get<float>(), center[1].get<float>(), center[2].get<float>(), center[3].get<float>()};
}

class OneFullHead : public ::testing::TestWithParam<GoldenCase> {};

// Of these cases one head of two is stored in full. Each detection of that head alone must be in the reference list, or
// be one that a better detection of the list, from the other head, suppresses.
TEST_P(OneFullHead, GivesItsPartOfTheList) {
  TENON_NEED_DATA(GetParam().json_path());
  const auto json = testing::read_json(GetParam().json_path());
  const DetectionMetadata all = metadata_of(GetParam().model);
  const DetectionMetadata metadata{{all.heads[0]}, all.net_width, all.net_height, 3, {}};
  const StoredHead stored = stored_head(GetParam(), json, metadata.heads[0].output);
  const HeadValues head = stored.view();
  const Geometry geometry = geometry_of(json["input"]);
  const auto found = detect(metadata, {&head, 1}, geometry, {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  const auto& list = json["detections"]["fork thresh 0.25"];
  std::size_t in_list = 0;
  for (const Detection& one : *found) {
    SCOPED_TRACE(one.score);
    const auto same = std::find_if(list.begin(), list.end(), [&](const nlohmann::json& expected) {
      return one.class_id == expected["class"].get<int>() &&
             std::fabs(one.score - expected["score"].get<double>()) <= kSameReference.score;
    });
    if (same != list.end()) {
      expect_equal(one, *same, kSameReference);
      ++in_list;
      continue;
    }
    EXPECT_TRUE(std::any_of(list.begin(), list.end(), [&](const nlohmann::json& better) {
      return one.class_id == better["class"].get<int>() && better["score"].get<double>() > one.score &&
             diou(relative(better["box_center_rel"]), relative(one.box, geometry)) > kDefaultNmsThreshold;
    }));
  }
  EXPECT_GE(in_list, 1u);
}

INSTANTIATE_TEST_SUITE_P(Golden, OneFullHead,
                         ::testing::Values(GoldenCase{"yolo-fastest-1.1-coco", "dog_stretch"},
                                           GoldenCase{"yolo-fastest-1.1-coco", "dog_letter"},
                                           GoldenCase{"yolo-fastest-1.1-coco", "person_stretch"},
                                           GoldenCase{"yolo-fastest-1.1-coco", "astronaut_letter"},
                                           GoldenCase{"mobilenetv2-yolov3-nano-coco", "dog_stretch"},
                                           GoldenCase{"mobilenetv2-yolov3-nano-coco", "person_letter"}),
                         testing::test_name);

}  // namespace
}  // namespace tenon::pipeline
