#include "core/device/strided_copy.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/graph/tensor.h"

namespace tenon {
namespace {

TEST(StridedCopy, ElementsOfEverySize) {
  const auto check = [](auto zero) {
    using T = decltype(zero);
    std::vector<T> from(24), to(24, 0);
    std::iota(from.begin(), from.end(), T(1));
    const TnDims dims = make_dims({2, 3, 4});
    const std::int64_t packed[] = {12, 4, 1}, reversed_axes[] = {1, 2, 6};
    strided_copy(to.data(), reversed_axes, from.data(), packed, dims, sizeof(T));
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 3; ++j) {
        for (int k = 0; k < 4; ++k) {
          EXPECT_EQ(to[static_cast<std::size_t>(i + 2 * j + 6 * k)],
                    from[static_cast<std::size_t>(12 * i + 4 * j + k)]);
        }
      }
    }
    std::vector<T> back(24, 0);
    strided_copy(back.data(), packed, to.data(), reversed_axes, dims, sizeof(T));
    EXPECT_EQ(back, from);
  };
  check(std::uint8_t{});
  check(std::uint16_t{});
  check(std::uint32_t{});
  check(std::uint64_t{});
}

TEST(StridedCopy, ScalarsAndEmptyTensors) {
  float from = 3, to = 0;
  strided_copy(&to, nullptr, &from, nullptr, make_dims({}), 4);
  EXPECT_EQ(to, 3);
  const std::int64_t strides[] = {1, 1};
  strided_copy(nullptr, strides, nullptr, strides, make_dims({3, 0}), 4);
}

TEST(StridedCopy, PackedStridesAreRecognized) {
  const std::int64_t packed[] = {12, 4, 1}, gap[] = {24, 4, 1}, any_for_one[] = {777, 4, 1}, zeros[] = {0, 0, 0};
  EXPECT_TRUE(is_packed(make_dims({2, 3, 4}), packed));
  EXPECT_FALSE(is_packed(make_dims({2, 3, 4}), gap));
  EXPECT_TRUE(is_packed(make_dims({1, 3, 4}), any_for_one));
  EXPECT_TRUE(is_packed(make_dims({2, 0, 4}), zeros));
  EXPECT_FALSE(is_packed(make_dims({2, 3, 4}), zeros));
  EXPECT_TRUE(is_packed(make_dims({}), nullptr));
}

}  // namespace
}  // namespace tenon
