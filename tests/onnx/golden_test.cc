// Published ONNX models against stored outputs of ONNX Runtime: every stored tensor, statistics of every inner tensor,
// detections; from engines that were tuned on this machine. Tolerances are those of the golden outputs' README.
//
// CTest runs this program once a model (--gtest_filter=*/MODEL*).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "pipeline/image.h"
#include "pipeline/testing/golden.h"
#include "tests/onnx/published_models.h"

namespace tenon::e2e {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();
struct Tolerance {
  double max_abs;
  double rel_l2;
};

Tolerance tolerance_of(const std::string& model, const std::string& tensor) {
  if (on_gpu()) return {kAny, kGpuRelL2};
  if (model == "onnx-yolox-nano") return {2e-4, 1e-5};
  if (model == "onnx-ultraface-rfb-320" || model == "onnx-super-resolution") return {5e-6, kAny};
  if (model == "onnx-mnist-8") return {kAny, 3e-6};
  if (model == "onnx-silero-vad") return {tensor == "output" ? 2e-6 : 1e-5, kAny};
  if (model == "onnx-varied") return {kAny, 2e-5};  // with Winograd, which a tuned engine may use
  return {kAny, 1e-4};
}

/// The numbers of a golden tensor, all or every stride-th, against what was found.
void compare(const fs::path& folder, const json& golden, const std::vector<float>& found, Tolerance tolerance) {
  std::size_t count = 1;
  for (const std::size_t size : golden["shape"]) count *= size;
  ASSERT_EQ(found.size(), count);
  double squares = 0;
  for (const float value : found) squares += double{value} * double{value};
  const double l2 = golden["l2"];
  EXPECT_NEAR(std::sqrt(squares), l2, std::fmin(tolerance.rel_l2, 1e-4) * l2);
  const std::vector<float> expected = pipeline::testing::read_floats(folder / golden["file"].get<std::string>());
  const std::size_t stride = golden.value("stride", 1);
  ASSERT_EQ((count + stride - 1) / stride, expected.size());
  double worst = 0, difference = 0, total = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double x = double{found[i * stride]}, y = double{expected[i]};
    worst = std::isnan(x) ? kAny : std::fmax(worst, std::abs(x - y));
    difference += (x - y) * (x - y);
    total += y * y;
  }
  EXPECT_LE(worst, tolerance.max_abs);
  EXPECT_LE(std::sqrt(difference / total), tolerance.rel_l2);
}

