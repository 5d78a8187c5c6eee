#include "core/graph/convert.h"

#include <gtest/gtest.h>
#include <tenon/plugin/abi.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/graph/testing/tiny_float_values.h"

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
  std::uint16_t half[3];
  float back[3];
  for (const std::int32_t dtype : {TN_F16, TN_BF16}) {
    narrow(dtype, values, half, 3);
    widen(dtype, half, back, 3);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(back[i], values[i]);
  }
}

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

/// Codes for what no table of values holds; "nan" and "infinity" are codes without the sign.
struct TinyCase {
  std::int32_t dtype;
  std::vector<float> values;
  std::uint32_t sign, overflow, nan;
  float beyond;      // the first number that overflows: half a step above the largest, a tie
  bool beyond_fits;  // whether that tie goes down to the largest number, which is even
};

std::vector<TinyCase> tiny_cases() {
  const auto list = [](const auto& values) { return std::vector<float>(std::begin(values), std::end(values)); };
  return {{TN_F8E4M3FN, list(test::kF8E4M3FN), 0x80, 0x7F, 0x7F, 464.0f, true},
          {TN_F8E4M3FNUZ, list(test::kF8E4M3FNUZ), 0x80, 0x80, 0x80, 248.0f, false},
          {TN_F8E5M2, list(test::kF8E5M2), 0x80, 0x7C, 0x7E, 61440.0f, false},
          {TN_F8E5M2FNUZ, list(test::kF8E5M2FNUZ), 0x80, 0x80, 0x80, 61440.0f, false},
          {TN_F4E2M1, list(test::kF4E2M1), 0x8, 0x7, 0x0, 7.0f, false}};
}

TEST(Convert, EveryTinyFloatHasTheValueOfTheTable) {
  for (const TinyCase& type : tiny_cases()) {
    SCOPED_TRACE(type.dtype);
    for (std::uint32_t code = 0; code < type.values.size(); ++code) {
      ASSERT_EQ(small_float_to_f32(type.dtype, code), type.values[code]) << code;
      if (code == 0 && type.overflow == type.sign) continue;  // fnuz has no -0
      const float negative = small_float_to_f32(type.dtype, code | type.sign);
      ASSERT_EQ(negative, -type.values[code]) << code;
      ASSERT_TRUE(std::signbit(negative));
    }
    for (std::uint32_t code = static_cast<std::uint32_t>(type.values.size()); code < type.sign; ++code) {
      const float value = small_float_to_f32(type.dtype, code);
      if (type.dtype == TN_F8E5M2 && code == 0x7C) {
        ASSERT_EQ(value, kInf);
      } else {
        ASSERT_TRUE(std::isnan(value)) << code;
      }
    }
  }
  EXPECT_TRUE(std::isnan(small_float_to_f32(TN_F8E4M3FNUZ, 0x80)));
  EXPECT_TRUE(std::isnan(small_float_to_f32(TN_F8E5M2FNUZ, 0x80)));
  EXPECT_EQ(small_float_to_f32(TN_F8E5M2, 0xFC), -kInf);
}

// Around every middle between two neighbours, which decides between them.
TEST(Convert, TinyFloatsRoundToNearestEven) {
  for (const TinyCase& type : tiny_cases()) {
    SCOPED_TRACE(type.dtype);
    for (std::uint32_t code = 0; code + 1 < type.values.size(); ++code) {
      const float middle = (type.values[code] + type.values[code + 1]) / 2;  // exact in f32
      const std::uint32_t even = code % 2 == 0 ? code : code + 1;
      ASSERT_EQ(f32_to_small_float(type.dtype, type.values[code]), code);
      ASSERT_EQ(f32_to_small_float(type.dtype, middle), even) << code;
      ASSERT_EQ(f32_to_small_float(type.dtype, std::nextafter(middle, 0.0f)), code);
      ASSERT_EQ(f32_to_small_float(type.dtype, std::nextafter(middle, kInf)), code + 1);
      ASSERT_EQ(f32_to_small_float(type.dtype, -std::nextafter(middle, kInf)), (code + 1) | type.sign);
    }
    const auto largest = static_cast<std::uint32_t>(type.values.size() - 1);
    EXPECT_EQ(f32_to_small_float(type.dtype, std::nextafter(type.beyond, 0.0f)), largest);
    EXPECT_EQ(f32_to_small_float(type.dtype, type.beyond), type.beyond_fits ? largest : type.overflow);
    for (const float value : {std::nextafter(type.beyond, kInf), 1e30f, kInf}) {
      EXPECT_EQ(f32_to_small_float(type.dtype, value), type.overflow);
      EXPECT_EQ(f32_to_small_float(type.dtype, -value), type.overflow | type.sign);
    }
    EXPECT_EQ(f32_to_small_float(type.dtype, kNan), type.nan);
    EXPECT_EQ(f32_to_small_float(type.dtype, 1e-45f), 0u);
    EXPECT_EQ(f32_to_small_float(type.dtype, -0.0f), type.overflow == type.sign ? 0u : type.sign);
  }
}

