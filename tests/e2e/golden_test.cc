// Published Darknet models against the outputs of Darknet itself: raw heads, activated heads, class probabilities,
// detections and classes, from engines that were tuned on this machine. Tolerances are those of the golden outputs'
// README: peers with the same form of batch normalisation agree to 2.3e-4 and 1.6e-6, detections to 3.5e-6 and 5e-4 px.
//
// CTest runs this program once a model (--gtest_filter=*/MODEL*).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include "pipeline/builder.h"
#include "pipeline/labels.h"
#include "pipeline/runner.h"
#include "pipeline/testing/golden.h"
#include "tests/e2e/e2e_testing.h"

namespace tenon::e2e {
namespace {

using pipeline::NpyArray;

constexpr double kMaxAbs = 5e-4, kRelL2 = 5e-6;           // of tensors
constexpr double kScore = 2e-5, kPixels = 0.01;           // of detections, against the goldens
constexpr double kReadmeScore = 0.01, kReadmePixels = 2;  // against printed percents and whole pixels

struct Case {
  std::string name;
  json golden;
};

/// The cases of a model; none where it has no golden outputs.
std::vector<Case> cases_of(const std::string& model) {
  std::vector<Case> cases;
  const fs::path folder = tenon::testing::golden_dir() / model;
  if (!fs::exists(folder)) return cases;
  for (const std::string& file : listing(folder)) {
    if (!file.ends_with(".json") || file.ends_with(".layers.json")) continue;
    cases.push_back({file.substr(0, file.size() - 5), pipeline::testing::read_json(folder / file)});
  }
  return cases;
}

/// "weyl" of the goldens' README: fractional parts of multiples of the golden ratio, minus 0.5.
std::vector<float> weyl(const json& input) {
  std::size_t count = 1;
  for (const std::size_t size : input["shape"]) count *= size;
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto u = (static_cast<std::uint32_t>(i) + input["seed"].get<std::uint32_t>()) * 2654435761u;
    values[i] = static_cast<float>(static_cast<double>(u) / 4294967296.0 - 0.5);
  }
  return values;
}

std::vector<float> floats(const NpyArray& array) {
  std::vector<float> values(array.elements());
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

/// A found tensor against what a golden case says of it.
void compare(const fs::path& folder, const std::string& name, const json& golden, const NpyArray& array) {
  SCOPED_TRACE(name);
  const std::vector<float> found = floats(array);
  std::size_t count = 1;
  for (const std::size_t size : golden["shape"]) count *= size;
  ASSERT_EQ(found.size(), count);
  double sum = 0, abs_sum = 0, squares = 0, absmax = 0;
  for (const float value : found) {
    sum += value;
    abs_sum += std::abs(double{value});
    squares += double{value} * double{value};
    absmax = std::fmax(absmax, std::abs(double{value}));
  }
  const double l2 = golden["l2"];
  const double spread = kRelL2 * l2 * std::sqrt(static_cast<double>(count));  // Cauchy-Schwarz
  EXPECT_NEAR(sum, golden["sum"].get<double>(), spread);
  EXPECT_NEAR(abs_sum, golden["abs_sum"].get<double>(), spread);
  EXPECT_NEAR(std::sqrt(squares), l2, kRelL2 * l2);
  EXPECT_NEAR(absmax, golden["absmax"].get<double>(), kMaxAbs);
  if (golden["stored"] == "statistics only") return;

  const std::vector<float> expected = pipeline::testing::read_floats(folder / golden["file"].get<std::string>());
  const std::size_t stride = golden.value("stride", 1);
  ASSERT_EQ((found.size() + stride - 1) / stride, expected.size());
  // The tolerances are those of raw heads. The logarithm of a softmax output is its raw input less a constant.
  const bool softmax = name.rfind("prob_", 0) == 0;
  double worst = 0, difference = 0, total = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double x = double{found[i * stride]}, y = double{expected[i]};
    worst = std::fmax(worst, std::abs(x - y));
    if (softmax) x = std::log(x), y = std::log(y);
    difference += (x - y) * (x - y);
    total += y * y;
  }
  EXPECT_LT(worst, kMaxAbs);
  EXPECT_LT(std::sqrt(difference / total), kRelL2);
}

struct Expected {
  int class_id;
  double score;
  pipeline::Box box;
};

/// Every expected detection has one of its own among the found ones, and no other was found.
void compare(const std::vector<Expected>& expected, const std::vector<pipeline::Detection>& found, double score,
             double pixels) {
  std::string text;
  for (const auto& d : found) {
    text += "\n  found class " + std::to_string(d.class_id) + " score " + std::to_string(d.score) + " box " +
            std::to_string(d.box.left) + " " + std::to_string(d.box.top) + " " + std::to_string(d.box.width) + " " +
            std::to_string(d.box.height);
  }
  EXPECT_EQ(found.size(), expected.size()) << text;
  std::vector<bool> taken(found.size());
  for (const Expected& e : expected) {
    bool matched = false;
    for (std::size_t i = 0; i < found.size() && !matched; ++i) {
      const auto& d = found[i];
      matched = !taken[i] && d.class_id == e.class_id && std::abs(double{d.score} - e.score) <= score &&
                std::abs(d.box.left - e.box.left) <= pixels && std::abs(d.box.top - e.box.top) <= pixels &&
                std::abs(d.box.width - e.box.width) <= pixels && std::abs(d.box.height - e.box.height) <= pixels;
      taken[i] = matched;
    }
    EXPECT_TRUE(matched) << "class " << e.class_id << " score " << e.score << " box " << e.box.left << " " << e.box.top
                         << " " << e.box.width << " " << e.box.height << text;
  }
}

/// What one model's tests share: an engine with the raw heads as further outputs.
struct Prepared {
  Library library;
  pipeline::BuildRequest request;
  std::string label_file;
  Engine engine;
};

const TempDir& shared_dir() {
  static const TempDir dir;
  return dir;
}

Result<Prepared> prepare(const std::string& model) {
  setenv("TENON_MODELS_DIR", tenon::testing::models_dir().c_str(), 1);
  TENON_ASSIGN(Library library, Library::create());
  TENON_RETURN_IF_ERROR(library.discover().status());
  TENON_ASSIGN(const auto config, pipeline::load_config(tenon::testing::source_dir() / "configs" / (model + ".yaml")));
  pipeline::BuildRequest request = pipeline::request_of(config);
  TENON_ASSIGN(const auto settings, pipeline::settings_of(config));
  request.metadata["pipeline"] = pipeline::settings_text(settings);
  request.timing_cache = shared_dir().path() / "cache.yaml";
  request.device = test_device();
  std::set<std::string> raw;
  for (const Case& c : cases_of(model)) {
    for (const auto& [name, tensor] : c.golden["outputs"].items()) {
      if (name.starts_with("raw_")) raw.insert("layer" + name.substr(4));
    }
  }
  request.mark_outputs.assign(raw.begin(), raw.end());
  TENON_ASSIGN(const BuiltEngine built, pipeline::build_engine(library, request, nullptr));
  TENON_ASSIGN(const Engine engine, Runtime(library, test_device()).create(built.data(), built.size()));
  return Prepared{library, request, config.postprocess.labels, engine};
}

class Golden : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    TENON_NEED_DATA(tenon::testing::models_dir() / model() / "README.md");
    TENON_NEED_DATA(tenon::testing::images_dir() / "dog.jpg");
    static std::map<std::string, Result<Prepared>> all;
    auto place = all.find(model());
    if (place == all.end()) place = all.emplace(model(), prepare(model())).first;
    ASSERT_TRUE(place->second.ok()) << place->second.status().message();
    prepared_ = &*place->second;
  }

  std::string model() const { return GetParam(); }
  fs::path folder() const { return tenon::testing::golden_dir() / model(); }
  pipeline::Runner runner() { return pipeline::Runner::create(prepared_->engine).value(); }

  /// Runs the case's input and compares every output tensor.
  pipeline::InputResult check_tensors(const Case& c, pipeline::Runner& runner) {
    const json& input = c.golden["input"];
    Result<pipeline::InputResult> result = Status(Code::kInvalid, "unknown input");
    if (input["kind"] == "synthetic") {
      const NpyArray array = pipeline::npy_from_floats(input["shape"].get<std::vector<std::int64_t>>(), weyl(input));
      result = runner.run_tensors({{"data", array}});
    } else {
      runner.settings().preprocess.resize =
          input["resize"] == "stretch" ? pipeline::Resize::kStretch : pipeline::Resize::kLetterbox;
      result = runner.run_image(tenon::testing::images_dir() / input["image"].get<std::string>(), nullptr);
    }
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (!result.ok()) return {};
    const auto outputs = runner.outputs().value();
    for (const auto& [name, golden] : c.golden["outputs"].items()) {
      const auto found = outputs.find("layer" + name.substr(name.find('_') + 1));
      EXPECT_NE(found, outputs.end()) << name;
      if (found != outputs.end()) compare(folder(), name, golden, found->second);
    }
    return *result;
  }

  Prepared* prepared_ = nullptr;
};

