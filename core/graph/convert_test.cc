#include "core/graph/convert.h"

#include <gtest/gtest.h>
#include <tenon/plugin/abi.h>

#include <cmath>
#include <limits>

namespace tenon {
namespace {

// Bit patterns from IEEE 754-2008, table 3.5 (binary16).
TEST(Convert, F16KnownPatterns) {
  EXPECT_EQ(f32_to_f16(1.0f), 0x3C00);
  EXPECT_EQ(f32_to_f16(-2.0f), 0xC000);
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7C00);
  EXPECT_EQ(f32_to_f16(std::ldexp(1.0f, -14)), 0x0400);
  EXPECT_EQ(f32_to_f16(std::ldexp(1.0f, -24)), 0x0001);
  EXPECT_EQ(f32_to_f16(std::ldexp(1.0f, -25)), 0x0000);  // a tie, to even
  EXPECT_EQ(f32_to_f16(std::ldexp(3.0f, -25)), 0x0002);  // 1.5 units, a tie, to even
  EXPECT_EQ(f32_to_f16(1.0f + std::ldexp(1.0f, -11)), 0x3C00);
  EXPECT_EQ(f32_to_f16(1.0f + std::ldexp(3.0f, -11)), 0x3C02);
  EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::infinity()), 0x7C00);
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(std::nanf("")))));
  EXPECT_FLOAT_EQ(f16_to_f32(0x3555), 0.33325195f);
}

TEST(Convert, F16RoundTripOfEveryPattern) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_to_f32(half);
    if (std::isnan(value)) continue;
    ASSERT_EQ(f32_to_f16(value), half);
  }
}

TEST(Convert, Bf16) {
  EXPECT_EQ(f32_to_bf16(1.0f), 0x3F80);
  EXPECT_EQ(f32_to_bf16(1.0f + std::ldexp(1.0f, -8)), 0x3F80);  // a tie, to even
  EXPECT_EQ(f32_to_bf16(1.0f + std::ldexp(3.0f, -8)), 0x3F82);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::nanf("")))));
  EXPECT_EQ(bf16_to_f32(0xC040), -3.0f);
}

TEST(Convert, Arrays) {
  const float values[3] = {0.5f, -1.5f, 3.0f};
  std::uint16_t narrow[3];
  float back[3];
  for (const std::int32_t dtype : {TN_F16, TN_BF16}) {
    narrow_from_f32(dtype, values, narrow, 3);
    widen_to_f32(dtype, narrow, back, 3);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(back[i], values[i]);
  }
}

}  // namespace
}  // namespace tenon
