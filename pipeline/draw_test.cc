#include "pipeline/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>

namespace tenon::pipeline {
namespace {

constexpr Rgb kGray{128, 128, 128};

Rgb at(const Image& image, int x, int y) {
  const std::uint8_t* p = image.pixel(x, y);
  return {p[0], p[1], p[2]};
}

Detection detection(int class_id, float score, Box box) { return {class_id, score, score, box}; }

TEST(DrawDetections, FrameInTheColourOfTheClass) {
  Image image = make_image(640, 480, 128, 128, 128);
  draw_detections(image, std::vector{detection(3, 0.9f, {100, 150, 200, 120})}, {});
  for (const auto& [x, y] : {std::pair{100, 200}, {299, 200}, {200, 150}, {200, 269}, {100, 150}, {299, 269}}) {
    EXPECT_EQ(at(image, x, y), class_color(3)) << x << "," << y;
  }
  EXPECT_EQ(at(image, 200, 210), kGray);  // inside
  EXPECT_EQ(at(image, 99, 210), kGray);   // outside
  EXPECT_EQ(at(image, 300, 210), kGray);
}

TEST(DrawDetections, TagStandsAboveTheFrameAndHoldsText) {
  Image image = make_image(640, 480, 128, 128, 128);
  const auto tags = draw_detections(image, std::vector{detection(0, 0.65f, {100, 150, 200, 120})}, {"dog"});
  ASSERT_EQ(tags.size(), 1u);
  EXPECT_EQ(tags[0].left, 100);
  EXPECT_EQ(tags[0].top + tags[0].height, 150);
  const Rgb ink = text_color(class_color(0));
  int inked = 0;
  for (int y = tags[0].top; y < tags[0].top + tags[0].height; ++y) {
    for (int x = tags[0].left; x < tags[0].left + tags[0].width; ++x) {
      const bool border = y == tags[0].top || x == tags[0].left || x == tags[0].left + tags[0].width - 1;
      if (border) {
        EXPECT_EQ(at(image, x, y), class_color(0));
      }
      if (at(image, x, y) == ink) ++inked;
    }
  }
  EXPECT_GT(inked, 30);
}

TEST(DrawDetections, TagsNeverLeaveThePicture) {
  const std::vector<std::string> labels{"a rather long name of a class", "\xE7\x8A\xAC"};
  for (const auto& [width, height] : {std::pair{640, 480}, {100, 700}, {64, 48}, {20, 20}, {9, 300}, {1, 1}}) {
    const float w = static_cast<float>(width);
    const float h = static_cast<float>(height);
    const std::vector<Detection> found{detection(0, 0.9f, {-50, -50, w * 3, h * 3}),
                                       detection(1, 0.8f, {w - 2, h - 2, 40, 40}), detection(0, 0.7f, {0, 0, w, h}),
                                       detection(2, 0.6f, {w * 5, -h * 5, 3, 3}),
                                       detection(-4, 1.0f, {1e30f, -1e30f, 1e30f, 1e30f})};
    Image image = make_image(width, height, 0, 0, 0);
    for (const PixelRect& tag : draw_detections(image, found, labels)) {
      EXPECT_GE(tag.left, 0);
      EXPECT_GE(tag.top, 0);
      EXPECT_LE(tag.left + tag.width, width);
      EXPECT_LE(tag.top + tag.height, height);
    }
    EXPECT_EQ(image.rgb.size(), std::size_t(width) * std::size_t(height) * 3);
  }
}

TEST(DrawDetections, TagsOfNeighboursDoNotCoverEachOther) {
  Image image = make_image(640, 480, 0, 0, 0);
  const auto tags =
      draw_detections(image,
                      std::vector{detection(0, 0.9f, {100, 150, 200, 120}), detection(1, 0.8f, {102, 151, 200, 120}),
                                  detection(2, 0.7f, {98, 149, 205, 122})},
                      {"dog", "cat", "sheep"});
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = a + 1; b < 3; ++b) {
      const bool apart = tags[a].top + tags[a].height <= tags[b].top || tags[b].top + tags[b].height <= tags[a].top;
      EXPECT_TRUE(apart) << a << " " << b;
    }
  }
}

TEST(DrawDetections, GrowsWithThePicture) {
  Image small = make_image(320, 240, 0, 0, 0);
  Image large = make_image(3200, 2400, 0, 0, 0);
  const auto small_tag = draw_detections(small, std::vector{detection(0, 0.5f, {50, 100, 50, 50})}, {"dog"})[0];
  const auto large_tag = draw_detections(large, std::vector{detection(0, 0.5f, {500, 1000, 500, 500})}, {"dog"})[0];
  EXPECT_GT(large_tag.height, 4 * small_tag.height);
}

TEST(DrawDetections, TheBetterOfTwoIsOnTop) {
  Image image = make_image(640, 480, 0, 0, 0);
  draw_detections(image,
                  std::vector{detection(1, 0.9f, {100, 150, 200, 120}), detection(2, 0.3f, {100, 150, 200, 120})}, {});
  EXPECT_EQ(at(image, 100, 260), class_color(1));
}

TEST(ClassColor, NeighboursDiffer) {
  for (int a = 0; a < 80; ++a) {
    for (int b = a + 1; b < std::min(a + 5, 80); ++b) {
      const Rgb x = class_color(a);
      const Rgb y = class_color(b);
      const int difference = std::abs(x[0] - y[0]) + std::abs(x[1] - y[1]) + std::abs(x[2] - y[2]);
      EXPECT_GT(difference, 100) << a << " " << b;
    }
  }
}

TEST(TextColor, BlackOnLightAndWhiteOnDark) {
  EXPECT_EQ(text_color({255, 255, 0}), (Rgb{0, 0, 0}));
  EXPECT_EQ(text_color({0, 0, 120}), (Rgb{255, 255, 255}));
}

TEST(DrawLines, StandInTheCorner) {
  Image image = make_image(640, 480, 200, 200, 200);
  const std::vector<std::string> lines{"44.26% tabby", "30.13% Egyptian cat"};
  const PixelRect field = draw_lines(image, lines);
  EXPECT_EQ(field.left, 0);
  EXPECT_EQ(field.top, 0);
  EXPECT_GT(field.width, field.height);
  EXPECT_EQ(at(image, field.width + 1, 5), (Rgb{200, 200, 200}));
  EXPECT_EQ(at(image, 0, 0), (Rgb{70, 70, 70}));  // 35 % of the picture shines through
  Image tiny = make_image(3, 3, 0, 0, 0);
  EXPECT_EQ(draw_lines(tiny, lines).width, 0);
}

}  // namespace
}  // namespace tenon::pipeline
