#include "kernels/cuda/softmax.h"

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

class SoftmaxTest : public CudaTest {
 protected:
  void check(int64_t outer, int64_t axis, int64_t inner, float lo, float hi) {
    SCOPED_TRACE(testing::Message() << outer << "," << axis << "," << inner);
    const auto x = random_floats(outer * axis * inner, 3, lo, hi);
    const Input input(x, 4);
    for (const SoftmaxKind kind : {SoftmaxKind::kSoftmax, SoftmaxKind::kLogSoftmax}) {
      const Output y(x.size() * sizeof(float), 4);
      launch([&](cudaStream_t stream) {
        return softmax(ElementType::kF32, kind, outer, axis, inner, input.data(), y.data(), stream);
      });
      EXPECT_EQ(count_mismatches(y.get(), expect(kind, outer, axis, inner, x), 2e-6), 0);
      const Input in_place(x, 4);
      launch([&](cudaStream_t stream) {
        return softmax(ElementType::kF32, kind, outer, axis, inner, in_place.data(), in_place.data(), stream);
      });
      std::vector<float> got(x.size());
      ASSERT_EQ(cudaMemcpy(got.data(), in_place.data(), got.size() * sizeof(float), cudaMemcpyDeviceToHost),
                cudaSuccess);
      EXPECT_TRUE(same_bits(got, y.get()));
    }
    if (hi > 1000) return;
    const auto half = to_half(x);
    const Input half_input(half, 2);
    const Output y(x.size() * sizeof(__half), 2);
    launch([&](cudaStream_t stream) {
      return softmax(ElementType::kF16, SoftmaxKind::kSoftmax, outer, axis, inner, half_input.data(), y.data(), stream);
    });
    const auto expected = expect(SoftmaxKind::kSoftmax, outer, axis, inner, to_floats(half));
    EXPECT_EQ(count_mismatches(to_floats(y.get<__half>()), expected, 6e-4), 0);
  }

  static std::vector<double> expect(SoftmaxKind kind, int64_t outer, int64_t axis, int64_t inner,
                                    const std::vector<float>& x) {
    std::vector<double> expected(x.size());
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        double most = -INFINITY;
        double sum = 0;
        const auto at = [&](int64_t a) { return (o * axis + a) * inner + i; };
        for (int64_t a = 0; a < axis; ++a) most = std::max<double>(most, x[at(a)]);
        for (int64_t a = 0; a < axis; ++a) sum += std::exp(x[at(a)] - most);
        for (int64_t a = 0; a < axis; ++a) {
          expected[at(a)] =
              kind == SoftmaxKind::kSoftmax ? std::exp(x[at(a)] - most) / sum : x[at(a)] - most - std::log(sum);
        }
      }
    }
    return expected;
  }
};

TEST_F(SoftmaxTest, GradedShapes) {
  for (const int64_t axis : {1, 2, 7, 31, 32, 33, 100, 200, 500, 1000, 1025}) {
    for (const int64_t inner : {1, 2, 15, 33}) check(3, axis, inner, -5, 5);
    if (HasFailure()) return;
  }
  check(301, 20, 1, -5, 5);
  check(2, 85, 169, -5, 5);
  check(3, 5000, 1, -5, 5);
  check(0, 5, 3, -5, 5);
  check(3, 0, 3, -5, 5);
  check(3, 5, 0, -5, 5);
}

TEST_F(SoftmaxTest, LargeInputsDoNotOverflow) {
  check(2, 33, 1, -1e4f, 1e4f);
  check(2, 33, 5, 1e30f, 2e30f);
  check(2, 3000, 1, 1e30f, 2e30f);
}

TEST_F(SoftmaxTest, Infinities) {
  const float inf = INFINITY;
  for (const int64_t axis : {4, 40, 2000}) {
    for (const int64_t inner : {1, 3}) {
      const auto run = [&](const std::vector<float>& x) {
        const Input input(x);
        const Output y(x.size() * sizeof(float));
        launch([&](cudaStream_t stream) {
          return softmax(ElementType::kF32, SoftmaxKind::kSoftmax, 1, axis, inner, input.data(), y.data(), stream);
        });
        return y.get();
      };
      std::vector<float> x(axis * inner, -inf);
      for (int64_t i = 0; i < inner; ++i) x[i] = x[inner + i] = 2.0f;
      auto y = run(x);
      EXPECT_EQ(y[0], 0.5f);
      EXPECT_EQ(y[inner], 0.5f);
      EXPECT_EQ(y[2 * inner], 0.0f);
      y = run(std::vector<float>(axis * inner, -inf));
      for (const float value : y) EXPECT_TRUE(std::isnan(value));
      for (const float value : {inf, NAN}) {
        x.assign(axis * inner, 1.0f);
        x[inner] = value;
        EXPECT_TRUE(std::isnan(run(x)[0]));
      }
    }
  }
}

}  // namespace
}  // namespace tenon::cuda