// Each of these is instantiated for the models that have what it compares with, so that no test checks nothing.
class GoldenOutputs : public Golden {};
class StoredInputs : public Golden {};
class Detector : public Golden {};
class Classifier : public Golden {};

TEST_P(GoldenOutputs, TensorsAndDetections) {
  TENON_NEED_DATA(folder());
  const std::vector<Case> cases = cases_of(model());
  ASSERT_FALSE(cases.empty()) << folder() << " has no case";
  for (const Case& c : cases) {
    SCOPED_TRACE(model() + "/" + c.name);
    const bool fork = c.golden["reference"].get<std::string>().starts_with("Darknet fork");
    for (const char* threshold : {"0.25", "0.5"}) {
      pipeline::Runner with = runner();
      with.settings().postprocess.threshold = std::stof(threshold);
      if (!fork) with.settings().postprocess.nms_kind = pipeline::NmsKind::kIou;
      const pipeline::InputResult result = check_tensors(c, with);
      const std::string list = std::string(fork ? "fork" : "original") + " thresh " + threshold;
      if (!c.golden.contains("detections") || !c.golden["detections"].contains(list)) continue;
      SCOPED_TRACE(list);
      std::vector<Expected> expected;
      for (const json& d : c.golden["detections"][list]) {
        const std::vector<float> box = d["box_xyxy_px"];
        expected.push_back({d["class"], d["score"], {box[0], box[1], box[2] - box[0], box[3] - box[1]}});
      }
      compare(expected, result.detections, kScore, kPixels);
    }
    if (c.golden.contains("top5")) {
      pipeline::Runner with = runner();
      const pipeline::InputResult result = check_tensors(c, with);
      const json& top = c.golden["top5"];
      ASSERT_EQ(result.classes.size(), top.size());
      for (std::size_t i = 0; i < top.size(); ++i) {
        EXPECT_EQ(result.classes[i].class_id, top[i]["class"].get<int>());
        EXPECT_NEAR(result.classes[i].score, top[i]["score"].get<double>(), kScore);
      }
    }
  }
}

