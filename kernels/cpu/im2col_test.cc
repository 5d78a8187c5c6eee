// Expected values by hand.
#include "kernels/cpu/im2col.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

using Floats = std::vector<float>;

// 2 taps that are 2 apart, at every second pixel of a line of 5, one pad before it: (-1, 1), (1, 3), (3, 5).
Windows line() {
  Windows w;
  w.rank = 1;
  w.image[0] = 5, w.count[0] = 3, w.kernel[0] = 2, w.stride[0] = 2, w.dilation[0] = 2, w.pad[0] = 1;
  return w;
}

TEST(Im2col, Line) {
  const Floats x = {1, 2, 3, 4, 5};
  Floats columns(6, -1);
  im2col(line(), 1, 0, 1, x.data(), columns.data(), Parallel{});
  EXPECT_EQ(columns, (Floats{0, 2, 4, 2, 4, 0}));
}

TEST(Im2col, LineBack) {
  const Floats columns = {1, 2, 3, 10, 20, 30}, bias = {0.5f};
  Floats y(5);
  col2im(line(), 1, columns.data(), bias.data(), y.data(), Parallel{});
  EXPECT_EQ(y, (Floats{0.5f, 12.5f, 0.5f, 23.5f, 0.5f}));
}

TEST(Im2col, RowsOfAnImage) {
  Windows w;
  w.rank = 2;
  for (int axis = 0; axis < 2; ++axis) {
    w.image[axis] = 3, w.count[axis] = 2, w.kernel[axis] = 2, w.stride[axis] = 1, w.dilation[axis] = 1;
  }
  const Floats x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  Floats columns(8);
  im2col(w, 1, 1, 2, x.data(), columns.data(), Parallel{});
  EXPECT_EQ(columns, (Floats{4, 5, 5, 6, 7, 8, 8, 9}));
  // Each pixel times the number of windows that it lies in.
  Floats all(16), y(9);
  im2col(w, 1, 0, 2, x.data(), all.data(), Parallel{});
  col2im(w, 1, all.data(), nullptr, y.data(), Parallel{});
  EXPECT_EQ(y, (Floats{1, 4, 3, 8, 20, 12, 7, 16, 9}));
}

TEST(Im2col, WindowsWhollyOutside) {
  Windows w = line();
  w.pad[0] = 100;
  Floats columns(6, -1), y(5, -1);
  im2col(w, 1, 0, 1, Floats(5, 1).data(), columns.data(), Parallel{});
  EXPECT_EQ(columns, Floats(6, 0));
  col2im(w, 1, Floats(6, 1).data(), nullptr, y.data(), Parallel{});
  EXPECT_EQ(y, Floats(5, 0));
}

}  // namespace
}  // namespace tenon::cpu
