#include "kernels/cpu/pointwise.h"

#include <functional>
#include <limits>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
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
      {"linear", UnaryKind::kLinear, 2, 3, [](double x) { return 2 * x + 3; }, 0, 100, -kInf, kInf},
      {"relu", UnaryKind::kRelu, 0, 0, relu, -100, 100, 0, kInf},
      {"relu6", UnaryKind::kRelu6, 0, 0, [=](double x) { return std::min(relu(x), 6.0); }, -10, 10, 0, 6},
      {"clip", UnaryKind::kClip, -2, 5, [](double x) { return std::clamp(x, -2.0, 5.0); }, -10, 10, -2, 5},
      {"leaky", UnaryKind::kLeakyRelu, 0.25f, 0, [](double x) { return x > 0 ? x : 0.25 * x; }, -10, 10, -kInf, kInf},
      {"leaky0", UnaryKind::kLeakyRelu, 0, 0, relu, -10, 10, 0, kInf},
      {"logistic", UnaryKind::kLogistic, 0, 0, [](double x) { return 1 / (1 + std::exp(-x)); }, -87, 87, 0, 1},
      {"tanh", UnaryKind::kTanh, 0, 0, [](double x) { return std::tanh(x); }, -12, 12, -1, 1},
      {"elu", UnaryKind::kElu, 1, 0, [](double x) { return x > 0 ? x : std::expm1(x); }, -90, 90, -1, kInf},
      {"elu2", UnaryKind::kElu, 0.5f, 0, [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); }, -2, 1, -0.5, kInf},
      {"mish", UnaryKind::kMish, 0, 0, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, -87, 1e3f, 0,
       kInf},
      {"swish", UnaryKind::kSwish, 0, 0, [](double x) { return x / (1 + std::exp(-x)); }, -87, 1e3f, 0, kInf},
      {"hard_swish", UnaryKind::kHardSwish, 0, 0, [=](double x) { return x * std::min(relu(x + 3), 6.0) / 6; }, -2, 20,
       0, kInf},
      {"hard_sigmoid", UnaryKind::kHardSigmoid, 0.25f, 0.5f,
       [](double x) { return std::clamp(0.25 * x + 0.5, 0.0, 1.0); }, -1.5f, 20, 0, 1},
      {"exp", UnaryKind::kExp, 0, 0, [](double x) { return std::exp(x); }, -87, 88.7f, 0, kInf},
      {"log", UnaryKind::kLog, 0, 0, [](double x) { return std::log(x); }, 0, 1e38f, NAN, kInf},
      {"log_near_1", UnaryKind::kLog, 0, 0, [](double x) { return std::log(x); }, 0.25f, 4, NAN, kInf},
      {"log1p", UnaryKind::kLog1p, 0, 0, [](double x) { return std::log1p(x); }, -0.999f, 3, NAN, kInf},
      {"log1p_large", UnaryKind::kLog1p, 0, 0, [](double x) { return std::log1p(x); }, 0, 1e30f, NAN, kInf},
      {"sqrt", UnaryKind::kSqrt, 0, 0, [](double x) { return std::sqrt(x); }, 0, 1e30f, NAN, kInf},
      {"abs", UnaryKind::kAbs, 0, 0, [](double x) { return std::abs(x); }, -9, 9, kInf, kInf},
      {"neg", UnaryKind::kNeg, 0, 0, [](double x) { return -x; }, -9, 9, kInf, -kInf},
      {"reciprocal", UnaryKind::kReciprocal, 0, 0, [](double x) { return 1 / x; }, 1e-30f, 1e3f, 0, 0},
      {"sign", UnaryKind::kSign, 0, 0, [](double x) { return (x > 0) - (x < 0); }, -9, 9, -1, 1},
      {"floor", UnaryKind::kFloor, 0, 0, [](double x) { return std::floor(x); }, -1e3f, 1e3f, -kInf, kInf},
      {"floor_large", UnaryKind::kFloor, 0, 0, [](double x) { return std::floor(x); }, -1e10f, 1e10f, -kInf, kInf},
      {"ceil", UnaryKind::kCeil, 0, 0, [](double x) { return std::ceil(x); }, -1e3f, 1e3f, -kInf, kInf},
      {"ceil_large", UnaryKind::kCeil, 0, 0, [](double x) { return std::ceil(x); }, -1e10f, 1e10f, -kInf, kInf},
      {"round_even", UnaryKind::kRoundEven, 0, 0, [](double x) { return std::nearbyint(x); }, -1e3f, 1e3f, -kInf, kInf},
      {"erf", UnaryKind::kErf, 0, 0, [](double x) { return std::erf(x); }, -5, 5, -1, 1},
      {"gelu", UnaryKind::kGelu, 0, 0, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }, -0.5f, 1e3f,
       0, kInf},
      {"gelu_tanh", UnaryKind::kGeluTanh, 0, 0,
       [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }, -0.5f, 1e3f,
       0, kInf},
      {"softplus", UnaryKind::kSoftplus, 0, 0, [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); }, -87, 1e3f,
       0, kInf},
      {"softsign", UnaryKind::kSoftsign, 0, 0, [](double x) { return x / (1 + std::abs(x)); }, -1e3f, 1e3f, -1, 1},
      {"selu", UnaryKind::kSelu, 1.5f, 2, [](double x) { return 2 * (x > 0 ? x : 1.5 * std::expm1(x)); }, -90, 90, -3,
       kInf},
      {"celu", UnaryKind::kCelu, 2, 0, [](double x) { return x > 0 ? x : 2 * std::expm1(x / 2); }, -90, 90, -2, kInf},
  };
}

