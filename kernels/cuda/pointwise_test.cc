#include "kernels/cuda/pointwise.h"

#include <functional>
#include <limits>
#include <numeric>

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct UnaryCase {
  const char* name;
  UnaryKind kind;
  float alpha, beta;
  std::function<double(double)> expected;
  float lo, hi;  // tested range
  double at_minus_inf, at_plus_inf;
};

std::vector<UnaryCase> unary_cases() {
  const auto relu = [](double x) { return x > 0 ? x : 0; };
  return {
      {"none", UnaryKind::kNone, 0, 0, [](double x) { return x; }, -9, 9, -kInf, kInf},
      {"linear", UnaryKind::kLinear, 2, 3, [](double x) { return 2 * x + 3; }, 0, 100, -kInf, kInf},
      {"relu", UnaryKind::kRelu, 0, 0, relu, -100, 100, 0, kInf},
      {"relu6", UnaryKind::kRelu6, 0, 0, [=](double x) { return std::min(relu(x), 6.0); }, -10, 10, 0, 6},
      {"clip", UnaryKind::kClip, -2, 5, [](double x) { return std::clamp(x, -2.0, 5.0); }, -10, 10, -2, 5},
      {"leaky", UnaryKind::kLeakyRelu, 0.25f, 0, [](double x) { return x > 0 ? x : 0.25 * x; }, -10, 10, -kInf, kInf},
      {"leaky0", UnaryKind::kLeakyRelu, 0, 0, relu, -10, 10, 0, kInf},
      {"logistic", UnaryKind::kLogistic, 0, 0, [](double x) { return 1 / (1 + std::exp(-x)); }, -86, 86, 0, 1},
      {"tanh", UnaryKind::kTanh, 0, 0, [](double x) { return std::tanh(x); }, -12, 12, -1, 1},
      {"elu", UnaryKind::kElu, 1, 0, [](double x) { return x > 0 ? x : std::expm1(x); }, -90, 90, -1, kInf},
      {"elu2", UnaryKind::kElu, 0.5f, 0, [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); }, -2, 1, -0.5, kInf},
      {"mish", UnaryKind::kMish, 0, 0, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, -86, 1e3f, 0,
       kInf},
      {"mish_middle", UnaryKind::kMish, 0, 0, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, -5, 25,
       0, kInf},
      {"swish", UnaryKind::kSwish, 0, 0, [](double x) { return x / (1 + std::exp(-x)); }, -86, 1e3f, 0, kInf},
      {"hard_swish", UnaryKind::kHardSwish, 0, 0, [=](double x) { return x * std::min(relu(x + 3), 6.0) / 6; }, -2, 20,
       0, kInf},
      {"hard_sigmoid", UnaryKind::kHardSigmoid, 0.25f, 0.5f,
       [](double x) { return std::clamp(0.25 * x + 0.5, 0.0, 1.0); }, -1.5f, 20, 0, 1},
      {"exp", UnaryKind::kExp, 0, 0, [](double x) { return std::exp(x); }, -86, 88.7f, 0, kInf},
      {"log", UnaryKind::kLog, 0, 0, [](double x) { return std::log(x); }, 0, 1e38f, NAN, kInf},
      {"log_near_1", UnaryKind::kLog, 0, 0, [](double x) { return std::log(x); }, 0.25f, 4, NAN, kInf},
      {"log1p", UnaryKind::kLog1p, 0, 0, [](double x) { return std::log1p(x); }, -0.999f, 3, NAN, kInf},
      {"sqrt", UnaryKind::kSqrt, 0, 0, [](double x) { return std::sqrt(x); }, 0, 1e30f, NAN, kInf},
      {"abs", UnaryKind::kAbs, 0, 0, [](double x) { return std::abs(x); }, -9, 9, kInf, kInf},
      {"neg", UnaryKind::kNeg, 0, 0, [](double x) { return -x; }, -9, 9, kInf, -kInf},
      {"reciprocal", UnaryKind::kReciprocal, 0, 0, [](double x) { return 1 / x; }, 0.01f, 9, 0, 0},
      {"sign", UnaryKind::kSign, 0, 0, [](double x) { return x > 0   ? 1
                                                             : x < 0 ? -1
                                                                     : x; }, -1, 1, -1, 1},
      {"floor", UnaryKind::kFloor, 0, 0, [](double x) { return std::floor(x); }, -9, 9, -kInf, kInf},
      {"ceil", UnaryKind::kCeil, 0, 0, [](double x) { return std::ceil(x); }, -9, 9, -kInf, kInf},
      {"round_even", UnaryKind::kRoundEven, 0, 0, [](double x) { return std::nearbyint(x); }, -9, 9, -kInf, kInf},
      {"sin", UnaryKind::kSin, 0, 0, [](double x) { return std::sin(x); }, -3, 3, NAN, NAN},
      {"cos", UnaryKind::kCos, 0, 0, [](double x) { return std::cos(x); }, -1.5f, 1.5f, NAN, NAN},
      {"erf", UnaryKind::kErf, 0, 0, [](double x) { return std::erf(x); }, -4, 4, -1, 1},
      {"gelu", UnaryKind::kGelu, 0, 0, [](double x) { return x / 2 * std::erfc(-x * std::sqrt(0.5)); }, -1, 9, 0, kInf},
      {"gelu_tanh", UnaryKind::kGeluTanh, 0, 0,
       [](double x) { return x / 2 * (1 + std::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x))); }, -1, 9, 0,
       kInf},
      {"softplus", UnaryKind::kSoftplus, 0, 0, [](double x) { return std::log1p(std::exp(x)); }, -80, 80, 0, kInf},
      {"softsign", UnaryKind::kSoftsign, 0, 0, [](double x) { return x / (1 + std::abs(x)); }, -50, 50, -1, 1},
      {"selu", UnaryKind::kSelu, 2, 3, [](double x) { return 3 * (x > 0 ? x : 2 * std::expm1(x)); }, -9, 9, -6, kInf},
      {"celu", UnaryKind::kCelu, 2, 0, [](double x) { return x > 0 ? x : 2 * std::expm1(x / 2); }, -9, 9, -2, kInf},
      {"tan", UnaryKind::kTan, 0, 0, [](double x) { return std::tan(x); }, -1.5f, 1.5f, NAN, NAN},
      {"asin", UnaryKind::kAsin, 0, 0, [](double x) { return std::asin(x); }, -1, 1, NAN, NAN},
      {"acos", UnaryKind::kAcos, 0, 0, [](double x) { return std::acos(x); }, -1, 0.9f, NAN, NAN},
      {"atan", UnaryKind::kAtan, 0, 0, [](double x) { return std::atan(x); }, -9, 9, -1.57079633f, 1.57079633f},
      {"sinh", UnaryKind::kSinh, 0, 0, [](double x) { return std::sinh(x); }, -80, 80, -kInf, kInf},
      {"cosh", UnaryKind::kCosh, 0, 0, [](double x) { return std::cosh(x); }, -80, 80, kInf, kInf},
      {"asinh", UnaryKind::kAsinh, 0, 0, [](double x) { return std::asinh(x); }, -9, 9, -kInf, kInf},
      {"acosh", UnaryKind::kAcosh, 0, 0, [](double x) { return std::acosh(x); }, 1.1f, 1e6f, NAN, kInf},
      {"atanh", UnaryKind::kAtanh, 0, 0, [](double x) { return std::atanh(x); }, -0.99f, 0.99f, NAN, NAN},
  };
}

