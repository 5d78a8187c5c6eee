#include "kernels/cpu/softmax.h"

#include <limits>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

void check(int64_t outer, int64_t axis, int64_t inner, float lo, float hi) {
  const auto x = random_floats(outer * axis * inner, 3, lo, hi);
  const Guarded guarded(x);
  for (const SoftmaxKind kind : {SoftmaxKind::kSoftmax, SoftmaxKind::kLogSoftmax}) {
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
    for (const Isa isa : available_isas()) {
      for (const int threads : {1, 2, 3}) {
        SCOPED_TRACE(testing::Message() << outer << "," << axis << "," << inner << " " << isa_name(isa));
        Buffer y(x.size() * sizeof(float), 4);
        softmax(kind, outer, axis, inner, guarded.data(), y.data(), make_parallel(threads), isa);
        EXPECT_TRUE(y.intact());
        EXPECT_EQ(count_mismatches(y.data(), expected, 2e-6), 0);
        std::vector<float> in_place = x;
        softmax(kind, outer, axis, inner, in_place.data(), in_place.data(), make_parallel(threads), isa);
        EXPECT_TRUE(x.empty() || std::memcmp(in_place.data(), y.data(), x.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST(Softmax, GradedShapes) {
  for (const int64_t axis : {1, 2, 7, 16, 17, 100, 1000}) {
    for (const int64_t inner : {1, 2, 15, 33, 169}) check(3, axis, inner, -5, 5);
  }
  check(500, 20, 1, -5, 5);
  check(2, 85, 700, -5, 5);
  check(0, 5, 3, -5, 5);
  check(3, 0, 3, -5, 5);
  check(3, 5, 0, -5, 5);
}

TEST(Softmax, LargeInputsDoNotOverflow) {
  check(2, 33, 1, -1e4f, 1e4f);
  check(2, 33, 5, 1e30f, 2e30f);
}

TEST(Softmax, UniformRows) {
  // Zeros of shape (1,2,1,2): 0.25 over the last three dimensions, 0.5 over one dimension of 2.
  const float x[4] = {};
  for (const Isa isa : available_isas()) {
    float y[4];
    softmax(SoftmaxKind::kSoftmax, 1, 4, 1, x, y, {}, isa);
    for (const float value : y) EXPECT_EQ(value, 0.25f);
    softmax(SoftmaxKind::kSoftmax, 1, 2, 2, x, y, {}, isa);
    for (const float value : y) EXPECT_EQ(value, 0.5f);
  }
}

TEST(Softmax, Infinities) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const Isa isa : available_isas()) {
    for (const int64_t inner : {1, 3}) {
      std::vector<float> x(4 * inner, -inf);
      for (int64_t i = 0; i < inner; ++i) x[i] = x[inner + i] = 2.0f;
      std::vector<float> y(x.size());
      softmax(SoftmaxKind::kSoftmax, 1, 4, inner, x.data(), y.data(), {}, isa);
      EXPECT_EQ(y[0], 0.5f);
      EXPECT_EQ(y[inner], 0.5f);
      EXPECT_EQ(y[2 * inner], 0.0f);
      x.assign(4 * inner, -inf);
      softmax(SoftmaxKind::kSoftmax, 1, 4, inner, x.data(), y.data(), {}, isa);
      for (const float value : y) EXPECT_TRUE(std::isnan(value));
      x.assign(4 * inner, 1.0f);
      x[inner] = inf;
      softmax(SoftmaxKind::kSoftmax, 1, 4, inner, x.data(), y.data(), {}, isa);
      EXPECT_TRUE(std::isnan(y[0]));
    }
  }
}

TEST(Softmax, OfScores) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const Isa isa : available_isas()) {
    for (const int64_t count : {1, 7, 16, 33, 200}) {
      std::vector<float> x(count), bias(count);
      std::vector<double> expected(count);
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) {
        x[i] = std::sin(static_cast<float>(i)) * 20;
        bias[i] = std::cos(static_cast<float>(3 * i));
        sum += expected[i] = std::exp(static_cast<double>(x[i]) * 0.25 + static_cast<double>(bias[i]));
      }
      softmax_of_scores(count, 0.25f, bias.data(), x.data(), isa);
      for (int64_t i = 0; i < count; ++i) EXPECT_NEAR(x[i], expected[i] / sum, 1e-6) << i << " of " << count;
    }
    std::vector<float> x = {1, nan, 1, inf};
    softmax_of_scores(4, -1.0f, std::vector<float>{0, -inf, 0, -inf}.data(), x.data(), isa);
    EXPECT_EQ(x, (std::vector<float>{0.5f, 0, 0.5f, 0}));
    x = {1, nan, 2};
    softmax_of_scores(3, 1.0f, std::vector<float>{-inf, -inf, -inf}.data(), x.data(), isa);
    EXPECT_EQ(x, (std::vector<float>{0, 0, 0}));
    x = {-inf, nan};
    softmax_of_scores(2, 1.0f, nullptr, x.data(), isa);
    EXPECT_TRUE(std::isnan(x[1]));
  }
}

}  // namespace
}  // namespace tenon::cpu
