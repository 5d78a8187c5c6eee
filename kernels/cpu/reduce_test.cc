#include "kernels/cpu/reduce.h"

#include <limits>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

constexpr ReduceKind kKinds[] = {ReduceKind::kSum,  ReduceKind::kMean,  ReduceKind::kMax,       ReduceKind::kMin,
                                 ReduceKind::kL1,   ReduceKind::kL2,    ReduceKind::kLogSumExp, ReduceKind::kSumSquare,
                                 ReduceKind::kProd, ReduceKind::kLogSum};

double fold(ReduceKind kind, const std::vector<double>& x) {
  double sum = 0, magnitudes = 0, squares = 0, product = 1, exponentials = 0, most = -INFINITY, least = INFINITY;
  for (const double v : x) {
    sum += v;
    magnitudes += std::abs(v);
    squares += v * v;
    product *= v;
    exponentials += std::exp(v);
    most = std::max(most, v);
    least = std::min(least, v);
  }
  switch (kind) {
    case ReduceKind::kSum:
      return sum;
    case ReduceKind::kMean:
      return sum / static_cast<double>(x.size());
    case ReduceKind::kMax:
      return most;
    case ReduceKind::kMin:
      return least;
    case ReduceKind::kProd:
      return product;
    case ReduceKind::kL1:
      return magnitudes;
    case ReduceKind::kL2:
      return std::sqrt(squares);
    case ReduceKind::kLogSum:
      return std::log(sum);
    case ReduceKind::kLogSumExp:
      return std::log(exponentials);
    default:
      return squares;
  }
}

void check(const std::vector<int64_t>& dims, unsigned folded_bits) {
  const int rank = static_cast<int>(dims.size());
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  bool folded[kMaxReduceRank] = {};
  for (int axis = 0; axis < rank; ++axis) folded[axis] = (folded_bits >> axis & 1) != 0;
  int64_t outputs = 1;
  for (int axis = 0; axis < rank; ++axis) outputs *= folded[axis] ? 1 : dims[static_cast<size_t>(axis)];
  // Positive values around 1, so that products stay finite and sums have logarithms.
  const std::vector<float> x = random_floats(elements, 3, 0.9f, 1.1f);
  std::vector<std::vector<double>> groups(static_cast<size_t>(outputs));
  for (int64_t n = 0; n < elements; ++n) {
    int64_t rest = n, at = 0, step = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const int64_t dim = dims[static_cast<size_t>(axis)];
      if (!folded[axis]) {
        at += rest % dim * step;
        step *= dim;
      }
      rest /= dim;
    }
    groups[static_cast<size_t>(at)].push_back(static_cast<double>(x[static_cast<size_t>(n)]));
  }
  const Guarded guarded(x);
  for (const ReduceKind kind : kKinds) {
    std::vector<double> expected;
    for (const std::vector<double>& group : groups) expected.push_back(fold(kind, group));
    for (const Isa isa : available_isas()) {
      Buffer one(static_cast<size_t>(outputs) * sizeof(float), 4), three(static_cast<size_t>(outputs) * sizeof(float));
      const ReduceShape shape = reduce_shape(rank, dims.data(), folded);
      reduce(kind, shape, guarded.data(), one.data(), make_parallel(1), isa);
      reduce(kind, shape, guarded.data(), three.data(), make_parallel(3), isa);
      SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << " folded " << folded_bits << " rank "
                                      << rank << " " << isa_name(isa));
      EXPECT_TRUE(one.intact() && three.intact());
      EXPECT_EQ(count_mismatches(one.data(), expected, 3e-6), 0);
      EXPECT_EQ(outputs == 0 ? 0 : std::memcmp(one.data(), three.data(), static_cast<size_t>(outputs) * sizeof(float)),
                0);
    }
  }
}