class PointwiseTest : public CudaTest {
 protected:
  std::vector<float> unary(const UnaryCase& c, const std::vector<float>& x, size_t shift = 0) {
    const Input input(x, shift);
    const Output output(x.size() * sizeof(float), shift);
    launch([&](cudaStream_t stream) {
      return pointwise_unary(ElementType::kF32, c.kind, c.alpha, c.beta, x.size(), input.data(), output.data(), stream);
    });
    return output.get();
  }
};

TEST_F(PointwiseTest, UnaryRelativeErrorOverTheRange) {
  for (const UnaryCase& c : unary_cases()) {
    SCOPED_TRACE(c.name);
    const std::vector<float> x = random_floats(20001, 5, c.lo, c.hi);
    const std::vector<float> y = unary(c, x);
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double e = c.expected(x[i]);
      const double error = std::max(0.0, std::abs(y[i] - e) - 1.5e-45) / std::max(std::abs(e), 1e-300);
      if (!(error <= worst)) {
        worst = error;
        at = i;
      }
    }
    EXPECT_LE(worst, 1e-6) << "at " << x[at] << ": " << y[at] << " instead of " << c.expected(x[at]);
  }
}

TEST_F(PointwiseTest, UnaryLimitsAndNan) {
  for (const UnaryCase& c : unary_cases()) {
    SCOPED_TRACE(c.name);
    const auto y = unary(c, {-kInf, kInf, NAN});
    const auto expect_same = [](float found, double expected) {
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found)) << found;
      } else {
        EXPECT_EQ(found, static_cast<float>(expected));
      }
    };
    expect_same(y[0], c.at_minus_inf);
    expect_same(y[1], c.at_plus_inf);
    EXPECT_TRUE(std::isnan(y[2])) << y[2];
  }
}

