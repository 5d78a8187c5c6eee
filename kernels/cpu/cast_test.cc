#include "kernels/cpu/cast.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

template <class To, class From>
std::vector<To> run(ElementType from, ElementType to, const std::vector<From>& input, Isa isa, int threads = 1) {
  Buffer output(input.size() * sizeof(To), sizeof(To));
  cast(from, to, input.size(), input.data(), output.data(), make_parallel(threads), isa);
  EXPECT_TRUE(output.intact());
  return std::vector<To>(output.data<To>(), output.data<To>() + input.size());
}

// IEEE 754: (-1)^s * 2^(e - bias) * 1.f, or 2^(1 - bias) * 0.f for e = 0.
double decode(uint16_t bits, int fraction_bits) {
  const int exponent_bits = 15 - fraction_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

// Nearest of all 16-bit numbers, ties to the even one, by search.
uint16_t encode(long double x, int fraction_bits) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const long double magnitude = std::abs(x);
  const uint16_t infinity = ((1 << (15 - fraction_bits)) - 1) << fraction_bits;
  uint16_t low = 0;
  uint16_t high = infinity;
  while (high - low > 1) {
    const uint16_t middle = (low + high) / 2;
    (decode(middle, fraction_bits) <= magnitude ? low : high) = middle;
  }
  const long double below = decode(low, fraction_bits);
  // The number after the largest finite one, were the exponent range longer.
  const long double above =
      high == infinity ? below + (below - decode(low - 1, fraction_bits)) : decode(high, fraction_bits);
  if (std::isinf(magnitude)) return sign | infinity;
  const long double to_low = magnitude - below;
  const long double to_high = above - magnitude;
  return sign | (to_low < to_high || (to_low == to_high && low % 2 == 0) ? low : high);
}

