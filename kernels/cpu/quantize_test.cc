#include "kernels/cpu/quantize.h"

#include <cmath>
#include <limits>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

// Rounding by the C library, the range by hand.
template <class T>
T expected(float x, float scale, int zero) {
  const double value = static_cast<double>(x / scale);
  if (std::isnan(value)) return std::numeric_limits<T>::min();
  const double low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return static_cast<T>(std::min(std::max(std::nearbyint(value) + zero, low), high));
}

template <class T>
void check(const QuantizeShape& shape, int threads) {
  const int64_t count = shape.outer * shape.channels * shape.inner;
  std::vector<float> x = random_floats(count, 3, -1.5f * std::numeric_limits<T>::max(), std::numeric_limits<T>::max());
  for (size_t i = 0; i < x.size(); i += 3) x[i] = std::floor(x[i]) + 0.5f;  // ties where the scale is 1
  if (count > 8) x[1] = INFINITY, x[2] = -INFINITY, x[4] = NAN;
  std::vector<float> scales = random_floats(shape.channels, 4, 0.3f, 3.0f);
  scales[0] = 1.0f;
  std::vector<T> zeros;
  for (const float value : random_floats(shape.channels, 5, 0, 100)) zeros.push_back(static_cast<T>(value));
  std::vector<T> y(x.size());
  quantize(shape, x.data(), scales.data(), zeros.data(), y.data(), make_parallel(threads));
  std::vector<float> back(x.size());
  dequantize(shape, y.data(), scales.data(), zeros.data(), back.data(), make_parallel(threads));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t channel = i / shape.inner % shape.channels;
    ASSERT_EQ(y[i], expected<T>(x[i], scales[channel], zeros[channel])) << i << ": " << x[i];
    ASSERT_EQ(back[i], static_cast<float>(y[i] - zeros[channel]) * scales[channel]) << i;
  }
  quantize<T>(shape, x.data(), scales.data(), nullptr, y.data(), make_parallel(threads));
  for (int64_t i = 0; i < count; ++i) {
    ASSERT_EQ(y[i], expected<T>(x[i], scales[i / shape.inner % shape.channels], 0)) << i;
  }
}

TEST(Quantize, RoundsToNearestEvenAndSaturates) {
  for (const QuantizeShape& shape : {QuantizeShape{1, 1, 40000}, {2, 5, 33}, {3, 17001, 1}, {1, 1, 1}, {0, 3, 4}}) {
    for (const int threads : {1, 3}) {
      check<uint8_t>(shape, threads);
      check<int8_t>(shape, threads);
      check<uint16_t>(shape, threads);
      check<int16_t>(shape, threads);
    }
  }
}

TEST(Quantize, DequantizesDifferencesBeyond32Bits) {
  const int32_t x = std::numeric_limits<int32_t>::max(), zero = std::numeric_limits<int32_t>::min();
  const float scale = 0.5f;
  float y = 0;
  dequantize({1, 1, 1}, &x, &scale, &zero, &y, {});
  EXPECT_EQ(y, 2147483648.0f);
}

TEST(Quantize, RequantizesInDouble) {
  std::vector<int32_t> x = {0, 1, 3, 5, -1, -3, 16777217, 16777216, 2147483647, -2147483647 - 1};
  for (int i = 0; i < 20000; ++i) x.push_back(i * 7919 - 70000000);
  for (const float multiplier : {0.5f, 0.0007f, 0x1p-25f, 1e9f, -0.25f}) {
    std::vector<uint8_t> y(x.size());
    std::vector<int8_t> z(x.size());
    requantize<uint8_t>({1, 1, static_cast<int64_t>(x.size())}, x.data(), &multiplier, 3, y.data(), make_parallel(2));
    requantize<int8_t>({1, 1, static_cast<int64_t>(x.size())}, x.data(), &multiplier, -9, z.data(), {});
    for (size_t i = 0; i < x.size(); ++i) {
      const double value = std::nearbyint(x[i] * static_cast<double>(multiplier));
      ASSERT_EQ(y[i], static_cast<uint8_t>(std::min(std::max(value + 3, 0.0), 255.0))) << x[i];
      ASSERT_EQ(z[i], static_cast<int8_t>(std::min(std::max(value - 9, -128.0), 127.0))) << x[i];
    }
  }
}

TEST(Quantize, RangeHoldsZeroAndPassesOverNan) {
  float least = 1, largest = -1;
  const std::vector<float> few = {2, NAN, 5};
  value_range(3, few.data(), &least, &largest, {});
  EXPECT_EQ(least, 0);
  EXPECT_EQ(largest, 5);
  value_range(0, nullptr, &least, &largest, {});
  EXPECT_EQ(largest, 0);
  std::vector<float> many = random_floats(100000, 8);
  many[99999] = -7;
  many[50001] = 9;
  value_range(100000, many.data(), &least, &largest, make_parallel(3));
  EXPECT_EQ(least, -7);
  EXPECT_EQ(largest, 9);
}

}  // namespace
}  // namespace tenon::cpu
