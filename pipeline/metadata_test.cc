#include "pipeline/metadata.h"

#include <gtest/gtest.h>

namespace tenon::pipeline {
namespace {

constexpr const char* kExample =
    R"({"heads":[{"output":"layer121","kind":"yolo","classes":80,"coords":4,"anchors":[[115,73],[119,199],[242,238]],)"
    R"("anchor_unit":"pixel","scale_x_y":1.05,"nms_kind":"greedynms","softmax":false}],)"
    R"("net":{"width":320,"height":256,"channels":3}})";

nlohmann::json example() { return nlohmann::json::parse(kExample); }

std::string failure(const nlohmann::json& json) {
  const auto result = detection_metadata_from_json(json);
  return result.ok() ? "" : result.status().message();
}

TEST(Metadata, ReadsTheImportersForm) {
  const auto metadata = detection_metadata_from_text(kExample);
  ASSERT_TRUE(metadata.ok()) << metadata.status().message();
  EXPECT_EQ(metadata->net_width, 320);
  EXPECT_EQ(metadata->net_height, 256);
  ASSERT_EQ(metadata->heads.size(), 1u);
  const HeadMetadata& head = metadata->heads[0];
  EXPECT_EQ(head.output, "layer121");
  EXPECT_EQ(head.kind, HeadKind::kYolo);
  EXPECT_EQ(head.channels(), 255);
  EXPECT_FLOAT_EQ(head.anchors[2][1], 238);
  EXPECT_TRUE(head.anchors_in_pixels);
  EXPECT_FLOAT_EQ(head.scale_x_y, 1.05f);
  EXPECT_EQ(head.nms_kind, "greedynms");
}

TEST(Metadata, DefaultsOfARegionHead) {
  const auto metadata = detection_metadata_from_text(
      R"({"heads":[{"output":"o","kind":"region","classes":1,"anchors":[[1.5,2]]}],"net":{"width":1,"height":1}})");
  ASSERT_TRUE(metadata.ok()) << metadata.status().message();
  EXPECT_FALSE(metadata->heads[0].anchors_in_pixels);
  EXPECT_EQ(metadata->heads[0].coords, 4);
  EXPECT_EQ(metadata->net_channels, 3);
}

TEST(Metadata, WritingAndReadingGivesEqualValues) {
  DetectionMetadata metadata = *detection_metadata_from_text(kExample);
  metadata.labels = {"a", "b"};
  const auto again = detection_metadata_from_text(to_json(metadata).dump());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(to_json(*again), to_json(metadata));
  EXPECT_EQ(again->labels, metadata.labels);
  EXPECT_EQ(again->heads[0].scale_x_y, metadata.heads[0].scale_x_y);
}

TEST(Metadata, NamesTheWrongField) {
  nlohmann::json json = example();
  json["heads"][0]["kind"] = "ssd";
  EXPECT_NE(failure(json).find("heads[0].kind: expected region or yolo, found \"ssd\""), std::string::npos)
      << failure(json);
  json = example();
  json["heads"][0]["anchors"][1] = {1};
  EXPECT_NE(failure(json).find("heads[0].anchors[1]"), std::string::npos);
  json = example();
  json["heads"][0]["classes"] = 1e30;
  EXPECT_NE(failure(json).find("classes"), std::string::npos);
  json = example();
  json["net"].erase("width");
  EXPECT_NE(failure(json).find("net.width"), std::string::npos);
  json = example();
  json["heads"] = nlohmann::json::array();
  EXPECT_FALSE(failure(json).empty());
  EXPECT_FALSE(failure(nlohmann::json(3)).empty());
  EXPECT_FALSE(detection_metadata_from_text("{\"heads\":").ok());
}

TEST(Metadata, NoWrongTypeOfAnyFieldCrashes) {
  const nlohmann::json values[] = {nullptr, true, -1, 18446744073709551615u, 1e300, "text", {1, 2}, {{"a", 1}}};
  const nlohmann::json head = example()["heads"][0];
  for (const auto& [key, unused] : head.items()) {
    for (const auto& value : values) {
      nlohmann::json json = example();
      json["heads"][0][key] = value;
      (void)failure(json);
    }
  }
}

}  // namespace
}  // namespace tenon::pipeline