TEST_P(StoredInputs, GiveTheGoldenOutputs) {
  TENON_NEED_DATA(folder());
  int compared = 0;
  for (const Case& c : cases_of(model())) {
    if (c.name != "dog_stretch" && c.name != "dog_letter") continue;
    if (c.golden["input"]["tensor"]["shape"] != json({1, 3, 320, 320})) continue;
    SCOPED_TRACE(c.name);
    const fs::path file = tenon::testing::golden_dir() / "inputs" /
                          (c.name == "dog_stretch" ? "dog_stretch_320.npy" : "dog_letterbox_320.npy");
    TENON_NEED_DATA(file);
    pipeline::Runner with = runner();
    const auto result = with.run_tensors({{"data", pipeline::read_npy(file).value()}});
    ASSERT_TRUE(result.ok()) << result.status().message();
    const auto outputs = with.outputs().value();
    for (const auto& [name, golden] : c.golden["outputs"].items()) {
      compare(folder(), name, golden, outputs.at("layer" + name.substr(name.find('_') + 1)));
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

/// The README of a model lists what Darknet printed: "`dog.jpg thresh 0.25`", then one line a detection.
TEST_P(Detector, PrintedDetections) {
  const std::string text = read_text(tenon::testing::models_dir() / model() / "README.md");
  const std::regex thresh(R"(-thresh ([0-9.]+))"), picture(R"(^`(\w+\.(?:jpg|png))( [^`]*)?`$)"),
      line(R"(^ +([^:]+): (\d+)% \(left_x: (-?\d+) top_y: (-?\d+) width: (\d+) height: (\d+)\)$)");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(text, match, thresh));
  pipeline::Runner with = runner();
  with.settings().postprocess.threshold = std::stof(match[1]);
  const std::vector<std::string> labels = pipeline::read_labels(prepared_->label_file).value();

  struct Printed {
    std::string image;
    bool letterbox;
    std::vector<Expected> detections;
  };
  std::vector<Printed> all;
  std::istringstream lines(text);
  for (std::string row; std::getline(lines, row);) {
    if (std::regex_match(row, match, picture)) {
      all.push_back({match[1], match[2].str().find("letter_box") != std::string::npos, {}});
    } else if (std::regex_match(row, match, line) && !all.empty()) {
      const auto label = std::find(labels.begin(), labels.end(), match[1].str());
      ASSERT_NE(label, labels.end()) << row;
      all.back().detections.push_back(
          {static_cast<int>(label - labels.begin()),
           std::stod(match[2]) / 100,
           {std::stof(match[3]), std::stof(match[4]), std::stof(match[5]), std::stof(match[6])}});
    }
  }
  ASSERT_FALSE(all.empty());
  for (const Printed& printed : all) {
    SCOPED_TRACE(model() + ": " + printed.image + (printed.letterbox ? " letterboxed" : ""));
    const fs::path image = tenon::testing::images_dir() / printed.image;
    TENON_NEED_DATA(image);
    with.settings().preprocess.resize = printed.letterbox ? pipeline::Resize::kLetterbox : pipeline::Resize::kStretch;
    const auto result = with.run_image(image, nullptr);
    ASSERT_TRUE(result.ok()) << result.status().message();
    compare(printed.detections, result->detections, kReadmeScore, kReadmePixels);
  }
}

/// A classifier's README lists Darknet's top five: "### pjreddie darknet classify dog.jpg", "14.51%: malamute".
TEST_P(Classifier, PrintedClasses) {
  const std::string text = read_text(tenon::testing::models_dir() / model() / "README.md");
  const std::regex picture(R"(^ *### pjreddie darknet classify (\S+)$)"), line(R"(^ +([0-9.]+)%: (.+)$)");
  pipeline::Runner with = runner();
  std::vector<pipeline::ClassScore> found;
  std::vector<std::string> labels;
  int pictures = 0, lines_compared = 0;
  std::size_t next = 0;
  std::smatch match;
  std::istringstream lines(text);
  for (std::string row; std::getline(lines, row);) {
    if (std::regex_match(row, match, picture)) {
      const fs::path image = tenon::testing::images_dir() / match[1].str();
      TENON_NEED_DATA(image);
      const auto result = with.run_image(image, nullptr);
      ASSERT_TRUE(result.ok()) << result.status().message();
      labels = pipeline::read_labels(prepared_->label_file).value();
      found = result->classes;
      ASSERT_EQ(found.size(), 5u);
      next = 0;
      ++pictures;
    } else if (std::regex_match(row, match, line) && next < found.size()) {
      EXPECT_EQ(pipeline::label_of(labels, found[next].class_id), match[2].str()) << "picture " << pictures;
      EXPECT_NEAR(found[next].score, std::stod(match[1]) / 100, 1e-4) << match[2];
      ++next;
      ++lines_compared;
    }
  }
  EXPECT_GT(pictures, 0);
  EXPECT_EQ(lines_compared, 5 * pictures);
}

std::string test_name(const ::testing::TestParamInfo<const char*>& model) {
  std::string name = model.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenOutputs,
                         ::testing::Values("darknet-tiny-imagenet", "face-tiny-region", "mobilenetv2-yolov3-nano-coco",
                                           "yolo-fastest-1.1-body", "yolo-fastest-1.1-coco"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Models, StoredInputs,
                         ::testing::Values("mobilenetv2-yolov3-nano-coco", "yolo-fastest-1.1-coco"), test_name);
INSTANTIATE_TEST_SUITE_P(Models, Detector,
                         ::testing::Values("face-tiny-region", "mobilenetv2-yolo-fastest-voc",
                                           "mobilenetv2-yolov3-nano-coco", "yolo-fastest-1.1-body",
                                           "yolo-fastest-1.1-coco", "yolo-fastest-1.1-xl-coco"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Models, Classifier, ::testing::Values("darknet-tiny-imagenet"), test_name);

}  // namespace
}  // namespace tenon::e2e
