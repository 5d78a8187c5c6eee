// Sizes, parameter counts and refusals. Expected values are Darknet's rules worked out by hand, and the counts that the
// publishers' file sizes imply.
#include "importers/darknet/layers.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <tenon/sdk/error.hpp>

#include "importers/darknet/testing/failure_of.h"
#include "tests/support/data_dirs.h"

namespace tenon::darknet {
namespace {

struct Planned {
  std::vector<Layer> layers;
  uint64_t floats = 0;
  std::vector<std::string> warnings;
  const Layer& last() const { return layers.back(); }
};

Planned plan(const std::string& text, const std::string& file = "x.cfg", PlanOptions options = {}) {
  Planned result;
  const Warn warn = [&](const std::string& message) { result.warnings.push_back(message); };
  const Cfg cfg = parse_cfg(text, file, warn);
  warn_of_unknown_keys(cfg.net, warn);
  const Shape input = plan_input(cfg.net);
  std::vector<Shape> shapes;
  for (const Section& section : cfg.layers) {
    warn_of_unknown_keys(section, warn);
    if (!knows(section)) section.fail("unknown section");
    result.layers.push_back(plan_layer(section, input, shapes, options));
    shapes.push_back(result.last().out);
    result.floats += result.last().floats;
  }
  return result;
}

std::string net(int channels, int height, int width) {
  std::ostringstream text;
  text << "[net]\nchannels=" << channels << "\nheight=" << height << "\nwidth=" << width << "\n";
  return text.str();
}

// Shape of the last section's output.
std::string out(const std::string& input, const std::string& sections, PlanOptions options = {}) {
  return to_text(plan(input + sections, "x.cfg", options).last().out);
}

std::string failure(const std::string& text) {
  return failure_of([&] { plan(text); });
}

TEST(DarknetLayers, Defaults) {
  const Planned conv = plan(net(3, 8, 8) + "[convolutional]\n");
  EXPECT_EQ(to_text(conv.last().out), "1x8x8");
  const auto& operation = std::get<Convolution>(conv.last().operation);
  EXPECT_EQ(operation.size, 1);
  EXPECT_EQ(operation.stride_x, 1);
  EXPECT_EQ(operation.padding, 0);
  EXPECT_EQ(operation.activation.op, "tenon.logistic/1");
  EXPECT_EQ(conv.floats, 1u + 3u);

  const Planned pool = plan(net(3, 8, 8) + "[maxpool]\n");
  EXPECT_EQ(std::get<MaxPool>(pool.last().operation).size, 1);
  EXPECT_EQ(to_text(pool.last().out), "3x8x8");
  EXPECT_EQ(std::get<MaxPool>(plan(net(3, 8, 8) + "[maxpool]\nstride=2").last().operation).size, 2);
  EXPECT_EQ(std::get<Reorg>(plan(net(3, 8, 8) + "[reorg]\n").last().operation).stride, 1);
  EXPECT_EQ(out(net(3, 8, 8), "[upsample]\n"), "3x16x16");
}

TEST(DarknetLayers, ConvolutionPadding) {
  EXPECT_EQ(out(net(3, 52, 52), "[conv]\nsize=1\npad=1\n"), "1x52x52");
  EXPECT_EQ(out(net(3, 52, 52), "[conv]\nsize=3\npadding=0\n"), "1x50x50");
  EXPECT_EQ(out(net(3, 52, 52), "[conv]\nsize=3\npad=1\n"), "1x52x52");
  EXPECT_EQ(out(net(3, 52, 52), "[conv]\nsize=3\npad=1\npadding=9\n"), "1x52x52");
  EXPECT_EQ(out(net(3, 52, 52), "[conv]\nsize=3\npadding=2\n"), "1x54x54");
  EXPECT_EQ(out(net(3, 52, 52), "[conv]\nsize=3\npad=1\nstride=2\n"), "1x26x26");
  EXPECT_EQ(out(net(3, 52, 30), "[conv]\nsize=3\npad=1\nstride=2\nstride_x=1\n"), "1x26x30");
  EXPECT_EQ(out(net(3, 52, 52), "[conv]\nsize=3\npad=1\ndilation=4\n"), "1x52x52");
  EXPECT_EQ(
      std::get<Convolution>(plan(net(3, 52, 52) + "[conv]\nsize=3\npad=1\ndilation=4\n").last().operation).padding, 4);
}

TEST(DarknetLayers, MaxPoolGeometry) {
  EXPECT_EQ(out(net(1, 3, 3), "[maxpool]\nsize=2\nstride=1"), "1x3x3");
  EXPECT_EQ(out(net(1, 3, 3), "[maxpool]\nsize=2\nstride=2"), "1x2x2");
  EXPECT_EQ(out(net(1, 3, 3), "[maxpool]\nsize=3\nstride=1"), "1x3x3");
  EXPECT_EQ(out(net(1, 13, 13), "[maxpool]\nsize=2\nstride=1"), "1x13x13");
  EXPECT_EQ(out(net(1, 135, 135), "[maxpool]\nsize=2\nstride=2"), "1x68x68");
  EXPECT_EQ(out(net(1, 13, 13), "[maxpool]\nsize=13\nstride=1"), "1x13x13");
  EXPECT_EQ(out(net(1, 55, 55), "[maxpool]\nsize=3\nstride=2\npadding=0"), "1x27x27");
  const MaxPool pool = std::get<MaxPool>(plan(net(1, 3, 3) + "[maxpool]\nsize=2\nstride=1").last().operation);
  EXPECT_EQ(pool.pads, (std::array<int64_t, 4>{0, 0, 1, 1}));

  PlanOptions old;
  old.maxpool_2017 = true;
  EXPECT_EQ(out(net(1, 135, 135), "[maxpool]\nsize=2\nstride=2", old), "1x67x67");
  EXPECT_EQ(out(net(1, 13, 13), "[maxpool]\nsize=2\nstride=1", old), "1x13x13");
  EXPECT_EQ(out(net(1, 224, 224), "[maxpool]\nsize=3\nstride=2", old), "1x113x113");
}

TEST(DarknetLayers, Refusals) {
  const std::string image = net(3, 8, 8);
  const std::pair<std::string, std::string> cases[] = {
      {"[net]\nwidth=8\nheight=8\n[conv]\n", "x.cfg:1: [net]: channels is missing"},
      {"[net]\nwidth=0\nheight=8\nchannels=3\n[conv]\n", "x.cfg:2: [net]: width: expected 1 to"},
      {"[net]\nwidth=100000\nheight=100000\nchannels=3\n", "x.cfg:1: [net]: elements of the output"},
      {image + "[conv]\nfilters=0", "x.cfg:6: [conv] (layer 0): filters: expected 1 to 2147483647, found 0"},
      {image + "[conv]\nsize=-3", "x.cfg:6: [conv] (layer 0): size"},
      {image + "[conv]\nstride=0", "x.cfg:6: [conv] (layer 0): stride"},
      {image + "[conv]\nsize=9", "a window of 9 does not fit into height 8"},
      {image + "[conv]\nsize=2147483647\npad=1\nstride=1", "[conv] (layer 0): "},
      {image + "[conv]\nfilters=2000000000\nsize=3\npad=1", "x.cfg:5: [conv] (layer 0): weights: expected at most"},
      {image + "[conv]\nfilters=4\ngroups=2", "x.cfg:7: [conv] (layer 0): groups=2 must divide the 3 input channels"},
      {image + "[conv]\nfilters=4\ngroups=3", "groups=3 must divide the 3 input channels and the 4 filters"},
      {image + "[conv]\nactivation=frelu", "x.cfg:6: [conv] (layer 0): activation 'frelu' is not supported; expected"},
      {image + "[conv]\nactivation=loggy", "activation 'loggy' is not supported"},
      {image + "[conv]\nbinary=1", "x.cfg:6: [conv] (layer 0): binary=1 is not supported"},
      {image + "[maxpool]\nsize=2\npadding=9", "expected windows that each touch the image"},
      {image + "[route]\n", "x.cfg:5: [route] (layer 0): layers is missing"},
      {image + "[conv]\n[route]\nlayers=-2",
       "x.cfg:7: [route] (layer 1): layers=-2 names layer -1; expected one of 0 to 0"},
      {image + "[conv]\n[route]\nlayers=1", "layers=1 names layer 1"},
      {image + "[conv]\n[maxpool]\nstride=2\n[route]\nlayers=-1,-2", "expected layers of one height and width"},
      {image + "[conv]\nfilters=3\n[route]\nlayers=-1\ngroups=2", "groups=2 must divide the 3 channels of layer 0"},
      {image + "[conv]\n[route]\nlayers=-1\ngroups=2\ngroup_id=2", "group_id: expected 0 to 1, found 2"},
      {image + "[conv]\n[shortcut]\n", "from is missing"},
      {image + "[maxpool]\nstride=2\n[upsample]\n[shortcut]\nfrom=-2", "expected a layer of the height and width"},
      {image + "[conv]\n[maxpool]\nstride_y=2\n[shortcut]\nfrom=-2", "expected a layer of the height and width"},
      {image + "[conv]\n[shortcut]\nfrom=-1\nweights_type=per_feature", "weights_type: only none is supported"},
      {image + "[reorg]\nstride=2", "stride=2 needs channels divisible by 4"},
      {image + "[reorg]\nstride=2147483647", "[reorg] (layer 0): stride * stride: expected at most"},
      {image + "[reorg]\nstride=4294967296", "stride: expected 1 to 2147483647, found 4294967296"},
      {image + "[reorg]\nreverse=1", "reverse=1 is not supported"},
      {image + "[upsample]\nstride=-2", "stride: expected 1 to"},
      {image + "[crop]\ncrop_height=9\ncrop_width=8", "crop_height: expected 1 to 8, found 9"},
      {image + "[softmax]\ngroups=5", "groups=5 must divide the 192 inputs"},
      {image + "[softmax]\ntree=x.tree", "a softmax tree is not supported"},
      {image + "[connected]\noutput=2000000000", "weights: expected at most"},
      {image + "[connected]\noutput=5\n[conv]\n", "expected an image as input, found a row of 5 numbers"},
      {image + "[yolo]\nnum=2\nanchors=1,2,3",
       "x.cfg:7: [yolo] (layer 0): anchors: expected 2 * num = 4 numbers, found 3"},
      {image + "[yolo]\nnum=2\nanchors=1,2,3,4\nmask=2", "mask: expected numbers of 0 to 1 (num=2), found 2"},
      {image + "[yolo]\nnum=1\nanchors=1,2\nnew_coords=1", "new_coords=1 is not supported"},
      {image + "[yolo]\nnum=1\nanchors=1,2\nclasses=3", "(4 coords + 1 + 3 classes) = 8 input channels, found 3"},
      {image + "[yolo]\nnum=1\nanchors=1,2\nnms_kind=soft", "nms_kind: expected default"},
      {image + "[region]\nnum=2\nanchors=1,2,3,4,5\nclasses=1", "anchors: expected 2 * num = 4 numbers, found 5"},
      {image + "[region]\nnum=1\n", "anchors: expected 2 * num = 2 numbers, found 0"},
      {image + "[region]\nnum=1\nanchors=1,0", "anchors: expected numbers above 0, found 0"},
      {image + "[region]\ntree=x.tree", "a softmax tree is not supported"},
      {image + "[region]\nbackground=1", "background=1 is not supported"},
      {image + "[detection]\nside=7", "* num + classes) = 147 inputs, found 192"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string message = failure(text);
    EXPECT_NE(message.find(expected), std::string::npos) << text << "\ngives: " << message;
    EXPECT_EQ(message.find("x.cfg:"), 0u) << message;
  }
}

TEST(DarknetLayers, RouteShortcutAndAliases) {
  const std::string image = net(4, 8, 8);
  EXPECT_EQ(out(image, "[conv]\nfilters=6\n[conv]\nfilters=2\n[route]\nlayers=-1,0"), "8x8x8");
  EXPECT_EQ(out(image, "[conv]\nfilters=6\n[route]\nlayers=-1\ngroups=2\ngroup_id=1"), "3x8x8");
  EXPECT_EQ(out(image, "[connected]\noutput=5\n[connected]\noutput=7\n[route]\nlayers=0,1"), "12");
  EXPECT_EQ(out(image, "[conv]\nfilters=6\n[conv]\nfilters=2\n[shortcut]\nfrom=-2"), "2x8x8");
  EXPECT_EQ(out(image, "[conv]\nfilters=6\n[conv]\nfilters=9\nstride=2\n[shortcut]\nfrom=-2"), "9x4x4");
  const Planned planned = plan(image + "[dropout]\n[conv]\n[cost]\n[route]\nlayers=-2");
  EXPECT_EQ(std::get<Alias>(planned.layers[0].operation).layer, -1);
  EXPECT_EQ(std::get<Alias>(planned.layers[2].operation).layer, 1);
  EXPECT_EQ(std::get<Alias>(planned.layers[3].operation).layer, 1);
}

TEST(DarknetLayers, HeadsTakeTheirMask) {
  const Planned planned =
      plan(net(14, 4, 4) + "[yolo]\nnum=3\nanchors=1,2,3,4,5,6\nmask=2,0\nclasses=2\nscale_x_y=1.05\n");
  const Head head = std::get<Head>(planned.last().operation);
  EXPECT_EQ(head.anchors, (std::vector<double>{5, 6, 1, 2}));
  EXPECT_EQ(head.boxes, 2);
  EXPECT_DOUBLE_EQ(head.scale_x_y, 1.05);
  EXPECT_EQ(std::get<Head>(plan(net(14, 4, 4) + "[yolo]\nnum=2\nanchors=1,2,3,4\nclasses=2").last().operation).anchors,
            (std::vector<double>{1, 2, 3, 4}));
}

// Whatever happens to a cfg file, it is read or refused with a reason.
TEST(DarknetLayers, DamagedFiles) {
  const std::string good = net(3, 16, 16) +
                           "[conv]\nfilters=4\nsize=3\npad=1\ndilation=2\ngroups=1\n[maxpool]\nsize=2\nstride=2\n"
                           "[upsample]\n[route]\nlayers=-1,-3\n[reorg]\nstride=2\n[shortcut]\nfrom=-1\n[crop]\n"
                           "crop_height=8\ncrop_width=8\n[conv]\nfilters=14\n[yolo]\nnum=3\nmask=0,1\nclasses=2\n"
                           "anchors=1,2,3,4,5,6\n[connected]\noutput=6\n[softmax]\ngroups=2\n[detection]\nside=1\n"
                           "coords=4\nnum=1\n";
  ASSERT_EQ(failure(good), "no failure");
  const auto harmless = [](const std::string& text) {
    try {
      plan(text);
    } catch (const Invalid& refused) {
      EXPECT_NE(std::string(refused.what()).find("x.cfg"), std::string::npos) << refused.what();
    }
  };
  for (size_t size = 0; size < good.size(); ++size) {
    harmless(good.substr(0, size));
    for (const char byte : {'9', '-', '[', ']', '\n', '=', ',', '#', '\0', '\xFF'}) {
      std::string damaged = good;
      damaged[size] = byte;
      harmless(damaged);
      damaged = good;
      damaged.insert(size, 8, byte);
      harmless(damaged);
    }
  }
}

// Counts of floats as published with these cfgs.
TEST(DarknetLayers, ParameterCounts) {
  const std::pair<const char*, uint64_t> table[] = {
      {"alexnet", 62378344},     {"cifar", 7687050},        {"darknet19", 20856776},       {"darknet53", 41645640},
      {"densenet201", 17206440}, {"extraction", 23455400},  {"resnet101", 41870248},       {"resnet18", 11523496},
      {"resnet34", 21639080},    {"resnet50", 22825896},    {"resnext50", 22312872},       {"tiny", 1046488},
      {"vgg-16", 138357544},     {"yolov1-tiny", 27099950}, {"yolov2-tiny-voc", 15867885}, {"yolov2-tiny", 11237145},
      {"yolov2-voc", 50676061},  {"yolov2", 50983561},      {"yolov3-spp", 63052381},      {"yolov3-tiny-prn", 4939758},
      {"yolov3-tiny", 8858734},  {"yolov3-voc", 61678657},  {"yolov3", 62001757},          {"yolov4-tiny", 6062814},
  };
  for (const auto& [name, floats] : table) {
    const auto path = testing::models_dir() / "darknet-cfg" / (std::string(name) + ".cfg");
    TENON_NEED_DATA(path);
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const Planned planned = plan(text.str(), name);
    EXPECT_EQ(planned.floats, floats) << name;
    EXPECT_TRUE(planned.warnings.empty()) << planned.warnings[0];
  }
}

}  // namespace
}  // namespace tenon::darknet