// Comparisons with NaN are false.
TEST_F(PointwiseTest, ThresholdsGiveZeroForNan) {
  const std::vector<float> x = {-kInf, -3, -1, NAN, 1, 3, kInf};
  const UnaryCase threshold{"thresholded_relu", UnaryKind::kThresholdedRelu, 1, 0, {}, 0, 0, 0, 0};
  EXPECT_EQ(unary(threshold, x), (std::vector<float>{0, 0, 0, 0, 0, 3, kInf}));
  const UnaryCase shrink{"shrink", UnaryKind::kShrink, 1, 0.5f, {}, 0, 0, 0, 0};
  EXPECT_EQ(unary(shrink, x), (std::vector<float>{-kInf, -2.5f, 0, 0, 0, 2.5f, kInf}));
}

TEST_F(PointwiseTest, UnaryEveryLengthAlignmentAndHalf) {
  const UnaryCase c{"linear", UnaryKind::kLinear, 2, 1, {}, 0, 0, 0, 0};
  for (int count = 0; count <= 19; ++count) {
    std::vector<float> x(count);
    std::iota(x.begin(), x.end(), 0.0f);
    std::vector<double> expected;
    for (const float value : x) expected.push_back(2 * value + 1);
    for (const size_t shift : {0, 4, 8}) EXPECT_EQ(count_mismatches(unary(c, x, shift), expected, 0), 0);
    for (const size_t shift : {0, 2, 8}) {
      const Input input(to_half(x), shift);
      const Output output(count * sizeof(__half), shift);
      launch([&](cudaStream_t stream) {
        return pointwise_unary(ElementType::kF16, c.kind, 2, 1, count, input.data(), output.data(), stream);
      });
      EXPECT_EQ(count_mismatches(to_floats(output.get<__half>()), expected, 0), 0);
    }
  }
  EXPECT_EQ(pointwise_unary(ElementType::kI32, UnaryKind::kAbs, 0, 0, 4, nullptr, nullptr, stream_),
            cudaErrorInvalidValue);
}

double combine(BinaryKind kind, double a, double b) {
  switch (kind) {
    case BinaryKind::kAdd:
      return a + b;
    case BinaryKind::kSub:
      return a - b;
    case BinaryKind::kMul:
      return a * b;
    case BinaryKind::kDiv:
      return a / b;
    case BinaryKind::kMin:
      return std::min(a, b);
    case BinaryKind::kMax:
      return std::max(a, b);
    default:
      return 0;
  }
}

