// Expected values by hand.
#include "kernels/cpu/resize.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

TEST(Resize, SeparableWeights) {
  // Rows: means of neighbours; columns: 3 taps.
  const std::vector<int32_t> row_index = {0, 1}, column_index = {0, 1, 2, 2, 2, 0};
  const std::vector<float> row_weight = {0.5f, 0.5f}, column_weight = {1, 1, 1, 1, 0, -1};
  const ResizeTable rows = {2, 1, 2, row_index.data(), row_weight.data(), false};
  const ResizeTable columns = {3, 2, 3, column_index.data(), column_weight.data(), false};
  const std::vector<float> x = {1, 2, 3, 3, 4, 9, 0, 0, 0, 2, 4, 6};
  std::vector<float> y(4), scratch(3);
  resize_separable(2, rows, columns, x.data(), y.data(), scratch.data(), Parallel{});
  EXPECT_EQ(y, (std::vector<float>{11, 4, 6, 2}));
}

TEST(Resize, NearestOfAllSizes) {
  const std::vector<int32_t> row_index = {1, 1, 0}, column_index = {0, 1};
  const ResizeTable rows = {2, 3, 1, row_index.data(), nullptr, false};
  const ResizeTable columns = {2, 2, 1, column_index.data(), nullptr, true};
  const auto check = [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> x = {1, 2, 3, 4};
    std::vector<T> y(6);
    resize_nearest(1, rows, columns, sizeof(T), x.data(), y.data(), Parallel{});
    EXPECT_EQ(y, (std::vector<T>{3, 4, 3, 4, 1, 2}));
  };
  check(uint8_t());
  check(uint16_t());
  check(uint32_t());
  check(uint64_t());
}

}  // namespace
}  // namespace tenon::cpu
