// Small networks from cfg to numbers. Expected values are worked out by hand from Darknet's definitions.
#include <cmath>
#include <numeric>
#include <tenon/sdk/plugin.hpp>

#include "importers/darknet/testing/import_testing.h"

namespace tenon::darknet {
namespace {

using Names = std::vector<std::string>;
using Floats = std::vector<float>;

std::string net(int channels, int height, int width) {
  return "[net]\nchannels=" + std::to_string(channels) + "\nheight=" + std::to_string(height) +
         "\nwidth=" + std::to_string(width) + "\n";
}

Floats counted(int first, int count) {
  Floats values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), static_cast<float>(first));
  return values;
}

void expect_near(const Floats& found, const Floats& expected, float tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t n = 0; n < found.size(); ++n) EXPECT_NEAR(found[n], expected[n], tolerance) << n;
}

using DarknetImport = ImportTest;

TEST_F(DarknetImport, NamesOfNodesValuesAndOutputs) {
  const std::string cfg =
      net(2, 4, 4) +
      "[convolutional]\nbatch_normalize=1\nfilters=2\nactivation=leaky\n"   // 0
      "[maxpool]\nsize=2\nstride=2\n"                                       // 1
      "[dropout]\n"                                                         // 2
      "[convolutional]\nbatch_normalize=1\nfilters=2\nactivation=linear\n"  // 3
      "[convolutional]\nfilters=2\nactivation=relu\n"                       // 4
      "[route]\nlayers=-2\n"                                                // 5
      "[shortcut]\nfrom=-2\nactivation=leaky\n"                             // 6
      "[convolutional]\nfilters=6\nactivation=linear\n"                     // 7
      "[region]\nnum=1\nclasses=1\nanchors=1.5,2\n"                         // 8
      "[route]\nlayers=6\n"                                                 // 9
      "[convolutional]\nfilters=12\nactivation=linear\n"                    // 10
      "[yolo]\nnum=3\nmask=1,2\nclasses=1\nanchors=1,2,3,4,5,6.25\nscale_x_y=1.05\nnms_kind=greedynms\n";
  import(write("x.cfg", cfg), R"({"random_weights": "1"})");
  EXPECT_EQ(names("inputs"), Names{"data"});
  EXPECT_EQ(describe()["inputs"][0]["dims"], nlohmann::json({1, 2, 4, 4}));
  EXPECT_EQ(names("outputs"), (Names{"layer8", "layer11"}));
  EXPECT_EQ(names("nodes"),
            (Names{"layer0.conv", "layer0.bn", "layer0", "layer1", "layer3.conv", "layer3", "layer4.conv", "layer4",
                   "layer6.add", "layer6", "layer7", "layer8", "layer10", "layer11"}));
  EXPECT_EQ(*network_->metadata("darknet.aliases"), R"({"layer2":"layer1","layer5":"layer3","layer9":"layer6"})");
  EXPECT_EQ(*network_->metadata("detection"),
            R"({"heads":[{"output":"layer8","kind":"region","classes":1,"coords":4,"anchors":[[1.5,2]],)"
            R"("anchor_unit":"cell","scale_x_y":1,"nms_kind":"default","softmax":false},)"
            R"({"output":"layer11","kind":"yolo","classes":1,"coords":4,"anchors":[[3,4],[5,6.25]],)"
            R"("anchor_unit":"pixel","scale_x_y":1.05,"nms_kind":"greedynms","softmax":false}],)"
            R"("net":{"width":4,"height":4,"channels":2}})");
  EXPECT_FALSE(network_->metadata("classification").ok());
}

TEST_F(DarknetImport, ClassifierMetadataNamesTheSoftmax) {
  import_text(net(3, 2, 2) + "[avgpool]\n[softmax]\n[cost]\n", {});
  EXPECT_EQ(names("outputs"), Names{"layer1"});
  EXPECT_EQ(*network_->metadata("classification"), R"({"output":"layer1","net":{"width":2,"height":2,"channels":3}})");
  EXPECT_EQ(*network_->metadata("darknet.aliases"), R"({"layer2":"layer1"})");
}

