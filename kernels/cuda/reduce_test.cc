#include "kernels/cuda/reduce.h"

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

constexpr ReduceKind kKinds[] = {ReduceKind::kSum,       ReduceKind::kMean,     ReduceKind::kMax, ReduceKind::kMin,
                                 ReduceKind::kProd,      ReduceKind::kL1,       ReduceKind::kL2,  ReduceKind::kLogSum,
                                 ReduceKind::kLogSumExp, ReduceKind::kSumSquare};

double fold(ReduceKind kind, const std::vector<double>& list) {
  double sum = 0, product = 1, magnitudes = 0, squares = 0, exponentials = 0, least = INFINITY, most = -INFINITY;
  for (const double x : list) {
    sum += x, product *= x, magnitudes += std::abs(x), squares += x * x, exponentials += std::exp(x);
    least = std::min(least, x), most = std::max(most, x);
  }
  switch (kind) {
    case ReduceKind::kSum:
      return sum;
    case ReduceKind::kMean:
      return sum / static_cast<double>(list.size());
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
    case ReduceKind::kSumSquare:
      return squares;
  }
  return NAN;
}

int64_t product(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

// One result for each output, by walking the input in order.
std::vector<double> expect(ReduceKind kind, const std::vector<int64_t>& dims, const std::vector<char>& folded,
                           const std::vector<double>& x) {
  std::vector<int64_t> kept;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (!folded[axis]) kept.push_back(dims[axis]);
  }
  std::vector<std::vector<double>> lists(product(kept));
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), at = 0, step = 1;
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (!folded[axis]) {
        at += rest % dims[axis] * step;
        step *= dims[axis];
      }
      rest /= dims[axis];
    }
    lists[at].push_back(x[i]);
  }
  std::vector<double> result;
  for (const auto& list : lists) result.push_back(fold(kind, list));
  return result;
}

class ReduceTest : public CudaTest {
 protected:
  template <class T>
  std::vector<T> run(ElementType type, ReduceKind kind, const std::vector<int64_t>& dims,
                     const std::vector<char>& folded, const std::vector<T>& x, const Epilogue& epilogue = {}) {
    int64_t outputs = 1;
    for (size_t axis = 0; axis < dims.size(); ++axis) outputs *= folded[axis] ? 1 : dims[axis];
    const Input input(x, sizeof(T));
    const Output y(outputs * sizeof(T), sizeof(T));
    launch([&](cudaStream_t stream) {
      return reduce(type, kind, static_cast<int>(dims.size()), dims.data(),
                    reinterpret_cast<const bool*>(folded.data()), input.data(), epilogue, y.data(), stream);
    });
    return y.template get<T>();
  }

  void check(const std::vector<int64_t>& dims, const std::vector<char>& folded) {
    const int64_t count = product(dims);
    // Near 1, so that products stay small; all positive, so that log(sum) is a number.
    const auto x = random_floats(count, 7, 0.9f, 1.1f);
    const auto half = to_half(x);
    const auto halves = to_floats(half);
    const auto integers = [&](auto zero) {
      std::vector<decltype(zero)> values;
      for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<decltype(zero)>(i * 7919 % 13 - 6));
      return values;
    };
    const auto i32 = integers(int32_t{});
    const auto i64 = integers(int64_t{});
    for (const ReduceKind kind : kKinds) {
      const auto got = run(ElementType::kF32, kind, dims, folded, x);
      EXPECT_EQ(count_mismatches(got, expect(kind, dims, folded, {x.begin(), x.end()}), 2e-5), 0);
      const auto got_half = to_floats(run(ElementType::kF16, kind, dims, folded, half));
      auto expected = expect(kind, dims, folded, {halves.begin(), halves.end()});
      for (double& value : expected) {
        if (std::abs(value) > 65504) value = INFINITY;
      }
      EXPECT_EQ(count_mismatches(got_half, expected, 1e-3), 0);
      if (HasFailure()) FAIL() << "kind " << static_cast<int>(kind);
      // Products of many integers and the mean of none have no exact value in double.
      if (!reduce_supports(ElementType::kI32, kind) || kind == ReduceKind::kProd) continue;
      const auto exact = expect(kind, dims, folded, {i64.begin(), i64.end()});
      const auto narrow = run(ElementType::kI32, kind, dims, folded, i32);
      const auto wide = run(ElementType::kI64, kind, dims, folded, i64);
      for (size_t i = 0; i < exact.size(); ++i) {
        ASSERT_EQ(narrow[i], static_cast<int32_t>(exact[i])) << "kind " << static_cast<int>(kind) << " output " << i;
        ASSERT_EQ(wide[i], static_cast<int64_t>(exact[i])) << "kind " << static_cast<int>(kind) << " output " << i;
      }
    }
  }
};