TEST(Reduce, GradedShapes) {
  for (unsigned folded = 0; folded < 8; ++folded) {
    check({3, 5, 7}, folded);
    check({2, 33, 70}, folded);
    check({5, 1, 300}, folded);
  }
  for (unsigned folded = 0; folded < 32; ++folded) check({2, 3, 4, 5, 6}, folded);
  check({}, 0);
  check({1000}, 1);
  check({70, 600}, 1);
  check({200, 129}, 2);
  check({0, 3}, 1);
  check({3, 0}, 1);
  check({3, 0}, 2);
}

// One float holds 24 bits: adding 1 to a running sum of 2^24 has no effect any more.
TEST(Reduce, LongSumsStayExact) {
  constexpr int64_t kLength = 20'000'003;
  const std::vector<float> ones(kLength, 1.0f);
  const bool folded[] = {true, false};
  for (const Isa isa : available_isas()) {
    float sum = 0;
    const int64_t row[] = {kLength};
    reduce(ReduceKind::kSum, reduce_shape(1, row, folded), ones.data(), &sum, {}, isa);
    EXPECT_NEAR(sum, kLength, 4.0);
    const int64_t columns[] = {kLength / 2, 2};
    std::vector<float> sums(2);
    reduce(ReduceKind::kSum, reduce_shape(2, columns, folded), ones.data(), sums.data(), {}, isa);
    EXPECT_NEAR(sums[0], kLength / 2, 4.0);
  }
}

TEST(Reduce, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const bool folded[] = {true, false};
  for (const Isa isa : available_isas()) {
    for (const int64_t inner : {1, 3}) {
      for (const int64_t length : {3, 40}) {
        std::vector<float> x(static_cast<size_t>(length * inner), -1000.0f);
        std::vector<float> y(static_cast<size_t>(inner));
        const int64_t dims[] = {length, inner};
        const auto first = [&](ReduceKind kind) {
          reduce(kind, reduce_shape(2, dims, folded), x.data(), y.data(), {}, isa);
          return y[0];
        };
        EXPECT_NEAR(first(ReduceKind::kLogSumExp), -1000 + std::log(static_cast<double>(length)), 1e-3);
        x[0] = nan;
        EXPECT_TRUE(std::isnan(first(ReduceKind::kMax)));
        EXPECT_TRUE(std::isnan(first(ReduceKind::kMin)));
        x[0] = inf;
        EXPECT_EQ(first(ReduceKind::kLogSumExp), inf);
        x.assign(x.size(), -inf);
        EXPECT_EQ(first(ReduceKind::kLogSumExp), -inf);
        EXPECT_EQ(first(ReduceKind::kMax), -inf);
      }
    }
  }
}

TEST(ArgExtreme, FirstOfEquals) {
  for (const int64_t outer : {1, 3}) {
    for (const int64_t axis : {1, 2, 15, 16, 17, 100}) {
      for (const int64_t inner : {1, 2, 33, 300}) {
        // Few different values, so that there are equals.
        std::vector<float> x = random_floats(outer * axis * inner, 5, -3, 3);
        for (float& value : x) value = std::round(value);
        if (axis > 2) x[static_cast<size_t>(inner)] = std::numeric_limits<float>::quiet_NaN();
        const Guarded guarded(x);
        for (const bool smallest : {false, true}) {
          std::vector<int64_t> expected;
          for (int64_t o = 0; o < outer; ++o) {
            for (int64_t i = 0; i < inner; ++i) {
              const auto at = [&](int64_t a) { return x[static_cast<size_t>((o * axis + a) * inner + i)]; };
              int64_t best = 0;
              for (int64_t a = 1; a < axis; ++a) {
                if (std::isnan(at(best))) break;
                if (std::isnan(at(a)) || (smallest ? at(a) < at(best) : at(a) > at(best))) best = a;
              }
              expected.push_back(best);
            }
          }
          for (const Isa isa : available_isas()) {
            SCOPED_TRACE(testing::Message() << outer << "," << axis << "," << inner << " " << isa_name(isa));
            std::vector<int64_t> found(expected.size());
            arg_extreme(smallest, outer, axis, inner, guarded.data(), found.data(), make_parallel(3), isa);
            EXPECT_EQ(found, expected);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
