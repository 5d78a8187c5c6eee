#include "kernels/cuda/normalize.h"

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

constexpr float kEpsilon = 1e-3f;

// Each list on its own, in double.
std::vector<double> expect(NormKind kind, const NormShape& s, const std::vector<float>& x,
                           const std::vector<float>& scale, const std::vector<float>& bias) {
  std::vector<double> y(x.size());
  for (int64_t list = 0; list < s.outer * s.inner; ++list) {
    const auto at = [&](int64_t i) { return (list / s.inner * s.axis + i) * s.inner + list % s.inner; };
    double mean = 0, squares = 0, magnitudes = 0;
    for (int64_t i = 0; i < s.axis; ++i) mean += x[at(i)] / static_cast<double>(s.axis);
    if (kind != NormKind::kLayer) mean = 0;
    for (int64_t i = 0; i < s.axis; ++i) {
      squares += (x[at(i)] - mean) * (x[at(i)] - mean);
      magnitudes += std::abs(x[at(i)]);
    }
    const double divisor = kind == NormKind::kL1   ? magnitudes
                           : kind == NormKind::kL2 ? std::sqrt(squares)
                                                   : std::sqrt(squares / static_cast<double>(s.axis) + kEpsilon);
    for (int64_t i = 0; i < s.axis; ++i) {
      const int64_t factor = list % s.groups * s.factors + i / s.run;
      y[at(i)] = divisor == 0 ? 0 : (x[at(i)] - mean) / divisor;
      if (!scale.empty()) y[at(i)] *= scale[factor];
      if (!bias.empty()) y[at(i)] += bias[factor];
    }
  }
  return y;
}

class NormalizeTest : public CudaTest {
 protected:
  // `factors`: of scale and bias; 0: neither is there.
  void check(NormKind kind, const NormShape& shape, int64_t factors, bool has_bias = true) {
    const auto x = random_floats(shape.outer * shape.axis * shape.inner, 1, -1, 3);
    const auto scale = random_floats(factors, 2), bias = random_floats(has_bias ? factors : 0, 3);
    const auto run = [&](ElementType type, const auto& x_values, const auto& scale_values, const auto& bias_values,
                         bool in_place) {
      using T = std::decay_t<decltype(x_values[0])>;
      const Input input(x_values, sizeof(T)), scales(scale_values, sizeof(T)), biases(bias_values, sizeof(T));
      const Output y(x_values.size() * sizeof(T), sizeof(T));
      launch([&](cudaStream_t stream) {
        return normalize(type, kind, shape, kEpsilon, input.data(), scale_values.empty() ? nullptr : scales.data(),
                         bias_values.empty() ? nullptr : biases.data(), {}, in_place ? input.data() : y.data(), stream);
      });
      auto result = y.template get<T>();
      if (in_place && !result.empty()) {
        EXPECT_EQ(cudaMemcpy(static_cast<void*>(result.data()), input.data(), result.size() * sizeof(T),
                             cudaMemcpyDeviceToHost),
                  cudaSuccess);
      }
      return result;
    };
    const auto y = run(ElementType::kF32, x, scale, bias, false);
    EXPECT_EQ(count_mismatches(y, expect(kind, shape, x, scale, bias), 1e-5), 0);
    EXPECT_TRUE(same_bits(y, run(ElementType::kF32, x, scale, bias, true)));
    const auto half_x = to_half(x), half_scale = to_half(scale), half_bias = to_half(bias);
    EXPECT_EQ(
        count_mismatches(to_floats(run(ElementType::kF16, half_x, half_scale, half_bias, false)),
                         expect(kind, shape, to_floats(half_x), to_floats(half_scale), to_floats(half_bias)), 2e-3),
        0);
  }
};

TEST_F(NormalizeTest, Rows) {
  for (const NormKind kind : {NormKind::kLayer, NormKind::kRms}) {
    for (const int64_t length : {1, 2, 3, 31, 32, 65, 768, 1023, 5000}) {
      check(kind, NormShape::rows(7, length), length);
      check(kind, NormShape::rows(7, length), length, false);
      check(kind, NormShape::rows(7, length), 0);
      if (HasFailure()) return;
    }
    check(kind, NormShape::rows(70000, 33), 33);
    check(kind, NormShape::rows(1, 100000), 100000);
    check(kind, NormShape::rows(0, 5), 5);
  }
}

