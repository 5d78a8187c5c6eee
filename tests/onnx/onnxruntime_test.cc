// Published ONNX models that have no golden output, or one that says little, against ONNX Runtime in the same run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "pipeline/image.h"
#include "tests/onnx/published_models.h"

namespace tenon::e2e {
namespace {

constexpr double kCpuRelL2 = 1e-5;
/// Constant weights make long sums of equal numbers, whose roundings do not cancel.
constexpr double kMarkedRelL2 = 1e-4;

/// A model, and input values (weyl + shift) * scale.
struct Compared {
  const char* folder;
  const char* file;
  double shift = 0, scale = 1;
  const char* marked = nullptr;   ///< an inner tensor to compare too
  const char* picture = nullptr;  ///< in place of weyl: its pixels, many times small, from -0.5 to 0.5
};
std::ostream& operator<<(std::ostream& out, const Compared& model) { return out << model.folder << "/" << model.file; }

double relative_l2(const std::vector<float>& found, const std::vector<float>& expected) {
  double difference = 0, total = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (double{found[i]} - double{expected[i]}) * (double{found[i]} - double{expected[i]});
    total += double{expected[i]} * double{expected[i]};
  }
  return std::sqrt(difference / total);
}

/// An input [1,3,H,W] of a picture in kTiles rows and columns of small copies, so that its objects have several sizes.
std::vector<float> tiled(const fs::path& path, const std::vector<std::int64_t>& dims) {
  constexpr std::int64_t kTiles = 8;
  const pipeline::Image image = pipeline::read_image(path).value();
  const auto pixel_of = [](std::int64_t i, std::int64_t size, int pixels) {
    return static_cast<int>(i * kTiles * pixels / size % pixels);
  };
  std::vector<float> values;
  for (int channel = 2; channel >= 0; --channel) {
    for (std::int64_t y = 0; y < dims[2]; ++y) {
      for (std::int64_t x = 0; x < dims[3]; ++x) {
        const std::uint8_t* pixel = image.pixel(pixel_of(x, dims[3], image.width), pixel_of(y, dims[2], image.height));
        values.push_back(static_cast<float>(pixel[channel]) / 255.0f - 0.5f);
      }
    }
  }
  return values;
}

class OnnxRuntime : public ::testing::TestWithParam<Compared> {};
TEST_P(OnnxRuntime, GivesTheSameOutputs) {
  const fs::path file = tenon::testing::models_dir() / GetParam().folder / GetParam().file;
  TENON_NEED_DATA(file);
  TENON_NEED_NO(why_no_python("numpy, onnx, onnxruntime"));
  if (const std::string reason = why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
  std::vector<std::string> marked;
  if (GetParam().marked != nullptr) marked.emplace_back(GetParam().marked);
  Result<Engineered> made = engineer(file, marked);
  ASSERT_TRUE(made.ok()) << made.status().message();

  const TempDir dir;
  const fs::path script = tenon::testing::source_dir() / "tests/onnx/onnxruntime_outputs.py";
  std::vector<std::string> command = {python(), script, file, dir.path()};
  Tensors inputs;
  for (const TensorInfo& info : made->engine.inputs()) {
    std::size_t count = 1;
    for (const std::int64_t size : info.dims) count *= static_cast<std::size_t>(size);
    std::vector<float> values(count);
    if (GetParam().picture != nullptr) {
      const fs::path image = tenon::testing::images_dir() / GetParam().picture;
      TENON_NEED_DATA(image);
      values = tiled(image, {info.dims.begin(), info.dims.end()});
    } else {
      for (std::size_t i = 0; i < count; ++i) values[i] = weyl(i, 0);
    }
    for (float& value : values) {
      value = static_cast<float>((double{value} + GetParam().shift) * GetParam().scale);
    }
    const fs::path path = dir.path() / ("input" + std::to_string(inputs.size()) + ".npy");
    inputs[info.name] = pipeline::npy_from_floats({info.dims.begin(), info.dims.end()}, values);
    ASSERT_TRUE(pipeline::write_npy(path, inputs[info.name]).ok());
    command.insert(command.end(), {"--input", info.name, path});
  }
  for (const std::string& name : marked) command.insert(command.end(), {"--mark", name});
  const Outcome peer = run_program(command);
  ASSERT_EQ(peer.status, 0) << peer.err;

  pipeline::Runner runner = pipeline::Runner::create(made->engine).value();
  const auto result = runner.run_tensors(inputs);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const Tensors outputs = runner.outputs().value();
  std::istringstream lines(peer.out);
  std::string number, name;
  std::size_t compared = 0;
  for (; lines >> number >> name; ++compared) {
    SCOPED_TRACE(name);
    ASSERT_EQ(outputs.count(name), 1u);
    const NpyArray expected = pipeline::read_npy(dir.path() / (number + ".npy")).value();
    EXPECT_EQ(outputs.at(name).dims, expected.dims);
    ASSERT_EQ(outputs.at(name).bytes.size(), expected.bytes.size());
    const double distance = relative_l2(floats(outputs.at(name)), floats(expected));
    const bool inner = std::find(marked.begin(), marked.end(), name) != marked.end();
    EXPECT_LE(distance, on_gpu() ? kGpuRelL2 : inner ? kMarkedRelL2 : kCpuRelL2);
    RecordProperty(name, std::to_string(distance * 1e9) + "e-9");
  }
  EXPECT_EQ(compared, outputs.size());
  EXPECT_GT(compared, 0u);
}

// YuNet's scores for noise are all next to 0, where ONNX Runtime's own sigmoid is off by percents; so it gets faces.
// The light models with a Softmax end in equal values whatever comes before, so its input is compared too.
INSTANTIATE_TEST_SUITE_P(Models, OnnxRuntime,
                         ::testing::Values(Compared{"onnx-nanodet-m", "object_detection_nanodet_2022nov.onnx", 0, 4},
                                           Compared{"onnx-yunet-2023mar", "face_detection_yunet_2023mar.onnx", 0.5, 255,
                                                    nullptr, "astronaut.png"},
                                           Compared{"onnx-light", "light_bvlc_alexnet.onnx", 0, 1, "r24"},
                                           Compared{"onnx-light", "light_densenet121.onnx"},
                                           Compared{"onnx-light", "light_inception_v1.onnx", 0, 1, "r143"},
                                           Compared{"onnx-light", "light_inception_v2.onnx", 0, 1, "r507"},
                                           Compared{"onnx-light", "light_resnet50.onnx", 0, 1, "r174"},
                                           Compared{"onnx-light", "light_shufflenet.onnx", 0, 1, "r201"},
                                           Compared{"onnx-light", "light_squeezenet.onnx", 0, 1, "r65"},
                                           Compared{"onnx-light", "light_vgg19.onnx", 0, 1, "r46"},
                                           Compared{"onnx-light", "light_zfnet512.onnx", 0, 1, "r20"}),
                         [](const ::testing::TestParamInfo<Compared>& entry) {
                           std::string name = entry.param.file;
                           name.erase(name.find('.'));
                           return name;
                         });

}  // namespace
}  // namespace tenon::e2e
