#include "pipeline/results.h"

#include <gtest/gtest.h>

#include <limits>

namespace tenon::pipeline {
namespace {

RunReport example() {
  RunReport report;
  report.labels = {"person", "bicycle"};
  report.device = "cpu";
  report.timings_ms = {1.5, 2.5, 0.25};
  InputResult result;
  result.input = "dog.jpg";
  result.detections = {{1, 0.5f, 0.75f, {-5, 10, 20.5f, 30}}};
  result.classes = {{7, 0.25f}};
  result.outputs = {{"layer121", {1, 255, 10, 10}, "float32"}};
  report.results.push_back(result);
  return report;
}

TEST(RunJson, HasTheFieldsOfTheContract) {
  const auto json = nlohmann::json::parse(run_json_text(example()));
  EXPECT_EQ(json, nlohmann::json::parse(R"({
    "results": [{"input": "dog.jpg",
                 "detections": [{"class": "bicycle", "class_id": 1, "score": 0.5, "box": [-5, 10, 20.5, 30]}],
                 "classes": [{"class": "class 7", "class_id": 7, "score": 0.25}],
                 "outputs": [{"name": "layer121", "dims": [1, 255, 10, 10], "dtype": "float32"}]}],
    "timings_ms": {"preprocess": 1.5, "infer": 2.5, "postprocess": 0.25},
    "device": "cpu"})"));
}

TEST(RunJson, EmptyListsAreThere) {
  RunReport report;
  report.results.push_back({"a.npy", {}, {}, {{"scalar", {}, "int64"}}});
  const auto json = nlohmann::json::parse(run_json_text(report));
  EXPECT_TRUE(json["results"][0]["detections"].is_array());
  EXPECT_TRUE(json["results"][0]["classes"].empty());
  EXPECT_TRUE(json["results"][0]["outputs"][0]["dims"].is_array());
  EXPECT_TRUE(nlohmann::json::parse(run_json_text({}))["results"].is_array());
}

TEST(RunJson, DebugOutputsSayWhereTheyComeFrom) {
  RunReport report = example();
  report.results[0].outputs.push_back({"layer7", {2}, "float32", true, false});
  report.results[0].outputs.push_back({"layer7.conv", {2}, "float32", true, true});
  const auto outputs = nlohmann::json::parse(run_json_text(report))["results"][0]["outputs"];
  EXPECT_FALSE(outputs[0].contains("debug"));
  EXPECT_EQ(outputs[1]["debug"], true);
  EXPECT_EQ(outputs[1]["side_run"], false);
  EXPECT_EQ(outputs[2]["side_run"], true);
}

TEST(RunJson, KeepsTheOrderOfKeys) {
  const std::string text = run_json_text(example());
  EXPECT_LT(text.find("\"results\""), text.find("\"timings_ms\""));
  EXPECT_LT(text.find("\"class\""), text.find("\"class_id\""));
  EXPECT_EQ(text.back(), '\n');
}

TEST(RunJson, NoValueBreaksTheText) {
  RunReport report = example();
  report.results[0].input = "caf\xE9.jpg";  // Latin-1, not UTF-8
  report.results[0].detections[0].score = std::numeric_limits<float>::quiet_NaN();
  const auto json = nlohmann::json::parse(run_json_text(report));
  EXPECT_EQ(json["results"][0]["input"], "caf\xEF\xBF\xBD.jpg");
  EXPECT_TRUE(json["results"][0]["detections"][0]["score"].is_null());
}

}  // namespace
}  // namespace tenon::pipeline
