#include "pipeline/resize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "pipeline/testing/golden.h"

namespace tenon::pipeline {
namespace {

using testing::GoldenCase;

Planes row(std::vector<float> values) {
  const int width = static_cast<int>(values.size());
  return {1, 1, width, std::move(values)};
}

PreprocessOptions options(Resize resize, Color color = Color::kRgb) {
  PreprocessOptions result;
  result.resize = resize;
  result.color = color;
  return result;
}

TEST(ResizeBilinear, IsCornerAligned) {
  // Hand-computed: ratio (in - 1) / (out - 1).
  EXPECT_EQ(resize_bilinear(row({1, 2, 3}), 5, 1).data, (std::vector<float>{1, 1.5, 2, 2.5, 3}));
  EXPECT_EQ(resize_bilinear(row({0, 1, 2, 3, 4}), 3, 1).data, (std::vector<float>{0, 2, 4}));
  const Planes column{1, 3, 1, {1, 2, 3}};
  EXPECT_EQ(resize_bilinear(column, 1, 5).data, (std::vector<float>{1, 1.5, 2, 2.5, 3}));
  const Planes square{1, 2, 2, {0, 2, 4, 6}};
  EXPECT_EQ(resize_bilinear(square, 3, 3).data, (std::vector<float>{0, 1, 2, 2, 3, 4, 4, 5, 6}));
}

TEST(ResizeBilinear, CentersAlignedWithoutCorners) {
  // Position (c + 0.5) * in / out - 0.5, clamped: -0.25, 0.25, 0.75, 1.25, ... for twice the size; 0.5, 2.5 for half.
  EXPECT_EQ(resize_bilinear(row({0, 4, 8}), 6, 1, false).data, (std::vector<float>{0, 1, 3, 5, 7, 8}));
  EXPECT_EQ(resize_bilinear(row({0, 2, 4, 6}), 2, 1, false).data, (std::vector<float>{1, 5}));
  EXPECT_EQ(resize_bilinear(row({1, 2, 3}), 1, 1, false).data, (std::vector<float>{2}));
  const Planes column{1, 2, 1, {0, 4}};
  EXPECT_EQ(resize_bilinear(column, 1, 4, false).data, (std::vector<float>{0, 1, 3, 4}));
}

TEST(ResizeBilinear, HandlesSidesOfOne) {
  EXPECT_EQ(resize_bilinear(row({5}), 4, 2).data, std::vector<float>(8, 5));
  EXPECT_EQ(resize_bilinear(row({1, 2, 3}), 1, 1).data, (std::vector<float>{3}));  // the last column is copied
}

TEST(ResizeBilinear, KeepsConstantsForEverySize) {
  const Planes constant{1, 7, 11, std::vector<float>(77, 1.0f)};
  for (int side = 1; side < 60; ++side) {
    for (const float value : resize_bilinear(constant, side, 61 - side).data) ASSERT_NEAR(value, 1.0f, 1e-6) << side;
  }
}

TEST(PlanGeometry, LetterboxOfAWidePicture) {
  const auto g = plan_geometry(Resize::kLetterbox, 640, 480, 416, 416);
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(g->content_width, 416);
  EXPECT_EQ(g->content_height, 312);
  EXPECT_EQ(g->offset_x, 0);
  EXPECT_EQ(g->offset_y, 52);
}

TEST(PlanGeometry, LetterboxInTheCorner) {
  const auto g = plan_geometry(Resize::kLetterbox, 640, 480, 416, 416, Placement::kTopLeft);
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(g->content_height, 312);
  EXPECT_EQ(g->offset_x, 0);
  EXPECT_EQ(g->offset_y, 0);
  // The last row of the content, 312 of 416, is the bottom of the picture.
  EXPECT_FLOAT_EQ(to_picture(*g, {0.5f, 0.75f, 0.5f, 0.75f}).y, 1.0f);
  EXPECT_FLOAT_EQ(to_picture(*g, {0.5f, 0.75f, 0.5f, 0.75f}).height, 1.0f);
}

TEST(Preprocess, LetterboxIsFilledWithTheGivenByte) {
  PreprocessOptions wanted = options(Resize::kLetterbox);
  wanted.placement = Placement::kTopLeft;
  wanted.pad = 114;
  wanted.scale = 1;
  const auto ready = preprocess(make_image(2, 1, 10, 20, 30), wanted, 2, 2);
  ASSERT_TRUE(ready.ok());
  const std::vector<float> expected{10, 10, 114, 114, 20, 20, 114, 114, 30, 30, 114, 114};
  ASSERT_EQ(ready->tensor.data.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(ready->tensor.data[i], expected[i], 1e-4) << i;
}

TEST(PlanGeometry, LetterboxOfATallPicture) {
  const auto g = plan_geometry(Resize::kLetterbox, 333, 500, 416, 416);
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(g->content_width, 277);
  EXPECT_EQ(g->content_height, 416);
  EXPECT_EQ(g->offset_x, 69);
  EXPECT_EQ(g->offset_y, 0);
}

TEST(PlanGeometry, LetterboxIntoANetworkThatIsNotSquare) {
  // 640 x 480 into 1088 x 640: 640/480 < 1088/640, so the height fills; 640 * 640 / 480 = 853.
  const auto g = plan_geometry(Resize::kLetterbox, 640, 480, 1088, 640);
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(g->content_width, 853);
  EXPECT_EQ(g->content_height, 640);
  EXPECT_EQ(g->offset_x, 117);
  EXPECT_EQ(g->offset_y, 0);
}

TEST(PlanGeometry, ALineOfPixelsKeepsOneRow) {
  const auto g = plan_geometry(Resize::kLetterbox, 10000, 1, 416, 416);
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(g->content_height, 1);
}

TEST(PlanGeometry, ShortSideCrop) {
  // dog.jpg, 768 x 576 into 224: 768 * 224 / 576 = 298; (298 - 224) / 2 = 37 columns are cut off on the left.
  const auto g = plan_geometry(Resize::kShortSideCrop, 768, 576, 224, 224);
  ASSERT_TRUE(g.ok());
  EXPECT_EQ(g->content_width, 298);
  EXPECT_EQ(g->content_height, 224);
  EXPECT_EQ(g->offset_x, -37);
  EXPECT_EQ(g->offset_y, 0);
}

TEST(PlanGeometry, RefusesWhatCannotBe) {
  EXPECT_FALSE(plan_geometry(Resize::kStretch, 0, 5, 4, 4).ok());
  EXPECT_FALSE(plan_geometry(Resize::kStretch, 5, 5, 0, 4).ok());
  const auto none = plan_geometry(Resize::kNone, 10, 20, 10, 21);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().message().find("10 x 20"), std::string::npos) << none.status().message();
  EXPECT_FALSE(plan_geometry(Resize::kShortSideCrop, 100000000, 1, 416, 416).ok());
}

TEST(Preprocess, LetterboxFillsWithOneHalf) {
  const auto out = preprocess(make_image(4, 2, 255, 0, 51), options(Resize::kLetterbox), 4, 4);
  ASSERT_TRUE(out.ok());
  const std::vector<float>& v = out->tensor.data;
  ASSERT_EQ(v.size(), 48u);
  for (int x = 0; x < 4; ++x) {
    EXPECT_EQ(v[x], 0.5f);
    EXPECT_EQ(v[4 + x], 1.0f);
    EXPECT_EQ(v[8 + x], 1.0f);
    EXPECT_EQ(v[12 + x], 0.5f);
    EXPECT_EQ(v[16 + 4 + x], 0.0f);
    EXPECT_EQ(v[32 + 4 + x], static_cast<float>(51 / 255.0));
  }
}

TEST(Preprocess, EveryByteIsDividedInDouble) {
  Image image = make_image(256, 1, 0, 0, 0);
  for (int x = 0; x < 256; ++x) image.pixel(x, 0)[0] = static_cast<std::uint8_t>(x);
  const auto out = preprocess(image, options(Resize::kNone), 0, 0);
  ASSERT_TRUE(out.ok());
  for (int x = 0; x < 256; ++x) EXPECT_EQ(out->tensor.data[x], static_cast<float>(x / 255.0));
}

TEST(Preprocess, ColourOrders) {
  const Image image = make_image(1, 1, 255, 51, 0);
  EXPECT_EQ(preprocess(image, options(Resize::kStretch, Color::kBgr), 1, 1)->tensor.data,
            (std::vector<float>{0.0f, static_cast<float>(51 / 255.0), 1.0f}));
  const auto gray = preprocess(image, options(Resize::kStretch, Color::kGray), 1, 1);
  EXPECT_EQ(gray->tensor.channels, 1);
  EXPECT_NEAR(gray->tensor.data[0], 0.299 + 0.587 * 0.2, 1e-6);
  // Gray of gray is itself, for every byte.
  for (int byte = 0; byte < 256; ++byte) {
    const auto b = static_cast<std::uint8_t>(byte);
    EXPECT_EQ(preprocess(make_image(1, 1, b, b, b), options(Resize::kNone, Color::kGray), 0, 0)->tensor.data[0],
              static_cast<float>(byte / 255.0));
  }
}

TEST(Preprocess, ScaleMeanAndStd) {
  PreprocessOptions o = options(Resize::kStretch, Color::kBgr);
  o.scale = 1;
  o.mean = {104, 117, 123};  // B, G, R
  o.std = {1, 2, 4};
  const auto out = preprocess(make_image(1, 1, 255, 51, 0), o, 1, 1);
  ASSERT_TRUE(out.ok());
  EXPECT_NEAR(out->tensor.data[0], 0 - 104, 1e-4);
  EXPECT_NEAR(out->tensor.data[1], (51 - 117) / 2.0, 1e-4);
  EXPECT_NEAR(out->tensor.data[2], (255 - 123) / 4.0, 1e-4);
}

TEST(Preprocess, RefusesWrongNumbersOfChannels) {
  PreprocessOptions o = options(Resize::kStretch, Color::kGray);
  o.mean = {1, 2, 3};
  EXPECT_EQ(preprocess(make_image(1, 1, 0, 0, 0), o, 1, 1).status().code(), Code::kInvalid);
  o = options(Resize::kStretch);
  o.std = {1, 0, 1};
  EXPECT_EQ(preprocess(make_image(1, 1, 0, 0, 0), o, 1, 1).status().code(), Code::kInvalid);
}

TEST(Preprocess, ShortSideCropTakesTheCentre) {
  Image image = make_image(6, 2, 0, 0, 0);
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 6; ++x) image.pixel(x, y)[0] = static_cast<std::uint8_t>(x * 51);
  }
  const auto out = preprocess(image, options(Resize::kShortSideCrop), 2, 2);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(std::vector<float>(out->tensor.data.begin(), out->tensor.data.begin() + 4),
            (std::vector<float>{static_cast<float>(0.4), static_cast<float>(0.6), static_cast<float>(0.4),
                                static_cast<float>(0.6)}));
}