// 1x1 convolution of two channels with batch-norm: biases, scales, means, variances, weights.
TEST_F(DarknetImport, OrderOfWeightsAndTheThreeBatchNorms) {
  const std::string cfg = net(2, 1, 1) + "[convolutional]\nbatch_normalize=1\nfilters=1\nactivation=linear\n";
  const float variance = 1e-5f;
  const Floats weights = {0.5f, 2, 3, variance, 10, 100};
  const double raw = 1 * 10 + 2 * 100 - 3;
  const std::pair<const char*, double> forms[] = {{"inside_1e-5", std::sqrt(variance + 1e-5)},
                                                  {"outside_1e-6", std::sqrt(variance) + 1e-6},
                                                  {"inside_1e-6", std::sqrt(variance + 1e-6)}};
  for (const auto& [form, divisor] : forms) {
    import_text(cfg, weights, std::string(R"({"batch_norm": ")") + form + R"("})");
    const double expected = 2 * raw / divisor + 0.5;
    EXPECT_NEAR(run({1, 2})["layer0"].values.at(0), expected, std::abs(expected) * 1e-6) << form;
  }
  import_text(cfg, weights);
  const double expected = 2 * raw / std::sqrt(variance + 1e-5) + 0.5;
  EXPECT_NEAR(run({1, 2})["layer0"].values.at(0), expected, std::abs(expected) * 1e-6);
}

// A connected layer keeps biases, then weights [out][in], and its batch-norm last.
TEST_F(DarknetImport, ConnectedKeepsItsBatchNormLast) {
  import_text(net(1, 1, 2) + "[connected]\noutput=2\nactivation=linear\n", {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run({10, 100})["layer0"].values, (Floats{1 + 30 + 400, 2 + 50 + 600}));
  import_text(net(1, 1, 2) + "[connected]\noutput=1\nbatch_normalize=1\nactivation=relu\n", {1, 3, 4, 2, 30, 1});
  EXPECT_EQ(names("nodes"), (Names{"layer0.fc", "layer0.bn", "layer0"}));
  expect_near(run({10, 100})["layer0"].values, {2 * 400 / std::sqrt(1.00001f) + 1}, 1e-3f);
}

TEST_F(DarknetImport, FourHeadersGiveTheSameAndAWrongOneIsNamed) {
  const std::string cfg = write("x.cfg", net(1, 2, 2) + "[convolutional]\nfilters=1\nactivation=linear\n");
  const std::string body = floats({1, 2});
  const std::string good[] = {header(0, 1, 0, 4), header(0, 2, 0, 8), header(0, 2, 5, 8), header(1, 0, 0, 8)};
  for (const std::string& head : good) {
    write("x.weights", head + body);
    import(cfg);
    EXPECT_EQ(run({1, 2, 3, 4})["layer0"].values, (Floats{3, 5, 7, 9}));
  }
  write("x.weights", header(0, 1, 0, 8) + body);
  const std::string message = import_failure(cfg);
  EXPECT_NE(message.find("4 bytes too long"), std::string::npos) << message;
  EXPECT_NE(message.find("A 64-bit counter would fit exactly: set the option seen_bits=64"), std::string::npos)
      << message;
  import(cfg, R"({"seen_bits": "64"})");
  EXPECT_EQ(run({1, 2, 3, 4})["layer0"].values, (Floats{3, 5, 7, 9}));
  write("x.weights", header(1000, 2, 0, 8) + body);
  EXPECT_NE(import_failure(cfg).find("not a Darknet header"), std::string::npos);
}

TEST_F(DarknetImport, WhereWeightsComeFrom) {
  const std::string cfg = write("x.cfg", net(1, 1, 1) + "[convolutional]\nactivation=linear\n");
  const std::string message = import_failure(cfg);
  EXPECT_NE(message.find("give the file for the role \"weights\", or put x.weights beside the cfg"), std::string::npos)
      << message;
  write("x.weights", header(0, 2, 0, 8) + floats({0, 3}));
  import(cfg);
  EXPECT_EQ(run({2})["layer0"].values, Floats{6});
  const std::string other = write("other.bin", header(0, 2, 0, 8) + floats({0, 5}));
  import(cfg, "", nlohmann::json{{ "weights", other }}.dump());
  EXPECT_EQ(run({2})["layer0"].values, Floats{10});
  import(cfg, R"({"random_weights": "7"})", nlohmann::json{{ "weights", other }}.dump());
  EXPECT_EQ(run({2})["layer0"].values, Floats{10});
  ASSERT_FALSE(log_.empty());
  EXPECT_NE(log_.back().find("random_weights is ignored"), std::string::npos) << log_.back();
}

TEST_F(DarknetImport, RandomWeightsDependOnTheSeedOnly) {
  const std::string cfg =
      write("x.cfg", net(3, 4, 4) + "[convolutional]\nfilters=4\nsize=3\npad=1\nbatch_normalize=1\n");
  const auto result = [&](const char* options) {
    import(cfg, options);
    return run(counted(0, 48))["layer0"].values;
  };
  const Floats first = result(R"({"random_weights": "1"})");
  EXPECT_EQ(result(R"({"random_weights": "1"})"), first);
  EXPECT_NE(result(R"({"random_weights": "2"})"), first);
}

TEST_F(DarknetImport, MaxPoolTable) {
  const Floats image = counted(1, 9);
  import_text(net(1, 3, 3) + "[maxpool]\nsize=2\nstride=1\n", {});
  EXPECT_EQ(run(image)["layer0"].values, (Floats{5, 6, 6, 8, 9, 9, 8, 9, 9}));
  import_text(net(1, 3, 3) + "[maxpool]\nsize=2\nstride=2\n", {});
  EXPECT_EQ(run(image)["layer0"].values, (Floats{5, 6, 8, 9}));
  import_text(net(1, 3, 3) + "[maxpool]\nsize=3\nstride=1\n", {});
  EXPECT_EQ(run(image)["layer0"].values, (Floats{5, 6, 6, 8, 9, 9, 8, 9, 9}));
  const std::string era = R"({"maxpool_era": "2017"})";
  import_text(net(1, 3, 3) + "[maxpool]\nsize=2\nstride=2\n", {}, era);
  EXPECT_EQ(run(image)["layer0"].values, (Floats{5}));
  import_text(net(1, 3, 3) + "[maxpool]\nsize=2\nstride=1\n", {}, era);
  EXPECT_EQ(run(image)["layer0"].values, (Floats{5, 6, 6, 8, 9, 9, 8, 9, 9}));
}

TEST_F(DarknetImport, ReorgInDarknetsOrder) {
  import_text(net(4, 4, 4) + "[reorg]\nstride=2\n", {});
  const auto values = run(counted(0, 64))["layer0"];
  EXPECT_EQ(values.dims, (std::vector<int64_t>{1, 16, 2, 2}));
  EXPECT_EQ(values.values,
            (Floats{0,  2,  4,  6,  16, 18, 20, 22, 32, 34, 36, 38, 48, 50, 52, 54, 1,  3,  5,  7,  17, 19,
                    21, 23, 33, 35, 37, 39, 49, 51, 53, 55, 8,  10, 12, 14, 24, 26, 28, 30, 40, 42, 44, 46,
                    56, 58, 60, 62, 9,  11, 13, 15, 25, 27, 29, 31, 41, 43, 45, 47, 57, 59, 61, 63}));
}

TEST_F(DarknetImport, CropTakesTheMiddleAndScales) {
  import_text(net(1, 4, 4) + "[crop]\ncrop_height=2\ncrop_width=1\n", {});
  EXPECT_EQ(run(counted(0, 16))["layer0"].values, (Floats{9, 17}));  // 5 and 9, times 2 minus 1
  import_text(net(1, 4, 4) + "[crop]\ncrop_height=2\ncrop_width=1\nnoadjust=1\n", {});
  EXPECT_EQ(run(counted(0, 16))["layer0"].values, (Floats{5, 9}));
}

TEST_F(DarknetImport, RouteJoinsAndSlices) {
  import_text(net(4, 1, 2) +
                  "[dropout]\n[route]\nlayers=-1\ngroups=2\ngroup_id=1\n[route]\nlayers=-1,0\n"
                  "[route]\nlayers=2,0\ngroups=2\n",
              {});
  auto values = run(counted(0, 8));
  EXPECT_EQ(values["layer1"].values, (Floats{4, 5, 6, 7}));
  EXPECT_EQ(values["layer2"].values, (Floats{4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(values["layer3"].values, (Floats{4, 5, 6, 7, 0, 1, 0, 1, 2, 3}));
}

// The input is [1, 2]; route makes wider values, maxpool smaller ones.
TEST_F(DarknetImport, ShortcutOfOtherSizes) {
  const std::string wide = "[dropout]\n[route]\nlayers=0,0\n";
  import_text(net(1, 1, 2) + wide + "[shortcut]\nfrom=0\n", {});
  EXPECT_EQ(run({1, 2})["layer2"].values, (Floats{2, 4, 1, 2}));  // one channel onto the first of two
  import_text(net(1, 1, 2) + wide + "[route]\nlayers=0\n[dropout]\n[shortcut]\nfrom=1\nactivation=relu\n", {});
  EXPECT_EQ(run({-1, 2})["layer4"].values, (Floats{0, 4}));  // the first of two channels onto one
  import_text(net(1, 4, 4) + "[dropout]\n[maxpool]\nstride=2\n[shortcut]\nfrom=0\n", {});
  EXPECT_EQ(run(counted(0, 16))["layer2"].values, (Floats{5 + 0, 7 + 2, 13 + 8, 15 + 10}));
  import_text(net(1, 1, 2) + "[dropout]\n[dropout]\n[shortcut]\nfrom=0,1\n", {});
  EXPECT_EQ(run({1, 2})["layer2"].values, (Floats{3, 6}));
}

TEST_F(DarknetImport, SoftmaxGroupsAndTemperature) {
  const float ln3 = std::log(3.0f);
  import_text(net(4, 1, 1) + "[softmax]\ngroups=2\n", {});
  expect_near(run({0, ln3, ln3, ln3})["layer0"].values, {0.25f, 0.75f, 0.5f, 0.5f}, 1e-6f);
  import_text(net(2, 1, 1) + "[softmax]\ntemperature=2\n", {});
  expect_near(run({0, 2 * ln3})["layer0"].values, {0.25f, 0.75f}, 1e-6f);
  import_text(net(1, 1, 2) + "[softmax]\n", {});  // over everything, whatever the shape
  expect_near(run({0, ln3})["layer0"].values, {0.25f, 0.75f}, 1e-6f);
}

TEST_F(DarknetImport, DetectionIsACopyOrSoftmaxOverItsClasses) {
  const std::string cfg = net(6, 1, 1) + "[detection]\nside=1\nnum=1\ncoords=3\nclasses=2\n";
  import_text(cfg, {});
  EXPECT_EQ(run({1, 2, 3, 4, 5, 6})["layer0"].values, (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(names("outputs"), Names{"layer0"});
  import_text(cfg + "softmax=1\n", {});
  expect_near(run({0, std::log(3.0f), 3, 4, 5, 6})["layer0"].values, {0.25f, 0.75f, 3, 4, 5, 6}, 1e-6f);
  EXPECT_FALSE(network_->metadata("detection").ok());
}

TEST_F(DarknetImport, RegionAndUpsample) {
  const float ln3 = std::log(3.0f);
  import_text(net(7, 1, 1) + "[upsample]\nscale=2\n[region]\nnum=1\nanchors=1,2\nclasses=2\nsoftmax=1\n", {});
  const auto values = run({0, 0, 1, 2, 0, 0, ln3 / 2})["layer1"];
  EXPECT_EQ(values.dims, (std::vector<int64_t>{1, 7, 2, 2}));
  expect_near(
      {values.values[0], values.values[8], values.values[12], values.values[16], values.values[20], values.values[27]},
      {0.5f, 2, 4, 0.5f, 0.25f, 0.75f}, 1e-6f);
}

TEST_F(DarknetImport, ErrorsNameFileLineAndSection) {
  const std::string cfg = write("x.cfg", net(1, 4, 4) + "[convolutional]\nactivation=frelu\n");
  EXPECT_NE(import_failure(cfg).find("x.cfg:6: [convolutional] (layer 0): activation 'frelu' is not supported"),
            std::string::npos);
  EXPECT_NE(import_failure(write("y.cfg", net(1, 4, 4))).find("y.cfg:1: [net]: expected at least one section"),
            std::string::npos);
  EXPECT_NE(import_failure(write("z.cfg", net(1, 4, 4) + "[dropout]\n"), R"({"random_weights": "1"})")
                .find("z.cfg:5: [dropout] (layer 0): no section up to this last one computes anything"),
            std::string::npos);
  EXPECT_NE(import_failure(write("bad.cfg", "hello\n")).find("bad.cfg:1: expected [net]"), std::string::npos);
  EXPECT_NE(import_failure(cfg, R"({"batch_norm": "other"})").find("batch_norm"), std::string::npos);
  EXPECT_NE(import_failure(cfg, R"({"seen_bits": "16"})").find("seen_bits"), std::string::npos);
}

TEST_F(DarknetImport, WarningsGoToTheLog) {
  import(write("x.cfg", net(1, 4, 4) + "height=9\n[maxpool]\nsizes=3\nsize\n"), R"({"random_weights": "1"})");
  ASSERT_EQ(log_.size(), 3u);
  EXPECT_NE(log_[0].find("x.cfg:5: [net]: height was given in line 3 already"), std::string::npos) << log_[0];
  EXPECT_NE(log_[1].find("x.cfg:8: [maxpool] (layer 0): 'size' is ignored"), std::string::npos) << log_[1];
  EXPECT_NE(log_[2].find("x.cfg:7: [maxpool] (layer 0): unknown key 'sizes' is ignored"), std::string::npos) << log_[2];
}

TEST_F(DarknetImport, TheSuffixChoosesThisImporter) {
  write("x.weights", header(0, 2, 0, 8));
  const std::string cfg = write("x.cfg", net(1, 4, 4) + "[maxpool]\nstride=2\n");
  auto network = Network::create(*library_);
  ASSERT_TRUE(network.ok());
  EXPECT_TRUE(network->import(cfg).ok());
}

// [scale_by] factor=F: multiplies by F and by one number of the weights file.
std::vector<TnValueId> import_scale_by(const ForeignOp& op, GraphView& graph) {
  const float factor = std::stof(op.attrs().str("factor")) * op.read_floats(1)[0];
  if (factor == 0) throw Invalid(text(op.type(), " in line ", op.line(), ": the factor is 0"));
  const TnValueId constant = graph.add_const(op.name() + ".factor", Dims{1}, &factor);
  return {graph.add_node("tenon.mul/1", op.name(), graph.attrs(), {op.input(op.num_inputs() - 1), constant})};
}

TENON_LINKED_PLUGIN(teaching_plugin, "test.scale_by", "1", "Apache-2.0",
                    op_importer("tenon.darknet", "scale_by", import_scale_by))

TEST_F(DarknetImport, AnotherPluginTeachesASection) {
  const std::string conv = "[convolutional]\nactivation=linear\n";
  const std::string cfg = write("x.cfg", net(1, 1, 1) + conv + "[scale_by]\nfactor=2\n" + conv);
  write("x.weights", header(0, 2, 0, 8) + floats({1, 3, 10, 2, 5}));
  const std::string message = import_failure(cfg);
  EXPECT_NE(message.find("x.cfg:7: [scale_by] (layer 1): unknown section"), std::string::npos) << message;
  EXPECT_NE(message.find("tenon.darknet:scale_by"), std::string::npos) << message;

  ASSERT_TRUE(library_->add_plugin(teaching_plugin()).ok());
  import(cfg);
  auto values = run({4});
  EXPECT_EQ(values["layer0"].values, Floats{13});
  EXPECT_EQ(values["layer1"].values, Floats{13 * 2 * 10});
  EXPECT_EQ(values["layer2"].values, Floats{13 * 2 * 10 * 5 + 2});
  EXPECT_EQ(names("outputs"), Names{"layer2"});

  // Its floats are part of the file, so lengths are still checked.
  write("x.weights", header(0, 2, 0, 8) + floats({1, 3, 10, 2, 5, 0}));
  EXPECT_NE(import_failure(cfg).find("4 of 44 bytes are left over"), std::string::npos) << import_failure(cfg);
  write("x.weights", header(0, 2, 0, 8) + floats({1, 3, 10, 2}));
  EXPECT_NE(import_failure(cfg).find("the file ends inside"), std::string::npos) << import_failure(cfg);
  write("x.weights", header(0, 2, 0, 8) + floats({1, 3, 0, 2, 5}));
  EXPECT_NE(import_failure(cfg).find("[scale_by] in line 7: the factor is 0"), std::string::npos)
      << import_failure(cfg);

  // Nobody reads the second one: it is an output, in the place of a head. The first takes layer 0.
  write("x.weights", header(0, 2, 0, 8) + floats({1, 3, 10, 1}));
  import(write("x.cfg", net(1, 1, 1) + conv + "[scale_by]\nfactor=2\n[scale_by]\nfactor=3\nlayers=-1, 0\n"));
  EXPECT_EQ(names("outputs"), Names{"layer2"});
  EXPECT_EQ(run({4})["layer2"].values, Floats{13 * 3});

  ASSERT_TRUE(library_->unload_plugin("test.scale_by").ok());
  EXPECT_NE(import_failure(cfg).find("unknown section"), std::string::npos);
}

}  // namespace
}  // namespace tenon::darknet
