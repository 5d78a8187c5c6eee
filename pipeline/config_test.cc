#include "pipeline/config.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "pipeline/testing/temp_dir.h"
#include "tests/support/data_dirs.h"

namespace tenon::pipeline {
namespace {

using testing::TempDir;

/// A folder with the files that the texts below name.
class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() {
    for (const char* name : {"x.cfg", "x.weights", "x.onnx", "coco.names", "roialign.tnp.so"}) dir_.write(name, "x");
  }

  ConfigOutcome check(const std::string& text) const {
    return check_config_text(text, dir_.path() / "pipeline.yaml",
                             [](const std::string& name) -> std::optional<std::string> {
                               if (name == "MODEL") return "x";
                               return {};
                             });
  }

  /// All problems as "line:column message", without the folder of the test.
  std::string problems(const std::string& text) const {
    std::string all;
    for (const ConfigProblem& p : check(text).problems) {
      all += std::to_string(p.line) + ":" + std::to_string(p.column) + " " + p.message + "\n";
    }
    for (std::size_t at; (at = all.find(dir_.path().string() + "/")) != std::string::npos;) {
      all.erase(at, dir_.path().string().size() + 1);
    }
    return all;
  }

  TempDir dir_;
};

constexpr const char* kModel = "tenon: 1\nmodel: {format: darknet, cfg: x.cfg, weights: x.weights}\n";

TEST_F(ConfigTest, TheWholeSchema) {
  const ConfigOutcome outcome = check(R"(
tenon: 1
model: {format: darknet, cfg: "${MODEL}.cfg", weights: x.weights, options: {batch_norm: outside_1e-6, seen_bits: 64}}
device: cuda:1
on_fallback: forbid
precision: tf32
batch: 4
plugins: [roialign.tnp.so]
build:
  timing_cache: yolo.cache.yaml
  editable_timing_cache: true
  frozen: false
  workspace: 256MiB
  engine: yolo.tenon
  on_missing_engine: build
  time_budget: 30s
  threads: 2
preprocess: {resize: stretch, color: bgr, scale: 1/255, mean: [0.1, 0.2, 0.3], std: [1, 2, 3]}
postprocess: {type: detections, threshold: 0.24, nms: 0.5, nms_kind: diou, labels: coco.names, decoder: yolo}
output: {draw: false}
layers:
  - {match: "conv1*", precision: fp32, tactic: 0x665ded9abbf88}
  - match: "*"
    kernel: tenon.conv2d.gemm
    combo: nhwc
)");
  ASSERT_TRUE(outcome.problems.empty()) << outcome.problems[0].message;
  const PipelineConfig& c = outcome.config;
  EXPECT_EQ(c.model.format, "darknet");
  EXPECT_EQ(c.model.file, dir_.path() / "x.cfg");
  EXPECT_EQ(c.model.weights, dir_.path() / "x.weights");
  EXPECT_EQ(c.model.options.at("batch_norm"), "outside_1e-6");
  EXPECT_EQ(c.model.options.at("seen_bits"), "64");
  EXPECT_EQ(c.device, "cuda:1");
  EXPECT_EQ(c.on_fallback, OnFallback::kForbid);
  EXPECT_EQ(c.precision, "tf32");
  EXPECT_EQ(c.batch, 4);
  ASSERT_EQ(c.plugins.size(), 1u);
  EXPECT_EQ(c.build.timing_cache, dir_.path() / "yolo.cache.yaml");
  EXPECT_TRUE(c.build.editable_timing_cache);
  EXPECT_EQ(c.build.workspace, 268435456u);
  EXPECT_EQ(c.build.engine, dir_.path() / "yolo.tenon");
  EXPECT_EQ(c.build.time_budget, 30.0);
  EXPECT_EQ(c.build.threads, 2);
  EXPECT_EQ(c.preprocess.resize, Resize::kStretch);
  EXPECT_EQ(c.preprocess.color, Color::kBgr);
  EXPECT_EQ(c.preprocess.scale, 1.0 / 255.0);
  EXPECT_EQ(c.preprocess.mean, (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_EQ(c.postprocess.type, PostprocessType::kDetections);
  EXPECT_FLOAT_EQ(c.postprocess.threshold, 0.24f);
  EXPECT_FLOAT_EQ(c.postprocess.nms, 0.5f);
  EXPECT_EQ(c.postprocess.nms_kind, NmsKind::kDiou);
  EXPECT_EQ(c.postprocess.labels, dir_.path() / "coco.names");
  EXPECT_EQ(c.postprocess.decoder, "yolo");
  EXPECT_FALSE(c.draw);
  ASSERT_EQ(c.layers.size(), 2u);
  EXPECT_EQ(c.layers[0].tactic, 0x665ded9abbf88u);
  EXPECT_EQ(c.layers[0].precision, "fp32");
  EXPECT_EQ(c.layers[1].kernel, "tenon.conv2d.gemm");
  EXPECT_EQ(c.layers[1].combo, "nhwc");
}

TEST_F(ConfigTest, OnnxDetector) {
  const ConfigOutcome outcome = check(
      "tenon: 1\nmodel: {format: onnx, file: x.onnx}\n"
      "preprocess: {resize: letterbox, placement: top_left, pad: 114, align_corners: false, color: bgr, scale: 1}\n"
      "postprocess: {type: detections, decoder: yolox}\n");
  ASSERT_TRUE(outcome.problems.empty()) << outcome.problems[0].message;
  const PipelineConfig& c = outcome.config;
  EXPECT_EQ(c.preprocess.placement, Placement::kTopLeft);
  EXPECT_EQ(c.preprocess.pad, 114);
  EXPECT_FALSE(c.preprocess.align_corners);
  EXPECT_EQ(c.postprocess.decoder, "yolox");
  EXPECT_NE(
      describe(c).find("resize letterbox, color bgr, scale 1, placement top_left, pad 114, corners not aligned\n"),
      std::string::npos)
      << describe(c);
}

TEST_F(ConfigTest, DecodersAndPlacesThatAreNone) {
  EXPECT_EQ(problems("tenon: 1\nmodel: {format: onnx, file: x.onnx}\n"
                     "preprocess: {resize: stretch, pad: 114}\n"
                     "postprocess: {type: detections, decoder: yolov}\n"),
            "3:36 'preprocess.pad': only resize letterbox leaves room around the picture\n"
            "4:42 'postprocess.decoder': expected one of auto, region, yolo, yolox, nanodet, ultraface, yunet, found "
            "'yolov'; did you mean 'yolo'?\n");
}

TEST_F(ConfigTest, Defaults) {
  const ConfigOutcome outcome = check("tenon: 1\nmodel: {format: onnx, file: x.onnx}\nbuild:\n");
  ASSERT_TRUE(outcome.problems.empty()) << outcome.problems[0].message;
  EXPECT_EQ(outcome.config.device, "auto");
  EXPECT_EQ(outcome.config.on_fallback, OnFallback::kWarn);
  EXPECT_EQ(outcome.config.precision, "fp32");
  EXPECT_EQ(outcome.config.preprocess.resize, Resize::kLetterbox);
  EXPECT_EQ(outcome.config.postprocess.type, PostprocessType::kTensors);
  EXPECT_FLOAT_EQ(outcome.config.postprocess.nms, 0.45f);
  EXPECT_EQ(outcome.config.postprocess.nms_kind, std::nullopt);
  EXPECT_TRUE(outcome.config.model.weights.empty());
}

TEST_F(ConfigTest, EveryProblemIsReportedAtOnceWithItsPlace) {
  EXPECT_EQ(problems("tenon: 1\n"
                     "model: {format: darknet, cfg: absent.cfg, weights: x.weights}\n"
                     "devise: cpu\n"
                     "precision: fp61\n"
                     "batch: many\n"
                     "postprocess:\n"
                     "  type: detections\n"
                     "  treshold: 0.3\n"
                     "  nms: 1.5\n"),
            "2:31 'model.cfg': absent.cfg does not exist; relative paths start from the folder of this file\n"
            "3:1 unknown key 'devise'; did you mean 'device'?\n"
            "4:12 'precision': expected one of fp32, tf32, bf16, found 'fp61'; did you mean 'fp32'?\n"
            "5:8 'batch': expected a whole number from 1 to 65536, found 'many'\n"
            "8:3 unknown key 'treshold' in 'postprocess'; did you mean 'threshold'?\n"
            "9:8 'postprocess.nms': expected a number from 0 to 1, found '1.5'\n");
}

TEST_F(ConfigTest, ProblemsCarryKeyAndNearestForPrograms) {
  const auto found = check(std::string(kModel) + "layers:\n  - {macth: a, precision: fp32}\n").problems;
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].key, "layers[0].match");
  EXPECT_NE(found[0].message.find("is missing"), std::string::npos);
  EXPECT_EQ(found[1].key, "layers[0].macth");
  EXPECT_EQ(found[1].nearest, "match");
  EXPECT_EQ(found[1].line, 4);
  EXPECT_EQ(problem_text("p.yaml", found[1]), "p.yaml:4:6: unknown key 'macth' in 'layers[0]'; did you mean 'match'?");
}

TEST_F(ConfigTest, MissingParts) {
  EXPECT_NE(problems("model: {format: onnx, file: x.onnx}\n").find("'tenon' is missing"), std::string::npos);
  EXPECT_NE(
      problems("tenon: 2\nmodel: {format: onnx, file: x.onnx}\n").find("1:8 'tenon': this program reads version 1"),
      std::string::npos);
  EXPECT_NE(problems("tenon: 1\n").find("'model' is missing"), std::string::npos);
  EXPECT_NE(problems("tenon: 1\nmodel: {cfg: x.cfg}\n").find("'model.format' is missing"), std::string::npos);
  EXPECT_NE(problems("tenon: 1\nmodel: {format: darknet, cfg: x.cfg}\n").find("2:8 'model.weights' is missing"),
            std::string::npos);
  EXPECT_NE(problems("tenon: 1\nmodel: {format: onnx}\n").find("'model.file' is missing"), std::string::npos);
  EXPECT_NE(problems(std::string(kModel) + "postprocess: {nms: 0.4}\n").find("'postprocess.type' is missing"),
            std::string::npos);
  EXPECT_NE(problems(std::string(kModel) + "layers:\n  - match: a\n").find("asks for nothing"), std::string::npos);
}

TEST_F(ConfigTest, FrozenNeedsAnExistingCache) {
  EXPECT_NE(problems(std::string(kModel) + "build: {frozen: true}\n").find("'build.timing_cache' is missing"),
            std::string::npos);
  EXPECT_NE(
      problems(std::string(kModel) + "build: {frozen: true, timing_cache: c.yaml}\n").find("c.yaml does not exist"),
      std::string::npos);
  EXPECT_NE(problems(std::string(kModel) + "build: {on_missing_engine: fail, engine: e.tenon}\n")
                .find("e.tenon does not exist"),
            std::string::npos);
}

TEST_F(ConfigTest, ChannelsMustFit) {
  EXPECT_NE(problems(std::string(kModel) + "preprocess: {color: gray, mean: [1, 2, 3]}\n").find("expected 1 numbers"),
            std::string::npos);
  EXPECT_NE(problems(std::string(kModel) + "preprocess: {std: [1, 0, 3]}\n").find("0 is not allowed"),
            std::string::npos);
  EXPECT_EQ(check(std::string(kModel) + "preprocess: {mean: 127.5, std: 128}\n").config.preprocess.mean.size(), 3u);
}

TEST_F(ConfigTest, TextThatIsNoPipeline) {
  EXPECT_NE(problems("").find("the file is empty"), std::string::npos);
  EXPECT_NE(problems("# only a comment\n").find("the file is empty"), std::string::npos);
  EXPECT_NE(problems("- a\n- b\n").find("expected a mapping"), std::string::npos);
  EXPECT_NE(problems("tenon: [1\n").find("not valid YAML"), std::string::npos);
  EXPECT_NE(problems(std::string(kModel) + "---\ntenon: 1\n").find("a second document"), std::string::npos);
  EXPECT_NE(problems(std::string(kModel) + "? [a, b]\n: c\n").find("expected a key"), std::string::npos);
  EXPECT_FALSE(problems(std::string(5000, '[')).empty());
  EXPECT_FALSE(problems(std::string("\x00\xFF\xFE{", 4)).empty());
}

TEST_F(ConfigTest, EveryTruncationIsSafe) {
  const std::string whole = std::string(kModel) + "build: {workspace: 1GiB}\nlayers:\n  - {match: '*', tactic: 0x1}\n";
  for (std::size_t size = 0; size < whole.size(); ++size) (void)check(whole.substr(0, size));
}

TEST_F(ConfigTest, LoadConfigReadsFiles) {
  EXPECT_EQ(load_config(dir_.path() / "absent.yaml").status().code(), Code::kInvalid);
  const auto good = load_config(dir_.write("good.yaml", kModel));
  ASSERT_TRUE(good.ok()) << good.status().message();
  EXPECT_EQ(good->source, dir_.path() / "good.yaml");
  const auto bad = load_config(dir_.write("bad.yaml", "tenon: 1\nmodle: {}\n"));
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.status().message().find("bad.yaml:2:1: unknown key 'modle'; did you mean 'model'?"), std::string::npos)
      << bad.status().message();
}