TEST(MapBack, ThroughALetterbox) {
  // Hand-computed: x 0.5 * 640; y (0.3 * 416 - 52) / 312 * 480; width 0.2 * 640; height 0.15 * 416 / 312 * 480.
  const auto g = plan_geometry(Resize::kLetterbox, 640, 480, 416, 416);
  const Box box = to_pixels(*g, to_picture(*g, {0.5f, 0.3f, 0.2f, 0.15f}));
  EXPECT_NEAR(box.left + box.width / 2, 320, 1e-3);
  EXPECT_NEAR(box.top + box.height / 2, 112, 1e-3);
  EXPECT_NEAR(box.width, 128, 1e-3);
  EXPECT_NEAR(box.height, 96, 1e-3);
}

TEST(MapBack, ThroughAStretchIsTheIdentity) {
  const auto g = plan_geometry(Resize::kStretch, 1000, 500, 1088, 640);
  const Box box = to_pixels(*g, to_picture(*g, {0.5f, 0.25f, 0.25f, 0.5f}));
  EXPECT_NEAR(box.left, 375, 1e-3);
  EXPECT_NEAR(box.top, 0, 1e-3);
  EXPECT_NEAR(box.width, 250, 1e-3);
  EXPECT_NEAR(box.height, 250, 1e-3);
}

