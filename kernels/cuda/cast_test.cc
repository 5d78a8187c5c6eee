#include "kernels/cuda/cast.h"

#include <limits>

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

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

constexpr std::pair<ElementType, int> kNarrowTypes[] = {{ElementType::kF16, 10}, {ElementType::kBf16, 7}};

class CastTest : public CudaTest {
 protected:
  template <class To, class From>
  std::vector<To> run(ElementType from, ElementType to, const std::vector<From>& x, bool aligned = true) {
    const Input input(x, aligned ? 0 : sizeof(From));
    const Output output(x.size() * sizeof(To), aligned ? 0 : sizeof(To));
    launch([&](cudaStream_t stream) { return cast(from, to, x.size(), input.data(), output.data(), stream); });
    return output.get<To>();
  }
};

TEST_F(CastTest, EverySixteenBitNumberToFloat) {
  std::vector<uint16_t> all(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  for (const auto& [type, fraction_bits] : kNarrowTypes) {
    const auto floats = run<float>(type, ElementType::kF32, all);
    const auto doubles = run<double>(type, ElementType::kF64, all, false);
    std::vector<double> expected;
    for (const uint16_t bits : all) expected.push_back(decode(bits, fraction_bits));
    EXPECT_EQ(count_mismatches(floats, expected, 0), 0);
    // And back: the same bits, but for NaN, which stays NaN.
    const auto back = run<uint16_t>(ElementType::kF32, type, floats, false);
    const auto back_double = run<uint16_t>(ElementType::kF64, type, doubles);
    int bad = 0;
    for (int i = 0; i < 65536; ++i) {
      if (std::isnan(expected[i])) {
        bad += !std::isnan(decode(back[i], fraction_bits)) || !std::isnan(decode(back_double[i], fraction_bits));
      } else {
        bad += back[i] != all[i] || back_double[i] != all[i];
      }
    }
    EXPECT_EQ(bad, 0);
  }
}

TEST_F(CastTest, RoundsToNearestEvenOnce) {
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
    for (const float value : random_floats(500, 11)) doubles.push_back(static_cast<double>(value) * scale);
  }
  const std::vector<float> floats(doubles.begin(), doubles.end());
  const std::vector<int64_t> integers = {0, 1, -1, 2049, 2051, 65519, 65520, -65504, (int64_t{1} << 60) + 1,
                                         // Just above half way between two bf16 numbers; a double drops the 1.
                                         (int64_t{1} << 62) + (int64_t{1} << 54) + 1,
                                         std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  for (const auto& [type, fraction_bits] : kNarrowTypes) {
    const auto from_double = run<uint16_t>(ElementType::kF64, type, doubles);
    const auto from_float = run<uint16_t>(ElementType::kF32, type, floats);
    for (size_t i = 0; i < doubles.size(); ++i) {
      EXPECT_EQ(from_double[i], encode(doubles[i], fraction_bits)) << doubles[i];
      EXPECT_EQ(from_float[i], encode(floats[i], fraction_bits)) << floats[i];
    }
    const auto from_integer = run<uint16_t>(ElementType::kI64, type, integers);
    for (size_t i = 0; i < integers.size(); ++i) {
      EXPECT_EQ(from_integer[i], encode(static_cast<long double>(integers[i]), fraction_bits)) << integers[i];
    }
  }
}

TEST_F(CastTest, FloatToIntegerTruncatesAndSaturates) {
  const std::vector<float> x = {1.9f,  -1.9f, -0.5f,  300.7f,   -300.7f,   3e9f,
                                -3e9f, 1e30f, -1e30f, INFINITY, -INFINITY, NAN};
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
  EXPECT_EQ((run<int32_t>(ElementType::kF32, ElementType::kI32, x)),
            (std::vector<int32_t>{1, -1, 0, 300, -300, kMax, kMin, kMax, kMin, kMax, kMin, 0}));
  EXPECT_EQ((run<int64_t>(ElementType::kF32, ElementType::kI64, x)),
            (std::vector<int64_t>{1, -1, 0, 300, -300, 3000000000, -3000000000, kMax64, kMin64, kMax64, kMin64, 0}));
  EXPECT_EQ((run<int8_t>(ElementType::kF32, ElementType::kI8, x)),
            (std::vector<int8_t>{1, -1, 0, 127, -128, 127, -128, 127, -128, 127, -128, 0}));
  EXPECT_EQ((run<uint8_t>(ElementType::kF32, ElementType::kU8, x)),
            (std::vector<uint8_t>{1, 0, 0, 255, 0, 255, 0, 255, 0, 255, 0, 0}));
  const std::vector<double> d = {2147483647.9, 9223372036854775807.0, -9223372036854775808.0};
  EXPECT_EQ((run<int32_t>(ElementType::kF64, ElementType::kI32, d)), (std::vector<int32_t>{kMax, kMax, kMin}));
  EXPECT_EQ((run<int64_t>(ElementType::kF64, ElementType::kI64, d)),
            (std::vector<int64_t>{2147483647, kMax64, kMin64}));
}

TEST_F(CastTest, IntegersAndBool) {
  const std::vector<int64_t> x = {0, 1, -1, 300, int64_t{1} << 40, (int64_t{1} << 32) + 7};
  EXPECT_EQ((run<uint8_t>(ElementType::kI64, ElementType::kU8, x)), (std::vector<uint8_t>{0, 1, 255, 44, 0, 7}));
  EXPECT_EQ((run<int8_t>(ElementType::kI64, ElementType::kI8, x)), (std::vector<int8_t>{0, 1, -1, 44, 0, 7}));
  EXPECT_EQ((run<int32_t>(ElementType::kI64, ElementType::kI32, x)), (std::vector<int32_t>{0, 1, -1, 300, 0, 7}));
  EXPECT_EQ((run<uint8_t>(ElementType::kI64, ElementType::kBool, x)), (std::vector<uint8_t>{0, 1, 1, 1, 1, 1}));
  EXPECT_EQ((run<double>(ElementType::kI64, ElementType::kF64, x)),
            (std::vector<double>{0, 1, -1, 300, 0x1p40, 0x1p32 + 7}));
  EXPECT_EQ((run<uint8_t>(ElementType::kF32, ElementType::kBool, std::vector<float>{0, -0.0f, NAN, 1e-45f})),
            (std::vector<uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ((run<float>(ElementType::kBool, ElementType::kF32, std::vector<uint8_t>{0, 1, 255})),
            (std::vector<float>{0, 1, 1}));
  EXPECT_EQ((run<uint8_t>(ElementType::kBool, ElementType::kBool, std::vector<uint8_t>{0, 1, 255})),
            (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ((run<float>(ElementType::kU8, ElementType::kF32, std::vector<uint8_t>{0, 1, 255})),
            (std::vector<float>{0, 1, 255}));
  EXPECT_EQ((run<uint8_t>(ElementType::kF16, ElementType::kBool, std::vector<uint16_t>{0, 0x8000, 1, 0x7e00})),
            (std::vector<uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ((run<float>(ElementType::kF64, ElementType::kF32, std::vector<double>{1e300, -1e300, 1e-300})),
            (std::vector<float>{INFINITY, -INFINITY, 0}));
}

// Small integers survive every pair of types, at every length and alignment.
TEST_F(CastTest, EveryPairOfTypes) {
  for (int from = 0; from < 9; ++from) {
    for (int to = 0; to < 9; ++to) {
      const auto source = static_cast<ElementType>(from);
      const auto target = static_cast<ElementType>(to);
      for (const int64_t count : {0, 1, 4, 7, 1030}) {
        std::vector<int32_t> x(count);
        for (int64_t i = 0; i < count; ++i) x[i] = static_cast<int32_t>(i % 2);
        const size_t shift = count % 4 == 0 ? 0 : 8;
        const Input input(x);
        const Output a(count * element_type_size(source), shift);
        const Output b(count * element_type_size(target), shift);
        const Output back(count * sizeof(int32_t));
        launch([&](cudaStream_t s) { return cast(ElementType::kI32, source, count, input.data(), a.data(), s); });
        launch([&](cudaStream_t s) { return cast(source, target, count, a.data(), b.data(), s); });
        launch([&](cudaStream_t s) { return cast(target, ElementType::kI32, count, b.data(), back.data(), s); });
        a.get<uint8_t>();
        b.get<uint8_t>();
        EXPECT_EQ(back.get<int32_t>(), x) << from << " to " << to;
      }
    }
  }
}

TEST_F(CastTest, InPlace) {
  const Input x(std::vector<float>{1.5f, -2.5f, 3.0f, 4.0f, 5.5f});
  launch(
      [&](cudaStream_t stream) { return cast(ElementType::kF32, ElementType::kI32, 5, x.data(), x.data(), stream); });
  std::vector<int32_t> got(5);
  ASSERT_EQ(cudaMemcpy(got.data(), x.data(), 20, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(got, (std::vector<int32_t>{1, -2, 3, 4, 5}));
}

TEST(Cast, ElementSizes) {
  EXPECT_EQ(element_type_size(ElementType::kF64), 8);
  EXPECT_EQ(element_type_size(ElementType::kBf16), 2);
  EXPECT_EQ(element_type_size(ElementType::kBool), 1);
}

}  // namespace
}  // namespace tenon::cuda