TEST(Pointwise, UnaryRelativeErrorOverTheRange) {
  for (const UnaryCase& c : unary_cases()) {
    std::vector<float> x = random_floats(200000, 5, c.lo, c.hi);
    // Small magnitudes of both signs, down to denormals, where the range has them.
    for (double tiny = 1.4e-45; tiny < 1; tiny *= 1.7) {
      for (const double value : {tiny, -tiny}) {
        if (value > c.lo && value < c.hi) x.push_back(static_cast<float>(value));
      }
    }
    for (const Isa isa : available_isas()) {
      SCOPED_TRACE(testing::Message() << c.name << " " << isa_name(isa));
      Buffer y(x.size() * sizeof(float), 4);
      pointwise_unary(c.kind, c.alpha, c.beta, x.size(), x.data(), y.data(), make_parallel(2), isa);
      EXPECT_TRUE(y.intact());
      double worst = 0;
      size_t at = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double e = c.expected(x[i]);
        // One step of the smallest denormal is allowed on top of the relative error.
        const double error = std::max(0.0, std::abs(y[i] - e) - 1.5e-45) / std::max(std::abs(e), 1e-300);
        if (!(error <= worst)) {
          worst = error;
          at = i;
        }
      }
      EXPECT_LE(worst, 5e-7) << "at " << x[at] << ": " << y[at] << " instead of " << c.expected(x[at]);
    }
  }
}

TEST(Pointwise, UnaryLimitsNanAndEveryLength) {
  for (const UnaryCase& c : unary_cases()) {
    for (const Isa isa : available_isas()) {
      SCOPED_TRACE(testing::Message() << c.name << " " << isa_name(isa));
      const float special[] = {-kInf, kInf, NAN};
      float y[3];
      pointwise_unary(c.kind, c.alpha, c.beta, 3, special, y, {}, isa);
      if (std::isnan(c.at_minus_inf)) {
        EXPECT_TRUE(std::isnan(y[0])) << y[0];
      } else {
        EXPECT_EQ(y[0], static_cast<float>(c.at_minus_inf));
      }
      EXPECT_EQ(y[1], static_cast<float>(c.at_plus_inf));
      EXPECT_TRUE(std::isnan(y[2])) << y[2];
      const auto x = random_floats(40, 6, 0.5f, 1.0f);
      std::vector<float> whole(40);
      pointwise_unary(c.kind, c.alpha, c.beta, 40, x.data(), whole.data(), {}, isa);
      for (int64_t count = 0; count <= 40; ++count) {
        const Guarded start(std::vector<float>(x.begin(), x.begin() + count));
        Buffer part(count * sizeof(float), 4);
        pointwise_unary(c.kind, c.alpha, c.beta, count, start.data(), part.data(), {}, isa);
        EXPECT_TRUE(part.intact());
        EXPECT_EQ(std::memcmp(part.data(), whole.data(), count * sizeof(float)), 0);
      }
    }
  }
}

