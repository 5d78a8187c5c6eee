// The pipelines of configs/ for ONNX models on pictures: the objects that the models' READMEs list.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "pipeline/labels.h"
#include "tests/onnx/published_models.h"

namespace tenon::e2e {
namespace {

/// What the models' READMEs list for pictures, found by another program: scores of three digits, boxes of one decimal.
/// For horses.jpg the README has scores of a picture of 415 columns: 773 * (416 / 773) cut to an integer. Those here
/// are of ONNX Runtime and a NumPy script, for 416.
struct Listed {
  const char* config;
  const char* image;
  std::vector<std::tuple<int, double, std::vector<float>>> found;  ///< class, score, corners where listed
};
std::ostream& operator<<(std::ostream& out, const Listed& listed) {
  return out << listed.config << ", " << listed.image;
}
class Configs : public ::testing::TestWithParam<Listed> {};
TEST_P(Configs, FindWhatTheReadmeLists) {
  if (const std::string reason = why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
  setenv("TENON_MODELS_DIR", tenon::testing::models_dir().c_str(), 1);
  const fs::path path = tenon::testing::source_dir() / "configs" / (std::string(GetParam().config) + ".yaml");
  TENON_NEED_DATA(tenon::testing::models_dir() / GetParam().config);
  const fs::path image = tenon::testing::images_dir() / GetParam().image;
  TENON_NEED_DATA(image);
  const auto config = pipeline::load_config(path);
  ASSERT_TRUE(config.ok()) << config.status().message();
  Result<Engineered> made = engineer(config->model.file);
  ASSERT_TRUE(made.ok()) << made.status().message();
  pipeline::Runner runner = pipeline::Runner::create(made->engine).value();
  runner.settings() = pipeline::settings_of(*config).value();
  const auto result = runner.run_image(image, nullptr);
  ASSERT_TRUE(result.ok()) << result.status().message();
  json expected = json::array();
  for (const auto& [class_id, score, box] : GetParam().found) {
    expected.push_back({{"class", class_id}, {"score", score}});
    if (!box.empty()) expected.back()["box_xyxy_px"] = box;
  }
  compare_detections(expected, result->detections, 0.01, 2.0f);
}

std::string config_name(const ::testing::TestParamInfo<Listed>& info) {
  std::string name = std::string(info.param.config) + "_" + info.param.image;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(
    Models, Configs,
    ::testing::Values(Listed{"onnx-yolox-nano",
                             "person.jpg",
                             {{0, 0.880, {188.4f, 97.0f, 276.5f, 371.2f}},
                              {16, 0.872, {62.4f, 262.9f, 200.5f, 348.4f}},
                              {17, 0.869, {404.0f, 138.0f, 602.4f, 342.8f}}}},
                      Listed{"onnx-yolox-nano",
                             "dog.jpg",
                             {{16, 0.855, {132.8f, 206.6f, 325.7f, 543.1f}},
                              {1, 0.804, {55.5f, 137.1f, 572.2f, 423.4f}},
                              {2, 0.797, {466.2f, 78.4f, 692.4f, 171.3f}},
                              {7, 0.306, {}}}},
                      Listed{"onnx-yolox-nano",
                             "horses.jpg",
                             {{17, 0.805, {0.0f, 186.3f, 341.7f, 410.9f}},
                              {17, 0.621, {244.6f, 169.4f, 431.9f, 363.1f}},
                              {17, 0.573, {438.9f, 211.3f, 597.0f, 345.6f}},
                              {19, 0.486, {436.2f, 212.7f, 598.2f, 344.3f}}}},
                      Listed{"onnx-nanodet-m",
                             "dog.jpg",
                             {{1, 0.663, {138.8f, 148.0f, 569.3f, 418.2f}},
                              {2, 0.483, {459.6f, 79.8f, 688.8f, 169.1f}},
                              {0, 0.444, {}},
                              {15, 0.402, {}}}},
                      Listed{"onnx-nanodet-m",
                             "person.jpg",
                             {{16, 0.683, {65.3f, 264.4f, 204.6f, 348.9f}},
                              {17, 0.539, {403.9f, 138.9f, 605.9f, 338.9f}},
                              {0, 0.446, {176.5f, 105.6f, 280.8f, 381.8f}}}},
                      Listed{"onnx-ultraface-rfb-320", "astronaut.png", {{0, 1.000, {179.1f, 62.7f, 269.3f, 173.4f}}}},
                      Listed{"onnx-ultraface-rfb-320", "person.jpg", {}},
                      Listed{"onnx-yunet-2023mar", "astronaut.png", {{0, 0.943, {178.9f, 63.3f, 269.7f, 174.1f}}}}),
    config_name);

}  // namespace
}  // namespace tenon::e2e