TEST_F(ReduceTest, Rows) {
  for (const int64_t length : {1, 2, 3, 31, 33, 64, 100, 257, 1000, 5000}) check({5, length}, {0, 1});
  check({1, 70000}, {0, 1});
  check({3000, 7}, {0, 1});
  check({70000, 33}, {0, 1});
}

TEST_F(ReduceTest, Columns) {
  for (const int64_t length : {1, 2, 3, 17, 40, 300}) check({length, 37}, {1, 0});
  check({2000, 2}, {1, 0});
  check({300, 1000}, {1, 0});
  check({4, 50, 70}, {0, 1, 0});
}

TEST_F(ReduceTest, OtherAxes) {
  check({}, {});
  check({7}, {0});
  check({7}, {1});
  check({2, 3, 4}, {1, 1, 1});
  check({2, 3, 4}, {0, 0, 0});
  check({5, 6, 7}, {1, 0, 1});
  check({5, 6, 7, 8}, {0, 1, 0, 1});
  check({3, 2, 3, 2, 3, 2, 3, 2}, {1, 0, 1, 0, 1, 0, 1, 0});
  check({3, 2, 3, 2, 3, 2, 3, 2}, {0, 1, 0, 1, 0, 1, 0, 1});
  check({1, 6, 1, 9, 1}, {1, 0, 0, 1, 1});
}

TEST_F(ReduceTest, NothingToFold) {
  const std::vector<float> none;
  const auto of = [&](ReduceKind kind) { return run(ElementType::kF32, kind, {3, 0}, {0, 1}, none); };
  const auto all = [](float value) { return std::vector<float>(3, value); };
  EXPECT_EQ(of(ReduceKind::kSum), all(0));
  EXPECT_EQ(of(ReduceKind::kProd), all(1));
  EXPECT_EQ(of(ReduceKind::kMax), all(-INFINITY));
  EXPECT_EQ(of(ReduceKind::kMin), all(INFINITY));
  EXPECT_EQ(of(ReduceKind::kLogSum), all(-INFINITY));
  EXPECT_EQ(of(ReduceKind::kLogSumExp), all(-INFINITY));
  EXPECT_TRUE(std::isnan(of(ReduceKind::kMean)[0]));
  EXPECT_EQ(run(ElementType::kI32, ReduceKind::kMax, {1, 0}, {0, 1}, std::vector<int32_t>()),
            std::vector<int32_t>{INT32_MIN});
  EXPECT_EQ(run(ElementType::kI64, ReduceKind::kMin, {1, 0}, {0, 1}, std::vector<int64_t>()),
            std::vector<int64_t>{INT64_MAX});
  EXPECT_TRUE(run(ElementType::kF32, ReduceKind::kSum, {0, 3}, {0, 1}, none).empty());
}

TEST_F(ReduceTest, SpecialValues) {
  for (const int64_t length : {3, 100, 3000}) {
    std::vector<float> x(length, -INFINITY);
    const auto of = [&](ReduceKind kind) { return run(ElementType::kF32, kind, {length}, {1}, x)[0]; };
    EXPECT_EQ(of(ReduceKind::kLogSumExp), -INFINITY);
    x[1] = 1000.0f;
    EXPECT_EQ(of(ReduceKind::kLogSumExp), 1000.0f);
    x[2] = NAN;
    for (const ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kSum, ReduceKind::kLogSumExp}) {
      EXPECT_TRUE(std::isnan(of(kind)));
    }
  }
  // Integers wrap around.
  EXPECT_EQ(run(ElementType::kI32, ReduceKind::kSum, {2}, {1}, std::vector<int32_t>{INT32_MAX, 1})[0], INT32_MIN);
  EXPECT_EQ(run(ElementType::kI64, ReduceKind::kSum, {2}, {1}, std::vector<int64_t>{INT64_MAX, 1})[0], INT64_MIN);
  EXPECT_EQ(run(ElementType::kI32, ReduceKind::kProd, {3}, {1}, std::vector<int32_t>{-3, 5, 7})[0], -105);
  EXPECT_EQ(run(ElementType::kI32, ReduceKind::kMean, {3}, {1}, std::vector<int32_t>{-3, -2, -3})[0], -2);
}

TEST_F(ReduceTest, Epilogue) {
  const std::vector<float> x = {1, 2, -4, 3};
  EXPECT_EQ(run(ElementType::kF32, ReduceKind::kSum, {2, 2}, {0, 1}, x, Epilogue::relu()), (std::vector<float>{3, 0}));
}

TEST_F(ReduceTest, Refusals) {
  const int64_t dims[] = {1};
  const bool folded[] = {true};
  const auto error = [&](ElementType type, ReduceKind kind) {
    return reduce(type, kind, 1, dims, folded, nullptr, {}, nullptr, stream_);
  };
  EXPECT_EQ(error(ElementType::kI32, ReduceKind::kL2), cudaErrorInvalidValue);
  EXPECT_EQ(error(ElementType::kF64, ReduceKind::kSum), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace tenon::cuda
