// Published models: every cfg imports with the count of parameters that its publisher's weights have, real weights load
// to the last byte, and plain-reference runs give the outputs of Darknet itself.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "importers/darknet/testing/import_testing.h"
#include "pipeline/npy.h"
#include "tests/support/data_dirs.h"

namespace tenon::darknet {
namespace {

using Floats = std::vector<float>;
using DarknetModels = ImportTest;

std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Input "weyl" of the golden outputs: fractional parts of multiples of the golden ratio, minus 0.5.
Floats weyl(size_t count, uint32_t seed) {
  Floats values(count);
  for (size_t n = 0; n < count; ++n) {
    const uint32_t u = (static_cast<uint32_t>(n) + seed) * 2654435761u;
    values[n] = static_cast<float>(static_cast<double>(u) / 4294967296.0 - 0.5);
  }
  return values;
}

TEST_F(DarknetModels, EveryCfgImportsWithItsParameters) {
  struct Model {
    const char* name;
    int64_t parameters;
  };
  const Model table[] = {
      {"alexnet", 62378344},     {"cifar", 7687050},        {"darknet19", 20856776},       {"darknet53", 41645640},
      {"densenet201", 17206440}, {"extraction", 23455400},  {"resnet101", 41870248},       {"resnet18", 11523496},
      {"resnet34", 21639080},    {"resnet50", 22825896},    {"resnext50", 22312872},       {"tiny", 1046488},
      {"vgg-16", 138357544},     {"yolov1-tiny", 27099950}, {"yolov2-tiny-voc", 15867885}, {"yolov2-tiny", 11237145},
      {"yolov2-voc", 50676061},  {"yolov2", 50983561},      {"yolov3-spp", 63052381},      {"yolov3-tiny-prn", 4939758},
      {"yolov3-tiny", 8858734},  {"yolov3-voc", 61678657},  {"yolov3", 62001757},          {"yolov4-tiny", 6062814},
  };
  for (const Model& model : table) {
    const auto path = testing::models_dir() / "darknet-cfg" / (std::string(model.name) + ".cfg");
    TENON_NEED_DATA(path);
    ASSERT_NO_FATAL_FAILURE(import(path.string(), R"({"random_weights": "1"})")) << model.name;
    // The [crop] of vgg-16 multiplies by one constant and adds another.
    const int64_t own = std::string(model.name) == "vgg-16" ? 2 : 0;
    EXPECT_EQ(describe()["parameters"].get<int64_t>(), model.parameters + own) << model.name;
    EXPECT_TRUE(log_.empty()) << log_[0];
  }
}

TEST_F(DarknetModels, RealWeightsLoadToTheLastByte) {
  const std::pair<std::filesystem::path, size_t> models[] = {
      {testing::models_dir() / "darknet-tiny-imagenet/tiny", 0},
      {testing::models_dir() / "face-tiny-region/face-tiny-region", 1},
      {testing::models_dir() / "mobilenetv2-yolo-fastest-voc/MobileNetV2-YOLO-Fastest-voc", 2},
      {testing::models_dir() / "mobilenetv2-yolov3-nano-coco/MobileNetV2-YOLOv3-Nano-coco", 2},
      {testing::models_dir() / "yolo-fastest-1.1-body/yolo-fastest-1.1_body", 2},
      {testing::models_dir() / "yolo-fastest-1.1-coco/yolo-fastest-1.1", 2},
      {testing::models_dir() / "yolo-fastest-1.1-xl-coco/yolo-fastest-1.1-xl", 2},
      {testing::source_dir() / "models/digits/digits", 1},
  };
  for (const auto& [stem, heads] : models) {
    const std::string cfg = stem.string() + ".cfg";
    TENON_NEED_DATA(cfg);
    ASSERT_NO_FATAL_FAILURE(import(cfg)) << cfg;
    EXPECT_EQ(network_->metadata("detection").ok(), heads > 0) << cfg;
    EXPECT_EQ(network_->metadata("classification").ok(), heads == 0) << cfg;
    EXPECT_EQ(names("outputs").size(), std::max<size_t>(heads, 1)) << cfg;
    if (heads > 0) {
      EXPECT_EQ(nlohmann::json::parse(*network_->metadata("detection"))["heads"].size(), heads);
    }
  }
}

// Runs a case of the golden outputs and compares every stored tensor: "raw_17" is what layer17 computes.
class DarknetGolden : public ImportTest {
 protected:
  void compare(const std::string& model, const std::string& cfg, const std::string& options) {
    const auto golden = testing::golden_dir() / model;
    const auto path = testing::models_dir() / model / cfg;
    TENON_NEED_DATA(golden / "synth0.json");
    TENON_NEED_DATA(path);
    const auto description = nlohmann::json::parse(contents(golden / "synth0.json"));
    import(path.string(), options);
    size_t count = 1;
    for (const size_t size : description["input"]["shape"]) count *= size;
    auto values = run(weyl(count, description["input"]["seed"]));
    for (const auto& [name, tensor] : description["outputs"].items()) {
      const std::string layer = "layer" + name.substr(name.find('_') + 1);
      ASSERT_TRUE(values.count(layer)) << layer;
      const auto file = pipeline::read_npy(golden / tensor["file"].get<std::string>());
      ASSERT_TRUE(file.ok()) << file.status().message();
      Floats expected(file->elements());
      std::memcpy(expected.data(), file->bytes.data(), file->bytes.size());
      const size_t stride = tensor.value("stride", 1);
      const Floats& found = values[layer].values;
      ASSERT_EQ((found.size() + stride - 1) / stride, expected.size()) << name;
      double worst = 0, difference = 0, total = 0;
      for (size_t n = 0; n < expected.size(); ++n) {
        const double delta = double{found[n * stride]} - double{expected[n]};
        worst = std::max(worst, std::abs(delta));
        difference += delta * delta;
        total += double{expected[n]} * double{expected[n]};
      }
      // Between peers of equal epsilon at most 2.3e-4 and 1.6e-6 were seen.
      EXPECT_LT(worst, 5e-4) << name;
      EXPECT_LT(std::sqrt(difference / total), 5e-6) << name;
    }
  }
};

TEST_F(DarknetGolden, FaceTinyRegion) { compare("face-tiny-region", "face-tiny-region.cfg", ""); }
TEST_F(DarknetGolden, YoloFastest) { compare("yolo-fastest-1.1-coco", "yolo-fastest-1.1.cfg", ""); }
TEST_F(DarknetGolden, TinyImagenet) {
  compare("darknet-tiny-imagenet", "tiny.cfg", R"({"batch_norm": "outside_1e-6"})");
}

TEST_F(DarknetModels, MadeUpWeightsKeepValuesInRange) {
  for (const char* name : {"darknet53", "resnet101", "densenet201", "yolov4-tiny", "yolov3-tiny-prn"}) {
    const auto path = testing::models_dir() / "darknet-cfg" / (std::string(name) + ".cfg");
    TENON_NEED_DATA(path);
    // The later of two equal keys is ignored, so these small sizes win.
    std::string text = contents(path);
    text.insert(text.find("[net]") + 5, "\nwidth=32\nheight=32");
    import(write("small.cfg", text), R"({"random_weights": "3"})");
    const auto values = run(weyl(3 * 32 * 32, 0));
    for (const auto& [value, computed] : values) {
      double largest = 0, squares = 0;
      for (const float x : computed.values) {
        ASSERT_TRUE(std::isfinite(x)) << name << " " << value;
        largest = std::max(largest, std::abs(double{x}));
        squares += double{x} * double{x};
      }
      EXPECT_LT(largest, 1e3) << name << " " << value;
      EXPECT_GT(squares, 0) << name << " " << value;
    }
  }
}

}  // namespace
}  // namespace tenon::darknet