std::int64_t elements(const json& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

/// "weyl" of the goldens' README with its transform "(v+a)*b", or the ramp i / n of the light models.
std::vector<float> synthetic(const json& input) {
  std::vector<float> values(static_cast<std::size_t>(elements(input["shape"])));
  const bool ramp = input["generator"] != "weyl";
  double a = 0, b = 1;
  const std::string transform = input["transform"];
  if (transform != "none" && std::sscanf(transform.c_str(), "(v+%lf)*%lf", &a, &b) != 2) {
    ADD_FAILURE() << "unknown transform " << transform;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = ramp ? static_cast<float>(static_cast<double>(i) / static_cast<double>(values.size()))
                     : static_cast<float>((double{weyl(i, input["seed"])} + a) * b);
  }
  return values;
}

/// How the goldens' recipes bring a picture to a model.
pipeline::PreprocessOptions recipe_of(const std::string& model) {
  pipeline::PreprocessOptions options;
  options.resize = pipeline::Resize::kNone;
  if (model == "onnx-yolox-nano") {
    options.resize = pipeline::Resize::kStretch;
    options.color = pipeline::Color::kBgr;
    options.scale = 1;
  } else if (model == "onnx-ultraface-rfb-320") {
    options.scale = 1;
    options.mean = {127, 127, 127};
    options.std = {128, 128, 128};
  } else {
    options.color = pipeline::Color::kGray;
  }
  return options;
}

/// The picture of a case, cut out as it says, as a file that loses nothing.
fs::path picture(const json& input, const std::string& name) {
  const fs::path original = tenon::testing::images_dir() / input["image"].get<std::string>();
  if (!input.contains("crop_xywh")) return original;
  const std::vector<int> crop = input["crop_xywh"];
  const pipeline::Image whole = pipeline::read_image(original).value();
  pipeline::Image part = pipeline::make_image(crop[2], crop[3], 0, 0, 0);
  for (int y = 0; y < crop[3]; ++y) {
    std::memcpy(part.pixel(0, y), whole.pixel(crop[0], crop[1] + y), static_cast<std::size_t>(crop[2]) * 3);
  }
  const fs::path path = shared_dir().path() / (name + ".png");
  EXPECT_TRUE(pipeline::write_image(path, part).ok());
  return path;
}

/// The folder of a model and its case.
class OnnxGolden : public ::testing::TestWithParam<pipeline::testing::GoldenCase> {
 protected:
  void SetUp() override {
    TENON_NEED_DATA(GetParam().json_path());
    if (const std::string reason = why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    golden_ = pipeline::testing::read_json(GetParam().json_path());
    ASSERT_TRUE(golden_.is_object());
  }
  const std::string& model() const { return GetParam().model; }
  fs::path file() const { return tenon::testing::models_dir() / model() / golden_["file"].get<std::string>(); }
  void prepare(const fs::path& model_file, const std::vector<std::string>& marked = {},
               const std::map<std::string, std::vector<std::int64_t>>& shapes = {}) {
    TENON_NEED_DATA(model_file);
    Result<Engineered> made = engineer(model_file, marked, shapes);
    ASSERT_TRUE(made.ok()) << made.status().message();
    made_ = std::make_unique<Engineered>(std::move(*made));
    runner_ = std::make_unique<pipeline::Runner>(pipeline::Runner::create(made_->engine).value());
  }
  /// Runs the case's input.
  void run() {
    const json& input = golden_["input"];
    Result<pipeline::InputResult> result = Status(Code::kInvalid, "unknown input");
    if (input["kind"] == "synthetic") {
      const NpyArray array = pipeline::npy_from_floats(input["shape"], synthetic(input));
      result = runner_->run_tensors({{input["name"], array}});
    } else if (input["tensor"]["stored"] == "full") {
      const fs::path stored = GetParam().folder() / input["tensor"]["file"].get<std::string>();
      result = runner_->run_tensors({{input["name"], pipeline::read_npy(stored).value()}});
    } else {
      TENON_NEED_DATA(tenon::testing::images_dir() / input["image"].get<std::string>());
      runner_->settings().preprocess = recipe_of(model());
      result = runner_->run_image(picture(input, GetParam().name), nullptr);
    }
    ASSERT_TRUE(result.ok()) << result.status().message();
    result_ = *result;
    outputs_ = runner_->outputs().value();
  }
  void check_outputs(bool with_softmax = true) {
    for (const auto& [name, golden] : golden_["outputs"].items()) {
      if (!with_softmax && std::abs(golden["sum"].get<double>() - 1) < 1e-3) continue;
      SCOPED_TRACE(name);
      ASSERT_EQ(outputs_.count(name), 1u);
      compare(GetParam().folder(), golden, floats(outputs_[name]), tolerance_of(model(), name));
    }
  }

  json golden_;
  std::unique_ptr<Engineered> made_;
  std::unique_ptr<pipeline::Runner> runner_;
  pipeline::InputResult result_;
  Tensors outputs_;
};

#define TENON_RETURN_IF_OVER() \
  if (HasFatalFailure() || IsSkipped()) return

class Outputs : public OnnxGolden {};
TEST_P(Outputs, OfAnEngine) {
  prepare(file());
  TENON_RETURN_IF_OVER();
  run();
  TENON_RETURN_IF_OVER();
  check_outputs();
  if (golden_.contains("argmax")) {
    const std::vector<float> scores = floats(outputs_.begin()->second);
    EXPECT_EQ(std::max_element(scores.begin(), scores.end()) - scores.begin(), golden_["argmax"].get<int>());
  }
  if (!golden_.contains("detections")) return;
  const bool faces = model() == "onnx-ultraface-rfb-320";
  pipeline::PostprocessConfig& post = runner_->settings().postprocess;
  post.type = pipeline::PostprocessType::kDetections;
  post.decoder = faces ? "ultraface" : "yolox";
  post.threshold = faces ? 0.7f : 0.3f;
  post.nms = faces ? 0.5f : 0.45f;
  run();
  TENON_RETURN_IF_OVER();
  compare_detections(golden_["detections"], result_.detections, 1e-4, 0.05f,
                     golden_["input"].value("crop_xywh", std::vector<int>{0, 0}));
}

/// Every inner tensor that the reference lists: the first one that is off tells where to look.
class InnerTensors : public OnnxGolden {};
TEST_P(InnerTensors, HaveTheGoldenStatistics) {
  const json nodes = pipeline::testing::read_json(GetParam().folder() / (GetParam().name + ".nodes.json"));
  ASSERT_TRUE(nodes.is_array());
  std::vector<std::string> marked;
  for (const json& node : nodes) {
    const std::string name = node["tensor"];
    // A Dropout that keeps all has no tensor of its own.
    if (node["op"] == "Dropout") continue;
    if (!golden_["outputs"].contains(name) && node["sum"].is_number()) marked.push_back(name);
  }
  prepare(file(), marked);
  TENON_RETURN_IF_OVER();
  run();
  TENON_RETURN_IF_OVER();
  for (const json& node : nodes) {
    const std::string name = node["tensor"];
    const auto found = outputs_.find(name);
    if (found == outputs_.end()) continue;
    double sum = 0, abs_sum = 0, squares = 0;
    for (const float value : floats(found->second)) {
      sum += double{value};
      abs_sum += std::abs(double{value});
      squares += double{value} * double{value};
    }
    // Functions such as Sigmoid are exact to a rounding of 1 where their values are far smaller.
    const auto count = found->second.elements();
    const double roundings = 6e-8 * static_cast<double>(count);
    ASSERT_NEAR(sum, node["sum"].get<double>(), 1e-4 * abs_sum + roundings) << name << " of " << node["op"];
    const double l2 = node["l2"].get<double>();
    ASSERT_NEAR(std::sqrt(squares), l2, 1e-4 * l2 + roundings / std::sqrt(static_cast<double>(count))) << name;
  }
}

/// The light models with varied weights, which a script beside them makes.
class Varied : public OnnxGolden {};
TEST_P(Varied, Outputs) {
  TENON_NEED_NO(why_no_python("numpy, onnx"));
  const fs::path folder = tenon::testing::models_dir() / "onnx-light";
  TENON_NEED_DATA(folder / "vary.py");
  const fs::path varied = shared_dir().path() / "varied.onnx";
  const Outcome made = run_program({python(), folder / "vary.py", folder / golden_["light"].get<std::string>(), varied,
                                    "--seed", std::to_string(golden_["weights_seed"].get<int>())});
  ASSERT_EQ(made.status, 0) << made.err;
  const std::string label = "sum of all varied values ";
  const double sum = std::stod(made.out.substr(made.out.find(label) + label.size()));
  ASSERT_NEAR(sum, golden_["weights_sum"].get<double>(), 1e-3) << made.out;
  prepare(varied);
  fs::remove(varied);
  TENON_RETURN_IF_OVER();
  run();
  TENON_RETURN_IF_OVER();
  check_outputs(/*with_softmax=*/false);  // which is saturated
}

/// Speech in chunks, each behind the end of the chunk before, with the state fed back.
class Chunks : public OnnxGolden {};
TEST_P(Chunks, WithStateFedBack) {
  const json& input = golden_["input"];
  const int chunk = input["chunk"], context = input["context"], steps = input["steps"];
  const std::int64_t length = chunk + context;
  prepare(file(), {}, {{"input", {1, length}}, {"state", {2, 1, 128}}});
  TENON_RETURN_IF_OVER();
  const std::vector<float> signal =
      pipeline::testing::read_floats(GetParam().folder() / input["signal"]["file"].get<std::string>());
  ASSERT_EQ(signal.size(), static_cast<std::size_t>(chunk) * static_cast<std::size_t>(steps));
  const std::int64_t rate = input["sr"];
  NpyArray sr{pipeline::NpyType::kI8, {}, std::vector<std::uint8_t>(sizeof(rate))};
  std::memcpy(sr.bytes.data(), &rate, sizeof(rate));
  std::vector<float> state(256, 0.0f), probabilities, states;
  for (int step = 0; step < steps; ++step) {
    std::vector<float> piece(static_cast<std::size_t>(context), 0.0f);
    const auto begin = signal.begin() + static_cast<std::ptrdiff_t>(step) * chunk;
    if (step > 0) std::copy(begin - context, begin, piece.begin());
    piece.insert(piece.end(), begin, begin + chunk);
    const auto result = runner_->run_tensors({{"input", pipeline::npy_from_floats({1, length}, piece)},
                                              {"state", pipeline::npy_from_floats({2, 1, 128}, state)},
                                              {"sr", sr}});
    ASSERT_TRUE(result.ok()) << result.status().message();
    const Tensors outputs = runner_->outputs().value();
    state = floats(outputs.at("stateN"));
    const std::vector<float> output = floats(outputs.at("output"));
    probabilities.insert(probabilities.end(), output.begin(), output.end());
    states.insert(states.end(), state.begin(), state.end());
  }
  compare(GetParam().folder(), golden_["outputs"]["output"], probabilities, tolerance_of(model(), "output"));
  compare(GetParam().folder(), golden_["outputs"]["stateN_each_step"], states, tolerance_of(model(), "stateN"));
}

using Case = pipeline::testing::GoldenCase;
std::vector<Case> light(const char* suffix) {
  std::vector<Case> cases;
  for (const char* net : {"bvlc_alexnet", "inception_v1", "resnet50", "squeezenet", "vgg19", "zfnet512"}) {
    cases.push_back({"onnx-light", std::string("light_") + net + suffix});
  }
  return cases;
}
std::vector<Case> varied() {
  std::vector<Case> cases;
  for (const char* net : {"densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet"}) {
    cases.push_back({"onnx-varied", std::string(net) + "_w0_weyl0"});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(
    Models, Outputs,
    ::testing::Values(Case{"onnx-mnist-8", "digit0"}, Case{"onnx-mnist-8", "digit3"}, Case{"onnx-mnist-8", "synth0"},
                      Case{"onnx-mnist-8", "upstream0"}, Case{"onnx-super-resolution", "astronaut_crop"},
                      Case{"onnx-super-resolution", "synth0"}, Case{"onnx-ultraface-rfb-320", "astronaut_crop"},
                      Case{"onnx-ultraface-rfb-320", "synth0"}, Case{"onnx-yolox-nano", "astronaut_stretch"},
                      Case{"onnx-yolox-nano", "dog_stretch"}, Case{"onnx-yolox-nano", "person_stretch"},
                      Case{"onnx-yolox-nano", "synth0"}),
    pipeline::testing::test_name);
INSTANTIATE_TEST_SUITE_P(Light, Outputs, ::testing::ValuesIn(light("_arange")), pipeline::testing::test_name);
INSTANTIATE_TEST_SUITE_P(Models, InnerTensors,
                         ::testing::Values(Case{"onnx-mnist-8", "synth0"}, Case{"onnx-super-resolution", "synth0"},
                                           Case{"onnx-ultraface-rfb-320", "synth0"}, Case{"onnx-yolox-nano", "synth0"}),
                         pipeline::testing::test_name);
INSTANTIATE_TEST_SUITE_P(Light, InnerTensors, ::testing::ValuesIn(light("_synth0")), pipeline::testing::test_name);
INSTANTIATE_TEST_SUITE_P(Models, Varied, ::testing::ValuesIn(varied()), pipeline::testing::test_name);
INSTANTIATE_TEST_SUITE_P(Models, Chunks,
                         ::testing::Values(Case{"onnx-silero-vad", "synth0_context0"},
                                           Case{"onnx-silero-vad", "synth0_context64"},
                                           Case{"onnx-silero-vad", "voiced_context64"}),
                         pipeline::testing::test_name);

}  // namespace
}  // namespace tenon::e2e
