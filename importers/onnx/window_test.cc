// Expected values by hand.
#include "importers/onnx/window.h"

#include <gtest/gtest.h>

#include <utility>

namespace tenon::onnx {
namespace {

using Pads = std::pair<int64_t, int64_t>;

Pads same(int64_t in, int64_t extent, int64_t stride, bool upper) {
  Pads pads;
  same_pads(in, extent, stride, upper, &pads.first, &pads.second);
  return pads;
}

TEST(SamePads, OddPadGoesToTheNamedSide) {
  EXPECT_EQ(same(4, 3, 2, true), Pads(0, 1));
  EXPECT_EQ(same(4, 3, 2, false), Pads(1, 0));
  EXPECT_EQ(same(5, 2, 2, true), Pads(0, 1));
}

TEST(SamePads, EvenPadIsSplit) {
  for (const bool upper : {false, true}) {
    EXPECT_EQ(same(7, 3, 2, upper), Pads(1, 1));
    EXPECT_EQ(same(5, 3, 2, upper), Pads(1, 1));
  }
}

TEST(SamePads, NeverNegative) { EXPECT_EQ(same(3, 1, 3, false), Pads(0, 0)); }

// A kernel of 3 with dilation 2 covers 5 cells.
TEST(SamePads, Dilation) {
  Window window;
  window.kernel = {3};
  window.dilations = {2};
  EXPECT_EQ(window.extent(0), 5);
  EXPECT_EQ(same(4, 5, 2, true), Pads(1, 2));
  EXPECT_EQ(same(4, 5, 2, false), Pads(2, 1));
  EXPECT_EQ(same(4, 5, 1, false), Pads(2, 2));
}

}  // namespace
}  // namespace tenon::onnx