TEST(MapBack, UsesWidthAndHeightOfTheNetworkSeparately) {
  // 640 x 480 in 1088 x 640: content 853 x 640. The centre stays the centre; a box as wide as the content is 640 wide.
  const auto g = plan_geometry(Resize::kLetterbox, 640, 480, 1088, 640);
  const Box box = to_pixels(*g, to_picture(*g, {0.5f, 0.5f, 853.0f / 1088.0f, 1.0f}));
  EXPECT_NEAR(box.left, 0, 1e-3);
  EXPECT_NEAR(box.top, 0, 1e-3);
  EXPECT_NEAR(box.width, 640, 1e-3);
  EXPECT_NEAR(box.height, 480, 1e-3);
}

TEST(MapBack, ThroughACrop) {
  // 768 x 576 into 224: content 298 x 224 at -37. Net pixel column 0 is content column 37, picture 37 * 768 / 298.
  const auto g = plan_geometry(Resize::kShortSideCrop, 768, 576, 224, 224);
  const Box box = to_pixels(*g, to_picture(*g, {0.0f, 0.5f, 0.0f, 1.0f}));
  EXPECT_NEAR(box.left, 37 * 768.0 / 298, 1e-2);
  EXPECT_NEAR(box.height, 576, 1e-2);
}

class InputTensor : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(InputTensor, EqualsThatOfDarknetBitForBit) {
  TENON_NEED_DATA(GetParam().json_path());
  const auto input = testing::read_json(GetParam().json_path())["input"];
  const auto picture = tenon::testing::images_dir() / input["image"].get<std::string>();
  TENON_NEED_DATA(picture);
  const auto image = read_image(picture);
  ASSERT_TRUE(image.ok());
  const auto shape = input["tensor"]["shape"];
  const Resize resize = input["resize"] == "stretch" ? Resize::kStretch : Resize::kLetterbox;
  const auto out = preprocess(*image, options(resize), shape[3], shape[2]);
  ASSERT_TRUE(out.ok()) << out.status().message();
  const std::size_t stride = input["tensor"].value("stride", 1);
  const auto expected = testing::read_floats(GetParam().folder() / input["tensor"]["file"].get<std::string>());
  ASSERT_EQ(expected.size(), (out->tensor.data.size() + stride - 1) / stride);
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(out->tensor.data[i * stride], expected[i]) << i * stride;
  double sum = 0;
  double squares = 0;
  for (const float value : out->tensor.data) {
    sum += value;
    squares += double(value) * value;
  }
  EXPECT_NEAR(sum, input["tensor"]["sum"].get<double>(), 1e-6);
  EXPECT_NEAR(std::sqrt(squares), input["tensor"]["l2"].get<double>(), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Golden, InputTensor, ::testing::ValuesIn(testing::darknet_picture_cases()),
                         testing::test_name);

class FullInputTensor : public ::testing::TestWithParam<std::pair<Resize, const char*>> {};

TEST_P(FullInputTensor, EqualsThatOfDarknetBitForBit) {
  const auto path = tenon::testing::golden_dir() / "inputs" / GetParam().second;
  TENON_NEED_DATA(path);
  TENON_NEED_DATA(tenon::testing::images_dir() / "dog.jpg");
  const auto image = read_image(tenon::testing::images_dir() / "dog.jpg");
  ASSERT_TRUE(image.ok());
  const auto out = preprocess(*image, options(GetParam().first), 320, 320);
  ASSERT_TRUE(out.ok());
  EXPECT_TRUE(out->tensor.data == testing::read_floats(path));
}

INSTANTIATE_TEST_SUITE_P(Golden, FullInputTensor,
                         ::testing::Values(std::pair{Resize::kStretch, "dog_stretch_320.npy"},
                                           std::pair{Resize::kLetterbox, "dog_letterbox_320.npy"}));

}  // namespace
}  // namespace tenon::pipeline
