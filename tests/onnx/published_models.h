// What the tests of published ONNX models share: engines tuned on this machine, inputs, Python programs beside them.
//
// Engines run on $TENON_TEST_DEVICE, or the CPU. TENON_ONNX_PYTHON names a Python with numpy, onnx and onnxruntime.
#ifndef TENON_TESTS_ONNX_PUBLISHED_MODELS_H
#define TENON_TESTS_ONNX_PUBLISHED_MODELS_H

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "pipeline/builder.h"
#include "pipeline/npy.h"
#include "pipeline/runner.h"
#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {

using pipeline::NpyArray;
using Tensors = std::map<std::string, NpyArray>;

/// Largest relative l2 distance on a GPU, with tf32 off, whatever the CPU is asked for.
constexpr double kGpuRelL2 = 1e-4;
inline bool on_gpu() { return test_device() != "cpu"; }

inline const TempDir& shared_dir() {
  static const TempDir dir;
  return dir;
}

struct Engineered {
  Library library;
  Engine engine;
};

inline Result<Engineered> engineer(const fs::path& file, const std::vector<std::string>& mark_outputs = {},
                                   const std::map<std::string, std::vector<std::int64_t>>& shapes = {}) {
  TENON_ASSIGN(Library library, Library::create());
  TENON_RETURN_IF_ERROR(library.discover().status());
  pipeline::BuildRequest request;
  request.model = file;
  request.shapes = shapes;
  request.mark_outputs = mark_outputs;
  request.timing_cache = shared_dir().path() / "cache.yaml";
  request.device = test_device();
  request.config.emplace_back("on_fallback", "allow");
  // The rest is taken by the kernels' estimates, and is no less right.
  request.config.emplace_back("time_budget", "15");
  TENON_ASSIGN(const BuiltEngine built, pipeline::build_engine(library, request, nullptr));
  TENON_ASSIGN(const Engine engine, Runtime(library, test_device()).create(built.data(), built.size()));
  return Engineered{library, engine};
}

inline std::vector<float> floats(const NpyArray& array) {
  std::vector<float> values(array.elements());
  std::memcpy(values.data(), array.bytes.data(), std::min(array.bytes.size(), values.size() * sizeof(float)));
  return values;
}

/// Value i of generator "weyl" of the goldens' README, from -0.5 to 0.5.
inline float weyl(std::size_t i, std::uint32_t seed) {
  const auto u = (static_cast<std::uint32_t>(i) + seed) * 2654435761u;
  return static_cast<float>(static_cast<double>(u) / 4294967296.0 - 0.5);
}

inline std::string python() {
  const char* given = std::getenv("TENON_ONNX_PYTHON");
  return given != nullptr ? given : "/usr/bin/python3";
}

/// Why Python cannot import these; empty if it can.
inline std::string why_no_python(const std::string& packages) {
  if (run_program({python(), "-c", "import " + packages}).status == 0) return "";
  return python() + " cannot import " + packages + "; set TENON_ONNX_PYTHON to a Python that can";
}

/// Why engines cannot run on the device of the tests; empty if they can.
inline std::string why_no_device() {
  if (!on_gpu()) return "";
  Library library = Library::create().value();
  const Status found = library.discover().status();
  return found.ok() ? why_not(library, test_device()) : found.message();
}

/// The expected detections, corners in pixels where they are known, in the order of the found ones.
inline void compare_detections(const json& expected, const std::vector<pipeline::Detection>& found, double score,
                               float pixels, const std::vector<int>& offset = {0, 0}) {
  std::string text;
  for (const auto& d : found) {
    text += "\n  found class " + std::to_string(d.class_id) + " score " + std::to_string(d.score) + " box " +
            std::to_string(d.box.left) + " " + std::to_string(d.box.top) + " " + std::to_string(d.box.width) + " " +
            std::to_string(d.box.height);
  }
  ASSERT_EQ(found.size(), expected.size()) << text;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].class_id, expected[i]["class"].get<int>()) << text;
    EXPECT_NEAR(found[i].score, expected[i]["score"].get<double>(), score) << text;
    if (!expected[i].contains("box_xyxy_px")) continue;
    const std::vector<float> box = expected[i]["box_xyxy_px"];
    const pipeline::Box& b = found[i].box;
    EXPECT_NEAR(b.left + static_cast<float>(offset[0]), box[0], pixels) << text;
    EXPECT_NEAR(b.top + static_cast<float>(offset[1]), box[1], pixels) << text;
    EXPECT_NEAR(b.left + static_cast<float>(offset[0]) + b.width, box[2], pixels) << text;
    EXPECT_NEAR(b.top + static_cast<float>(offset[1]) + b.height, box[3], pixels) << text;
  }
}

}  // namespace tenon::e2e

/// Leaves a test when `reason` is not empty: like TENON_NEED_DATA.
#define TENON_NEED_NO(reason)                               \
  do {                                                      \
    if (const std::string why = (reason); !why.empty()) {   \
      if (::tenon::testing::data_required()) FAIL() << why; \
      GTEST_SKIP() << why;                                  \
    }                                                       \
  } while (false)

#endif  // TENON_TESTS_ONNX_PUBLISHED_MODELS_H