TEST(Pointwise, ExpOverAndUnderflowsGradually) {
  for (const Isa isa : available_isas()) {
    const float x[] = {89, 1000, -103.5f, -104.5f, -1000, 88.72f, -100};
    float y[7];
    pointwise_unary(UnaryKind::kExp, 0, 0, 7, x, y, {}, isa);
    EXPECT_EQ(y[0], kInf);
    EXPECT_EQ(y[1], kInf);
    EXPECT_NEAR(y[2], std::exp(-103.5), 1.5e-45);
    EXPECT_EQ(y[3], 0);
    EXPECT_EQ(y[4], 0);
    EXPECT_NEAR(y[5] / std::exp(88.72f), 1, 5e-7);
    EXPECT_NEAR(y[6], std::exp(-100.0), 1.5e-45);
    const float zero[] = {0.0f, -0.0f};
    pointwise_unary(UnaryKind::kLog, 0, 0, 2, zero, y, {}, isa);
    EXPECT_EQ(y[0], -kInf);
    EXPECT_EQ(y[1], -kInf);
  }
}

// Values between the integers and at them, by hand.
TEST(Pointwise, RoundingTiesSignsAndThresholds) {
  const float x[] = {-2.5f, -1.5f, -0.5f, -0.0f, 0.5f, 1.5f, 2.5f, 8388609.0f};
  const std::vector<std::pair<UnaryKind, std::vector<float>>> cases = {
      {UnaryKind::kRoundEven, {-2, -2, 0, 0, 0, 2, 2, 8388609}},
      {UnaryKind::kFloor, {-3, -2, -1, 0, 0, 1, 2, 8388609}},
      {UnaryKind::kCeil, {-2, -1, 0, 0, 1, 2, 3, 8388609}},
      {UnaryKind::kThresholdedRelu, {0, 0, 0, 0, 0, 0, 2.5f, 8388609}},    // alpha 1.5
      {UnaryKind::kShrink, {-2.25f, 0, 0, 0, 0, 0, 2.25f, 8388608.75f}}};  // alpha 1.5, beta 0.25
  for (const Isa isa : available_isas()) {
    for (const auto& [kind, expected] : cases) {
      std::vector<float> y(8);
      pointwise_unary(kind, 1.5f, 0.25f, 8, x, y.data(), {}, isa);
      for (int i = 0; i < 7; ++i) EXPECT_EQ(y[i], expected[i]) << static_cast<int>(kind) << " at " << x[i];
      EXPECT_EQ(y[7], static_cast<float>(expected[7]));
      const float nan = NAN;
      if (kind != UnaryKind::kThresholdedRelu && kind != UnaryKind::kShrink) continue;
      pointwise_unary(kind, 1.5f, 0.25f, 1, &nan, y.data(), {}, isa);
      EXPECT_EQ(y[0], 0);
    }
    float y[8];
    pointwise_unary(UnaryKind::kRoundEven, 0, 0, 8, x, y, {}, isa);
    EXPECT_TRUE(std::signbit(y[2]) && std::signbit(y[3]) && !std::signbit(y[4]));
  }
}

