// Golden cases for tests: the JSON of a case and its stored tensors.
#ifndef TENON_PIPELINE_TESTING_GOLDEN_H
#define TENON_PIPELINE_TESTING_GOLDEN_H

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "pipeline/npy.h"
#include "tests/support/data_dirs.h"

namespace tenon::pipeline::testing {

inline nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
}

/// The float32 values of a .npy file; a test failure and no values when it cannot be read.
inline std::vector<float> read_floats(const std::filesystem::path& path) {
  const Result<NpyArray> array = read_npy(path);
  if (!array.ok() || array->type != NpyType::kF4) {
    ADD_FAILURE() << path << ": " << array.status().message();
    return {};
  }
  std::vector<float> values(array->elements());
  std::memcpy(values.data(), array->bytes.data(), array->bytes.size());
  return values;
}

/// One folder/case of the golden outputs.
struct GoldenCase {
  std::string model;
  std::string name;

  std::filesystem::path folder() const { return tenon::testing::golden_dir() / model; }
  std::filesystem::path json_path() const { return folder() / (name + ".json"); }
};

inline std::ostream& operator<<(std::ostream& out, const GoldenCase& golden) {
  return out << golden.model << "/" << golden.name;
}

/// A GoogleTest name of letters, digits and underscores.
inline std::string test_name(const ::testing::TestParamInfo<GoldenCase>& info) {
  std::string name = info.param.model + "_" + info.param.name;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

/// The cases of Darknet models that start from a picture.
inline std::vector<GoldenCase> darknet_picture_cases() {
  return {{"darknet-tiny-imagenet", "dog_stretch"},        {"darknet-tiny-imagenet", "person_letter"},
          {"face-tiny-region", "astronaut_letter"},        {"face-tiny-region", "person_letter"},
          {"mobilenetv2-yolov3-nano-coco", "dog_stretch"}, {"mobilenetv2-yolov3-nano-coco", "person_letter"},
          {"yolo-fastest-1.1-body", "astronaut_letter"},   {"yolo-fastest-1.1-body", "person_stretch"},
          {"yolo-fastest-1.1-coco", "astronaut_letter"},   {"yolo-fastest-1.1-coco", "dog_letter"},
          {"yolo-fastest-1.1-coco", "dog_stretch"},        {"yolo-fastest-1.1-coco", "person_stretch"}};
}

}  // namespace tenon::pipeline::testing

#endif  // TENON_PIPELINE_TESTING_GOLDEN_H