TEST_F(NormalizeTest, Groups) {
  for (const int64_t pixels : {1, 5, 64, 1000}) {
    check(NormKind::kLayer, NormShape::channel_groups(2, 4, 3, pixels, false), 12);
    check(NormKind::kLayer, NormShape::channel_groups(2, 4, 3, pixels, true), 4);
    check(NormKind::kLayer, NormShape::channel_groups(3, 6, 1, pixels, false), 6);
    check(NormKind::kLayer, NormShape::channel_groups(3, 1, 6, pixels, false), 6);
  }
}

TEST_F(NormalizeTest, Lengths) {
  for (const NormKind kind : {NormKind::kL1, NormKind::kL2}) {
    for (const int64_t axis : {1, 3, 40, 700}) {
      for (const int64_t inner : {1, 2, 33, 100}) check(kind, {3, axis, inner, 1, 0, 1}, 0);
    }
  }
}

TEST_F(NormalizeTest, KnownValues) {
  const auto run = [&](NormKind kind, const std::vector<float>& x, float epsilon) {
    const Input input(x);
    const Output y(x.size() * sizeof(float));
    launch([&](cudaStream_t stream) {
      return normalize(ElementType::kF32, kind, NormShape::rows(1, static_cast<int64_t>(x.size())), epsilon,
                       input.data(), nullptr, nullptr, Epilogue::relu(), y.data(), stream);
    });
    return y.get();
  };
  EXPECT_EQ(run(NormKind::kLayer, {1, 3, 1, 3}, 0), (std::vector<float>{0, 1, 0, 1}));
  EXPECT_EQ(run(NormKind::kRms, {2, -2, 2, 2}, 0), (std::vector<float>{1, 0, 1, 1}));
  EXPECT_EQ(run(NormKind::kL1, {0, 0, 0}, 0), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(run(NormKind::kL2, {0, 0, 0}, 0), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(run(NormKind::kL2, {3, -4}, 0), (std::vector<float>{0.6f, 0}));
  // A large mean does not eat the variance.
  EXPECT_EQ(run(NormKind::kLayer, {10001, 10003}, 0), (std::vector<float>{0, 1}));
}

TEST_F(NormalizeTest, LocalResponse) {
  for (const int64_t size : {1, 2, 3, 5, 20}) {
    const LrnParams p = {size, 0.5f, 0.75f, 2.0f};
    const int64_t outer = 2, channels = 7, inner = 37;
    const auto half = to_half(random_floats(outer * channels * inner, 4, -3, 3));
    const auto x = to_floats(half);
    std::vector<double> expected(x.size());
    for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
      const int64_t c = i / inner % channels;
      double sum = 0;
      for (int64_t k = std::max<int64_t>(0, c - (size - 1) / 2); k <= std::min(channels - 1, c + size / 2); ++k) {
        sum += std::pow(static_cast<double>(x[i + (k - c) * inner]), 2);
      }
      expected[i] = x[i] / std::pow(2.0 + 0.5 / static_cast<double>(size) * sum, 0.75);
    }
    const Input input(x, 4), half_input(half, 2);
    const Output y(x.size() * 4, 4), half_y(x.size() * 2, 2);
    launch([&](cudaStream_t stream) {
      return local_response_norm(ElementType::kF32, p, outer, channels, inner, input.data(), y.data(), stream);
    });
    launch([&](cudaStream_t stream) {
      return local_response_norm(ElementType::kF16, p, outer, channels, inner, half_input.data(), half_y.data(),
                                 stream);
    });
    EXPECT_EQ(count_mismatches(y.get(), expected, 2e-6), 0);
    EXPECT_EQ(count_mismatches(to_floats(half_y.get<__half>()), expected, 1e-3), 0);
  }
}

}  // namespace
}  // namespace tenon::cuda