TEST(Pointwise, SinAndCos) {
  std::vector<float> x = random_floats(100000, 4, -1000, 1000);
  for (int n = -600; n <= 600; ++n) x.push_back(static_cast<float>(n * M_PI_2));  // near the zeros
  for (const float value : {0.0f, -0.0f, 1e-30f, 0.5f}) x.push_back(value);
  const std::vector<float> far = {1e6f, -3e9f, 1.0f, kInf, NAN};
  for (const UnaryKind kind : {UnaryKind::kSin, UnaryKind::kCos}) {
    const auto expected = [&](float v) { return kind == UnaryKind::kSin ? std::sin(double{v}) : std::cos(double{v}); };
    for (const Isa isa : available_isas()) {
      std::vector<float> y(x.size());
      pointwise_unary(kind, 0, 0, static_cast<int64_t>(x.size()), x.data(), y.data(), make_parallel(2), isa);
      double worst = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        worst = std::max(
            worst, std::abs(static_cast<double>(y[i]) - expected(x[i])) / std::max(std::abs(expected(x[i])), 1e-6));
      }
      EXPECT_LE(worst, 5e-7) << isa_name(isa);
      pointwise_unary(kind, 0, 0, 5, far.data(), y.data(), {}, isa);
      for (int i = 0; i < 3; ++i) EXPECT_NEAR(y[i], expected(far[i]), 1e-6) << far[i];
      EXPECT_TRUE(std::isnan(y[3]) && std::isnan(y[4]));
    }
  }
}

TEST(Pointwise, MapAppliesAScalarFunction) {
  const std::vector<float> x = random_floats(10000, 3);
  std::vector<float> y(x.size());
  pointwise_map([](float v) { return v + 1; }, static_cast<int64_t>(x.size()), x.data(), y.data(), make_parallel(3));
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] + 1);
}

double apply(BinaryKind kind, float a, float b) {
  if (kind == BinaryKind::kAdd) return static_cast<double>(a) + b;
  if (kind == BinaryKind::kSub) return static_cast<double>(a) - b;
  if (kind == BinaryKind::kMul) return static_cast<double>(a) * b;
  if (kind == BinaryKind::kDiv) return static_cast<double>(a) / b;
  if (kind == BinaryKind::kMin) return std::min(a, b);
  if (kind == BinaryKind::kPRelu) return a < 0 ? static_cast<double>(a) * b : a;
  return std::max(a, b);
}

int64_t volume(const std::vector<int64_t>& dims) {
  int64_t result = 1;
  for (const int64_t d : dims) result *= d;
  return result;
}

void check_binary(const std::vector<int64_t>& a_dims, const std::vector<int64_t>& b_dims) {
  BroadcastShape shape;
  ASSERT_TRUE(broadcast_shape(a_dims.size(), a_dims.data(), b_dims.size(), b_dims.data(), &shape));
  const Guarded a(random_floats(volume(a_dims), 1, -2, 2));
  const Guarded b(random_floats(volume(b_dims), 2, 0.5f, 2));
  const std::vector<int64_t> dims(shape.dims, shape.dims + shape.rank);
  for (int kind = 0; kind < 7; ++kind) {
    std::vector<double> expected;
    for (int64_t i = 0; i < volume(dims); ++i) {
      int64_t rest = i;
      int64_t ai = 0, bi = 0, as = 1, bs = 1;
      for (int d = shape.rank - 1; d >= 0; --d) {
        const int64_t index = rest % dims[d];
        rest /= dims[d];
        const int ad = d - (shape.rank - static_cast<int>(a_dims.size()));
        const int bd = d - (shape.rank - static_cast<int>(b_dims.size()));
        if (ad >= 0) ai += a_dims[ad] == 1 ? 0 : index * as, as *= a_dims[ad];
        if (bd >= 0) bi += b_dims[bd] == 1 ? 0 : index * bs, bs *= b_dims[bd];
      }
      expected.push_back(apply(static_cast<BinaryKind>(kind), a[ai], b[bi]));
    }
    for (const Isa isa : available_isas()) {
      for (const int threads : {1, 2, 3}) {
        Buffer y(expected.size() * sizeof(float), 4);
        pointwise_binary(static_cast<BinaryKind>(kind), shape, a.data(), b.data(), y.data(), make_parallel(threads),
                         isa);
        EXPECT_TRUE(y.intact());
        EXPECT_EQ(count_mismatches(y.data(), expected, 1e-7), 0) << "kind " << kind << " " << isa_name(isa);
      }
    }
  }
}