TEST_F(ConfigTest, DescribeShowsTheResolvedPlan) {
  const auto outcome = check(std::string(kModel) +
                             "build: {workspace: 256MiB, engine: y.tenon}\n"
                             "postprocess: {type: detections, threshold: 0.24, labels: coco.names}\n"
                             "layers:\n  - {match: 'conv*', tactic: 0xab}\n");
  ASSERT_TRUE(outcome.problems.empty());
  const std::string text = describe(outcome.config);
  for (const std::string& line :
       {"weights     " + (dir_.path() / "x.weights").string() + "\n", std::string("workspace   256 MiB\n"),
        std::string("preprocess  resize letterbox, color rgb, scale 1/255\n"),
        std::string("detections, decoder auto, threshold 0.24, nms 0.45 (auto), labels "),
        std::string("layers      \"conv*\": tactic 0xab\n"), std::string("(built when missing or out of date)")}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(ValidDevice, FourForms) {
  for (const char* good : {"auto", "cpu", "cuda", "cuda:0", "cuda:12"}) EXPECT_TRUE(valid_device(good)) << good;
  for (const char* bad : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:99999", "CPU"}) {
    EXPECT_FALSE(valid_device(bad)) << bad;
  }
}

class ShippedConfig : public ::testing::TestWithParam<const char*> {};

TEST_P(ShippedConfig, IsRight) {
  const auto path = tenon::testing::source_dir() / "configs" / GetParam();
  TENON_NEED_DATA(path);
  TENON_NEED_DATA(tenon::testing::models_dir());
  ::setenv("TENON_MODELS_DIR", tenon::testing::models_dir().c_str(), 1);
  const auto config = load_config(path);
  EXPECT_TRUE(config.ok()) << config.status().message();
}

INSTANTIATE_TEST_SUITE_P(All, ShippedConfig,
                         ::testing::Values("darknet-tiny-imagenet.yaml", "face-tiny-region.yaml",
                                           "mobilenetv2-yolo-fastest-voc.yaml", "mobilenetv2-yolov3-nano-coco.yaml",
                                           "onnx-nanodet-m.yaml", "onnx-ultraface-rfb-320.yaml", "onnx-yolox-nano.yaml",
                                           "onnx-yunet-2023mar.yaml", "yolo-fastest-1.1-body.yaml",
                                           "yolo-fastest-1.1-coco.yaml", "yolo-fastest-1.1-xl-coco.yaml"));

TEST(ShippedConfig, DigitsIsRight) {
  TENON_NEED_DATA(tenon::testing::source_dir() / "models" / "digits" / "digits.weights");
  const auto config = load_config(tenon::testing::source_dir() / "configs" / "digits.yaml");
  EXPECT_TRUE(config.ok()) << config.status().message();
}

}  // namespace
}  // namespace tenon::pipeline