class BinaryTest : public CudaTest {
 protected:
  void check(const std::vector<int64_t>& a_dims, const std::vector<int64_t>& b_dims, size_t shift = 0) {
    SCOPED_TRACE(testing::PrintToString(a_dims) + " " + testing::PrintToString(b_dims));
    BroadcastShape shape;
    ASSERT_TRUE(broadcast_shape(static_cast<int>(a_dims.size()), a_dims.data(), static_cast<int>(b_dims.size()),
                                b_dims.data(), &shape));
    const auto product = [](const std::vector<int64_t>& d) {
      return std::accumulate(d.begin(), d.end(), int64_t{1}, std::multiplies<>());
    };
    const auto a = random_floats(product(a_dims), 1, 0.5f, 2.0f);
    const auto b = random_floats(product(b_dims), 2, 0.5f, 2.0f);
    const int64_t total = product(std::vector<int64_t>(shape.dims, shape.dims + shape.rank));
    const Input da(a, shift);
    const Input db(b, shift);
    for (int kind = 0; kind < 6; ++kind) {
      std::vector<double> expected;
      for (int64_t i = 0; i < total; ++i) {
        int64_t rest = i;
        int64_t ia = 0;
        int64_t ib = 0;
        for (int d = shape.rank - 1; d >= 0; --d) {
          ia += rest % shape.dims[d] * shape.strides[0][d];
          ib += rest % shape.dims[d] * shape.strides[1][d];
          rest /= shape.dims[d];
        }
        expected.push_back(std::max(combine(static_cast<BinaryKind>(kind), a[ia], b[ib]), 0.0));
      }
      const Output y(total * sizeof(float), shift);
      launch([&](cudaStream_t stream) {
        return pointwise_binary(ElementType::kF32, static_cast<BinaryKind>(kind), shape, da.data(), db.data(),
                                Epilogue::relu(), y.data(), stream);
      });
      EXPECT_EQ(count_mismatches(y.get(), expected, 3e-7), 0) << "kind " << kind;
    }
    const Input ha(to_half(a), shift);
    const Input hb(to_half(b), shift);
    const Output y(total * sizeof(__half), shift);
    launch([&](cudaStream_t stream) {
      return pointwise_binary(ElementType::kF16, BinaryKind::kAdd, shape, ha.data(), hb.data(), Epilogue::none(),
                              y.data(), stream);
    });
    std::vector<double> expected;
    for (int64_t i = 0; i < total; ++i) {
      int64_t rest = i;
      int64_t ia = 0;
      int64_t ib = 0;
      for (int d = shape.rank - 1; d >= 0; --d) {
        ia += rest % shape.dims[d] * shape.strides[0][d];
        ib += rest % shape.dims[d] * shape.strides[1][d];
        rest /= shape.dims[d];
      }
      expected.push_back(a[ia] + b[ib]);
    }
    EXPECT_EQ(count_mismatches(to_floats(y.get<__half>()), expected, 1.5e-3), 0) << "half";
  }
};

TEST_F(BinaryTest, Broadcasting) {
  for (const size_t shift : {size_t{0}, size_t{4}}) {
    check({}, {}, shift);
    check({7}, {}, shift);
    check({}, {1, 9}, shift);
    check({3, 5}, {3, 5}, shift);
    check({1003}, {1003}, shift);
    check({2, 5, 4, 8}, {5, 1, 1}, shift);
    check({5, 1, 1}, {2, 5, 4, 7}, shift);
    check({2, 3, 4, 16}, {16}, shift);
    check({2, 3, 4, 17}, {17}, shift);
    check({2, 1, 4, 1}, {1, 3, 1, 5}, shift);
    check({3, 1}, {1, 8}, shift);
    check({2, 1, 2, 1, 2, 1, 2, 3}, {1, 2, 1, 2, 1, 2, 1, 3}, shift);
    check({0, 4}, {1, 4}, shift);
    check({50, 64}, {50, 1}, shift);
  }
}