TEST(Pointwise, BinaryBroadcasting) {
  check_binary({}, {});
  check_binary({7}, {});
  check_binary({}, {1, 9});
  check_binary({3, 5}, {3, 5});
  check_binary({2, 5, 4, 7}, {5, 1, 1});
  check_binary({5, 1, 1}, {2, 5, 4, 7});
  check_binary({2, 3, 4, 17}, {17});
  check_binary({2, 1, 4, 1}, {1, 3, 1, 5});
  check_binary({3, 1}, {1, 4});
  check_binary({2, 1, 2, 1, 2, 1, 2, 3}, {1, 2, 1, 2, 1, 2, 1, 3});
  check_binary({0, 4}, {1, 4});
  check_binary({100, 1000}, {100, 1000});
  check_binary({100, 1000}, {100, 1});
}

TEST(Pointwise, BinaryGeneralStridesAndNan) {
  // The transpose of a 2 x 3 matrix, added to a dense 3 x 2 one.
  const float a[] = {1, 2, 3, 4, 5, 6};
  const float b[] = {10, 20, 30, 40, 50, 60};
  BroadcastShape shape;
  shape.rank = 2;
  shape.dims[0] = 3;
  shape.dims[1] = 2;
  shape.strides[0][0] = 1;
  shape.strides[0][1] = 3;
  shape.strides[1][0] = 2;
  shape.strides[1][1] = 1;
  const float nan_first[] = {NAN, 1};
  const float nan_second[] = {1, NAN};
  for (const Isa isa : available_isas()) {
    float y[6];
    pointwise_binary(BinaryKind::kAdd, shape, a, b, y, {}, isa);
    EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{11, 24, 32, 45, 53, 66}));
    BroadcastShape pair;
    const int64_t two = 2;
    ASSERT_TRUE(broadcast_shape(1, &two, 1, &two, &pair));
    for (const BinaryKind kind : {BinaryKind::kMin, BinaryKind::kMax}) {
      pointwise_binary(kind, pair, nan_first, nan_second, y, {}, isa);
      EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
    }
  }
}

TEST(Pointwise, Pow) {
  const std::vector<float> a = {-kInf, -3, -0.0f, 0, 0.25f, 2, kInf, NAN};
  for (const float exponent : {2.0f, 0.5f, 3.0f, -1.0f, 0.0f}) {
    BroadcastShape shape;
    const int64_t count = 8;
    ASSERT_TRUE(broadcast_shape(1, &count, 0, nullptr, &shape));
    std::vector<double> expected;
    for (const float x : a) expected.push_back(std::pow(static_cast<double>(x), static_cast<double>(exponent)));
    for (const Isa isa : available_isas()) {
      std::vector<float> y(a.size());
      pointwise_pow(shape, a.data(), &exponent, y.data(), make_parallel(2), isa);
      EXPECT_EQ(count_mismatches(y.data(), expected, 1e-6), 0) << exponent;
      EXPECT_FALSE(exponent == 0.5f && std::signbit(y[2]));
    }
  }
}

TEST(Pointwise, BroadcastShapeRefusesWhatDoesNotFit) {
  BroadcastShape shape;
  const int64_t a[] = {2, 3};
  const int64_t b[] = {2, 4};
  EXPECT_FALSE(broadcast_shape(2, a, 2, b, &shape));
  const int64_t many[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_FALSE(broadcast_shape(9, many, 2, b, &shape));
}

}  // namespace
}  // namespace tenon::cpu
