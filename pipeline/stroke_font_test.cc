#include "pipeline/stroke_font.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::pipeline {
namespace {

TEST(StrokeFont, EveryPrintableCharacterHasAShapeOfItsOwnWithinItsWidth) {
  std::vector<std::vector<float>> shapes;
  for (char c = '!'; c <= '~'; ++c) {
    const TextLayout layout = layout_text(std::string(1, c));
    ASSERT_FALSE(layout.strokes.empty()) << c;
    std::vector<float> shape;
    for (const Stroke& s : layout.strokes) {
      for (const float x : {s.x0, s.x1}) {
        EXPECT_GE(x, kPenWidth / 2 - 0.02f) << c;
        EXPECT_LE(x, layout.width - kPenWidth / 2 + 0.02f) << c;
      }
      for (const float y : {s.y0, s.y1}) {
        EXPECT_GE(y, -kDescent - 0.01f) << c;
        EXPECT_LE(y, 1.11f) << c;
      }
      shape.insert(shape.end(), {s.x0, s.y0, s.x1, s.y1});
    }
    EXPECT_EQ(std::find(shapes.begin(), shapes.end(), shape), shapes.end()) << c;
    shapes.push_back(shape);
  }
}

TEST(StrokeFont, WidthGrowsWithTheText) {
  EXPECT_EQ(layout_text("").width, 0);
  EXPECT_GT(layout_text("dog").width, layout_text("do").width);
  EXPECT_GT(layout_text("W").width, layout_text("i").width);
  EXPECT_TRUE(layout_text(" ").strokes.empty());
}

TEST(StrokeFont, OtherCharactersBecomeQuestionMarks) {
  EXPECT_EQ(printable_ascii("caf\xC3\xA9 \xE7\x8A\xAC!"), "caf? ?!");
  EXPECT_EQ(printable_ascii("a\tb\n"), "a?b?");
  EXPECT_EQ(printable_ascii("\x80"), "?");
  EXPECT_EQ(layout_text("\x01").strokes.size(), layout_text("?").strokes.size());
}

}  // namespace
}  // namespace tenon::pipeline