TEST_F(BinaryTest, GeneralStridesNanAndInPlace) {
  // The transpose of a 2 x 3 matrix, added to a dense 3 x 2 one.
  const Input a(std::vector<float>{1, 2, 3, 4, 5, 6});
  const Input b(std::vector<float>{10, 20, 30, 40, 50, 60});
  BroadcastShape shape;
  shape.rank = 2;
  shape.dims[0] = 3;
  shape.dims[1] = 2;
  shape.strides[0][0] = 1;
  shape.strides[0][1] = 3;
  shape.strides[1][0] = 2;
  shape.strides[1][1] = 1;
  const Output y(6 * sizeof(float));
  launch([&](cudaStream_t stream) {
    return pointwise_binary(ElementType::kF32, BinaryKind::kAdd, shape, a.data(), b.data(), {}, y.data(), stream);
  });
  EXPECT_EQ(y.get(), (std::vector<float>{11, 24, 32, 45, 53, 66}));
  const Input in_place(std::vector<float>{NAN, 1, 2, 3, NAN});
  const Input other(std::vector<float>{1, NAN, 1, 4, NAN});
  BroadcastShape five;
  const int64_t size = 5;
  ASSERT_TRUE(broadcast_shape(1, &size, 1, &size, &five));
  launch([&](cudaStream_t stream) {
    return pointwise_binary(ElementType::kF32, BinaryKind::kMax, five, in_place.data(), other.data(), {},
                            in_place.data(), stream);
  });
  std::vector<float> got(5);
  ASSERT_EQ(cudaMemcpy(got.data(), in_place.data(), 20, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(count_mismatches(got, {NAN, NAN, 2, 4, NAN}, 0), 0);
}

TEST_F(BinaryTest, Integers) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  const std::vector<int64_t> a = {7, -7, 7, -7, least, 5, 3};
  const std::vector<int64_t> b = {2, 2, -2, -2, -1, 0, 3};
  const std::pair<BinaryKind, std::vector<int64_t>> cases[] = {
      {BinaryKind::kAdd, {9, -5, 5, -9, std::numeric_limits<int64_t>::max(), 5, 6}},
      {BinaryKind::kDiv, {3, -3, -3, 3, least, 0, 1}},
      {BinaryKind::kModDivisor, {1, 1, -1, -1, 0, 0, 0}},
      {BinaryKind::kModDividend, {1, -1, 1, -1, 0, 0, 0}},
      {BinaryKind::kMin, {2, -7, -2, -7, least, 0, 3}},
      {BinaryKind::kPRelu, {7, -14, 7, 14, least, 5, 3}}};
  const int64_t size = 7;
  BroadcastShape shape;
  ASSERT_TRUE(broadcast_shape(1, &size, 1, &size, &shape));
  const Input da(a), db(b);
  for (const auto& [kind, expected] : cases) {
    const Output y(7 * sizeof(int64_t));
    const BinaryKind op = kind;
    launch([&](cudaStream_t stream) {
      return integer_binary(ElementType::kI64, op, shape, da.data(), db.data(), y.data(), stream);
    });
    EXPECT_EQ(y.get<int64_t>(), expected) << static_cast<int>(kind);
  }
  EXPECT_EQ(integer_binary(ElementType::kF32, BinaryKind::kAdd, shape, nullptr, nullptr, nullptr, stream_),
            cudaErrorInvalidValue);
}

TEST(Pointwise, BroadcastShapeRefusesWhatDoesNotFit) {
  BroadcastShape shape;
  const int64_t a[] = {2, 3};
  const int64_t b[] = {2, 4};
  EXPECT_FALSE(broadcast_shape(2, a, 2, b, &shape));
  const int64_t many[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_FALSE(broadcast_shape(9, many, 2, b, &shape));
}

TEST_F(PointwiseTest, ChannelAffine) {
  for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
    for (const int64_t c : {0, 1, 3, 8, 17}) {
      for (const int64_t cells : {1, 12, 16, 25}) {
        for (const size_t shift : {size_t{0}, size_t{4}}) {
          const auto x = random_floats(2 * c * cells, 1);
          const auto scale = random_floats(c, 2);
          const auto offset = random_floats(c, 3);
          std::vector<double> expected;
          for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
            const int64_t channel = layout == Layout::kNchw ? i / cells % c : i % c;
            const double v = static_cast<double>(x[i]) * scale[channel] + offset[channel];
            expected.push_back(v > 0 ? v : 0.125 * v);
          }
          const Input dx(x, shift);
          const Input hx(to_half(x), shift);
          const Input dscale(scale);
          const Input doffset(offset);
          const Output y(x.size() * sizeof(float), shift);
          const Output hy(x.size() * sizeof(__half), shift);
          launch([&](cudaStream_t stream) {
            return channel_affine(ElementType::kF32, layout, 2, c, cells, dx.data(), dscale.data(), doffset.data(),
                                  Epilogue::leaky(0.125f), y.data(), stream);
          });
          launch([&](cudaStream_t stream) {
            return channel_affine(ElementType::kF16, layout, 2, c, cells, hx.data(), dscale.data(), doffset.data(),
                                  Epilogue::leaky(0.125f), hy.data(), stream);
          });
          EXPECT_EQ(count_mismatches(y.get(), expected, 1e-6), 0);
          EXPECT_EQ(count_mismatches(to_floats(hy.get<__half>()), expected, 2e-3), 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::cuda
