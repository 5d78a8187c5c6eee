#include "kernels/cuda/quantize.h"

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

class QuantizeTest : public CudaTest {
 protected:
  template <class T>
  void check(ElementType type, const QuantizeShape& s, bool has_zero_points) {
    const int64_t count = s.outer * s.channels * s.inner;
    const auto x = random_floats(count, 1, -40, 40);
    const auto scales = random_floats(s.channels, 2, 0.1f, 0.4f);
    std::vector<T> zeros;
    for (int64_t c = 0; c < s.channels && has_zero_points; ++c) zeros.push_back(static_cast<T>(c * 37 % 100));
    const Input input(x, 4), scale(scales), zero(zeros);
    const Output q(count * sizeof(T), 1), back(count * sizeof(float), 4);
    const void* zero_data = has_zero_points ? zero.data() : nullptr;
    if constexpr (sizeof(T) == 1) {
      launch([&](cudaStream_t stream) {
        return quantize(type, s, input.data(), scale.data(), zero_data, q.data(), stream);
      });
      const auto got = q.template get<T>();
      for (int64_t i = 0; i < count; ++i) {
        const int64_t c = i / s.inner % s.channels;
        const double value = std::nearbyint(x[i] / scales[c]) + (has_zero_points ? zeros[c] : 0);
        const double low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
        ASSERT_EQ(static_cast<double>(got[i]), std::min(std::max(value, low), high)) << "element " << i;
      }
    }
    std::vector<T> numbers;
    for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<T>(i * 7919));
    const Input number(numbers, sizeof(T));
    launch([&](cudaStream_t stream) {
      return dequantize(type, s, number.data(), scale.data(), zero_data, back.data(), stream);
    });
    const auto got = back.get();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t c = i / s.inner % s.channels;
      const auto difference = static_cast<float>(static_cast<int64_t>(numbers[i]) - (has_zero_points ? zeros[c] : 0));
      ASSERT_EQ(got[i], difference * scales[c]) << "element " << i;
    }
  }
};

TEST_F(QuantizeTest, GradedShapes) {
  for (const QuantizeShape& shape : {QuantizeShape{1, 1, 1}, QuantizeShape{1, 1, 1000}, QuantizeShape{3, 7, 33},
                                     QuantizeShape{5, 64, 1}, QuantizeShape{0, 3, 3}, QuantizeShape{1, 300, 300}}) {
    for (const bool has_zero_points : {false, true}) {
      check<uint8_t>(ElementType::kU8, shape, has_zero_points);
      check<int8_t>(ElementType::kI8, shape, has_zero_points);
      check<int32_t>(ElementType::kI32, shape, has_zero_points);
    }
  }
}

TEST_F(QuantizeTest, TiesLimitsAndSpecialValues) {
  const std::vector<float> x = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 300, -300, INFINITY, -INFINITY, NAN, 1e30f};
  const Input input(x), scale(std::vector<float>{1});
  const Output u8(x.size()), i8(x.size());
  launch([&](cudaStream_t stream) {
    return quantize(ElementType::kU8, {1, 1, static_cast<int64_t>(x.size())}, input.data(), scale.data(), nullptr,
                    u8.data(), stream);
  });
  launch([&](cudaStream_t stream) {
    return quantize(ElementType::kI8, {1, 1, static_cast<int64_t>(x.size())}, input.data(), scale.data(), nullptr,
                    i8.data(), stream);
  });
  EXPECT_EQ(u8.get<uint8_t>(), (std::vector<uint8_t>{0, 2, 2, 0, 0, 255, 0, 255, 0, 0, 255}));
  EXPECT_EQ(i8.get<int8_t>(), (std::vector<int8_t>{0, 2, 2, 0, -2, 127, -128, 127, -128, -128, 127}));
  EXPECT_EQ(quantize(ElementType::kI32, {}, nullptr, nullptr, nullptr, nullptr, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(dequantize(ElementType::kF32, {}, nullptr, nullptr, nullptr, nullptr, stream_), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace tenon::cuda