TEST(Cast, EverySixteenBitNumberToFloat) {
  std::vector<uint16_t> all(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  for (const Isa isa : available_isas()) {
    for (const auto& [type, fraction_bits] : {std::pair(ElementType::kF16, 10), std::pair(ElementType::kBf16, 7)}) {
      const auto floats = run<float>(type, ElementType::kF32, all, isa, 3);
      const auto doubles = run<double>(type, ElementType::kF64, all, isa);
      std::vector<double> expected;
      for (const uint16_t bits : all) expected.push_back(decode(bits, fraction_bits));
      EXPECT_EQ(count_mismatches(floats.data(), expected, 0), 0);
      // And back: the same bits, but for NaN, which stays NaN.
      const auto back = run<uint16_t>(ElementType::kF32, type, floats, isa);
      const auto back_double = run<uint16_t>(ElementType::kF64, type, doubles, isa);
      for (int i = 0; i < 65536; ++i) {
        if (std::isnan(expected[i])) {
          EXPECT_TRUE(std::isnan(decode(back[i], fraction_bits)) && std::isnan(decode(back_double[i], fraction_bits)));
        } else {
          EXPECT_EQ(back[i], all[i]);
          EXPECT_EQ(back_double[i], all[i]);
        }
      }
    }
  }
}

TEST(Cast, RoundsToNearestEvenOnce) {
  std::vector<double> doubles = {65519.999,
                                 65520,
                                 65504,
                                 -65536,
                                 5.9e-8,
                                 2.98e-8,
                                 2.9802322387695312e-8,
                                 0,
                                 -0.0,
                                 1 + 0x1p-11,
                                 1 + 0x1p-11 + 0x1p-40,
                                 1 + 3 * 0x1p-11,
                                 INFINITY,
                                 -INFINITY,
                                 1e300,
                                 1e-300,
                                 3.3895313892515355e38,
                                 3.4e38,
                                 0x1p-133,
                                 0x1p-134,
                                 1.0000001 * 0x1p-134};
  for (const float scale : {1e-8f, 1e-5f, 1.0f, 1e4f, 1e38f}) {
    for (const float value : random_floats(2000, 11)) doubles.push_back(static_cast<double>(value) * scale);
  }
  std::vector<float> floats(doubles.begin(), doubles.end());
  for (const Isa isa : available_isas()) {
    for (const auto& [type, fraction_bits] : {std::pair(ElementType::kF16, 10), std::pair(ElementType::kBf16, 7)}) {
      const auto from_double = run<uint16_t>(ElementType::kF64, type, doubles, isa);
      const auto from_float = run<uint16_t>(ElementType::kF32, type, floats, isa, 2);
      for (size_t i = 0; i < doubles.size(); ++i) {
        EXPECT_EQ(from_double[i], encode(doubles[i], fraction_bits)) << doubles[i];
        EXPECT_EQ(from_float[i], encode(floats[i], fraction_bits)) << floats[i];
      }
    }
    const std::vector<int64_t> integers = {0, 1, -1, 2049, 2051, 65519, 65520, -65504, (int64_t{1} << 60) + 1,
                                           // Just above half way between two bf16 numbers; a double drops the 1.
                                           (int64_t{1} << 62) + (int64_t{1} << 54) + 1,
                                           std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
    const auto half = run<uint16_t>(ElementType::kI64, ElementType::kF16, integers, isa);
    const auto bfloat = run<uint16_t>(ElementType::kI64, ElementType::kBf16, integers, isa);
    for (size_t i = 0; i < integers.size(); ++i) {
      EXPECT_EQ(half[i], encode(static_cast<long double>(integers[i]), 10)) << integers[i];
      EXPECT_EQ(bfloat[i], encode(static_cast<long double>(integers[i]), 7)) << integers[i];
    }
  }
}

TEST(Cast, FloatToIntegerTruncatesAndSaturates) {
  const std::vector<float> x = {1.9f,  -1.9f, -0.5f,  300.7f,   -300.7f,   3e9f,
                                -3e9f, 1e30f, -1e30f, INFINITY, -INFINITY, NAN};
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
  for (const Isa isa : available_isas()) {
    EXPECT_EQ((run<int32_t>(ElementType::kF32, ElementType::kI32, x, isa)),
              (std::vector<int32_t>{1, -1, 0, 300, -300, kMax, kMin, kMax, kMin, kMax, kMin, 0}));
    EXPECT_EQ((run<int64_t>(ElementType::kF32, ElementType::kI64, x, isa)),
              (std::vector<int64_t>{1, -1, 0, 300, -300, 3000000000, -3000000000, kMax64, kMin64, kMax64, kMin64, 0}));
    EXPECT_EQ((run<int8_t>(ElementType::kF32, ElementType::kI8, x, isa)),
              (std::vector<int8_t>{1, -1, 0, 127, -128, 127, -128, 127, -128, 127, -128, 0}));
    EXPECT_EQ((run<uint8_t>(ElementType::kF32, ElementType::kU8, x, isa)),
              (std::vector<uint8_t>{1, 0, 0, 255, 0, 255, 0, 255, 0, 255, 0, 0}));
    EXPECT_EQ((run<uint16_t>(ElementType::kF32, ElementType::kU16, std::vector<float>{-1, 65535.5f, 70000, 7.9f}, isa)),
              (std::vector<uint16_t>{0, 65535, 65535, 7}));
    EXPECT_EQ((run<uint64_t>(ElementType::kF32, ElementType::kU64, std::vector<float>{-1, 3e9f, 2e19f}, isa)),
              (std::vector<uint64_t>{0, 3000000000, std::numeric_limits<uint64_t>::max()}));
    const std::vector<double> d = {2147483647.9, 9223372036854775807.0, -9223372036854775808.0};
    EXPECT_EQ((run<int32_t>(ElementType::kF64, ElementType::kI32, d, isa)), (std::vector<int32_t>{kMax, kMax, kMin}));
    EXPECT_EQ((run<int64_t>(ElementType::kF64, ElementType::kI64, d, isa)),
              (std::vector<int64_t>{2147483647, kMax64, kMin64}));
  }
}

TEST(Cast, IntegersAndBool) {
  const std::vector<int64_t> x = {0, 1, -1, 300, int64_t{1} << 40, (int64_t{1} << 32) + 7};
  const Isa isa = detect_isa();
  EXPECT_EQ((run<uint8_t>(ElementType::kI64, ElementType::kU8, x, isa)), (std::vector<uint8_t>{0, 1, 255, 44, 0, 7}));
  EXPECT_EQ((run<int8_t>(ElementType::kI64, ElementType::kI8, x, isa)), (std::vector<int8_t>{0, 1, -1, 44, 0, 7}));
  EXPECT_EQ((run<int32_t>(ElementType::kI64, ElementType::kI32, x, isa)), (std::vector<int32_t>{0, 1, -1, 300, 0, 7}));
  EXPECT_EQ((run<uint16_t>(ElementType::kI64, ElementType::kU16, x, isa)),
            (std::vector<uint16_t>{0, 1, 65535, 300, 0, 7}));
  EXPECT_EQ((run<uint16_t>(ElementType::kU64, ElementType::kBf16,
                           std::vector<uint64_t>{(uint64_t{1} << 63) + (uint64_t{1} << 55) + 1}, isa)),
            (std::vector<uint16_t>{0x5f01}));  // just above half way: up
  EXPECT_EQ((run<int16_t>(ElementType::kU32, ElementType::kI16, std::vector<uint32_t>{40000, 3}, isa)),
            (std::vector<int16_t>{-25536, 3}));
  EXPECT_EQ((run<uint8_t>(ElementType::kI64, ElementType::kBool, x, isa)), (std::vector<uint8_t>{0, 1, 1, 1, 1, 1}));
  EXPECT_EQ((run<double>(ElementType::kI64, ElementType::kF64, x, isa)),
            (std::vector<double>{0, 1, -1, 300, 0x1p40, 0x1p32 + 7}));
  EXPECT_EQ((run<uint8_t>(ElementType::kF32, ElementType::kBool, std::vector<float>{0, -0.0f, NAN, 1e-45f}, isa)),
            (std::vector<uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ((run<float>(ElementType::kBool, ElementType::kF32, std::vector<uint8_t>{0, 1, 255}, isa)),
            (std::vector<float>{0, 1, 1}));
  EXPECT_EQ((run<uint8_t>(ElementType::kBool, ElementType::kBool, std::vector<uint8_t>{0, 1, 255}, isa)),
            (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ((run<float>(ElementType::kU8, ElementType::kF32, std::vector<uint8_t>{0, 1, 255}, isa)),
            (std::vector<float>{0, 1, 255}));
  EXPECT_EQ((run<uint8_t>(ElementType::kF16, ElementType::kBool, std::vector<uint16_t>{0, 0x8000, 1, 0x7e00}, isa)),
            (std::vector<uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ((run<float>(ElementType::kF64, ElementType::kF32, std::vector<double>{1e300, -1e300, 1e-300}, isa)),
            (std::vector<float>{INFINITY, -INFINITY, 0}));
}

TEST(Cast, SameTypeEmptySizesAndInPlace) {
  for (int from = 0; from <= static_cast<int>(ElementType::kU64); ++from) {
    for (int to = 0; to <= static_cast<int>(ElementType::kU64); ++to) {
      cast(static_cast<ElementType>(from), static_cast<ElementType>(to), 0, nullptr, nullptr, {}, detect_isa());
    }
  }
  EXPECT_EQ(element_type_size(ElementType::kF64), 8);
  EXPECT_EQ(element_type_size(ElementType::kBf16), 2);
  EXPECT_EQ(element_type_size(ElementType::kBool), 1);
  std::vector<float> x = {1.5f, -2.5f, 3.0f};
  cast(ElementType::kF32, ElementType::kI32, 3, x.data(), x.data(), {}, detect_isa());
  int32_t integers[3];
  std::memcpy(integers, x.data(), sizeof integers);
  EXPECT_EQ(integers[0], 1);
  EXPECT_EQ(integers[1], -2);
  EXPECT_EQ(integers[2], 3);
}

}  // namespace
}  // namespace tenon::cpu