// Codes of ml_dtypes 0.6.
TEST(Convert, E8m0HoldsPowersOfTwo) {
  for (int code = 0; code < 255; ++code) {
    const float value = small_float_to_f32(TN_F8E8M0, static_cast<std::uint32_t>(code));
    ASSERT_EQ(value, std::ldexp(1.0f, code - 127));
    ASSERT_EQ(f32_to_small_float(TN_F8E8M0, value), static_cast<std::uint32_t>(code));
  }
  EXPECT_TRUE(std::isnan(small_float_to_f32(TN_F8E8M0, 255)));
  EXPECT_EQ(f32_to_small_float(TN_F8E8M0, 1.5f), 0x80u);
  EXPECT_EQ(f32_to_small_float(TN_F8E8M0, 3.0f), 0x81u);  // ties go up, not to even
  EXPECT_EQ(f32_to_small_float(TN_F8E8M0, 2.99f), 0x80u);
  EXPECT_EQ(f32_to_small_float(TN_F8E8M0, 1e-45f), 0u);
  EXPECT_EQ(f32_to_small_float(TN_F8E8M0, std::ldexp(1.5f, -127)), 1u);
  for (const float value : {0.0f, -0.0f, -1.0f, kInf, -kInf, kNan, std::ldexp(1.5f, 127)}) {
    EXPECT_EQ(f32_to_small_float(TN_F8E8M0, value), 255u) << value;
  }
}

// References that only move elements must not change them, NaN included.
TEST(Convert, EveryPatternSurvivesTheWayThroughF32) {
  for (const std::int32_t dtype : {TN_F16, TN_BF16, TN_F8E5M2, TN_F8E4M3FN, TN_F8E4M3FNUZ, TN_F8E8M0, TN_F4E2M1}) {
    const std::uint32_t codes = dtype <= TN_BF16 ? 0x10000 : dtype == TN_F4E2M1 ? 16 : 256;
    for (std::uint32_t code = 0; code < codes; ++code) {
      ASSERT_EQ(f32_to_small_float(dtype, small_float_to_f32(dtype, code)), code) << dtype;
    }
  }
}

TEST(Convert, ElementsBelowAByteArePackedFromTheLowBits) {
  const std::uint8_t packed[2] = {0xF7, 0x08};
  std::int8_t nibbles[3];
  widen(TN_I4, packed, nibbles, 3);
  EXPECT_EQ(std::vector<int>(nibbles, nibbles + 3), (std::vector<int>{7, -1, -8}));
  std::uint8_t pairs[5];
  widen(TN_U2, packed, pairs, 5);  // 0xF7 is 11 11 01 11
  EXPECT_EQ(std::vector<int>(pairs, pairs + 5), (std::vector<int>{3, 1, 3, 3, 0}));
  std::int8_t signed_pairs[4];
  widen(TN_I2, packed, signed_pairs, 4);
  EXPECT_EQ(std::vector<int>(signed_pairs, signed_pairs + 4), (std::vector<int>{-1, 1, -1, -1}));
  float floats[3];
  widen(TN_F4E2M1, packed, floats, 3);
  EXPECT_EQ(std::vector<float>(floats, floats + 3), (std::vector<float>{6, -6, -0.0f}));
}

TEST(Convert, SmallIntegersKeepTheirLowBits) {
  std::uint8_t packed[2] = {0xFF, 0xFF};
  const std::int8_t values[3] = {-9, 8, 7};
  narrow(TN_I4, values, packed, 3);
  EXPECT_EQ(packed[0], 0x87);
  EXPECT_EQ(packed[1], 0x07);  // the unused half is 0
  const std::uint8_t pairs[5] = {5, 2, 3, 0, 255};
  narrow(TN_U2, pairs, packed, 5);
  EXPECT_EQ(packed[0], 0x39);
  EXPECT_EQ(packed[1], 0x03);
}

}  // namespace
}  // namespace tenon
