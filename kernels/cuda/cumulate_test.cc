#include "kernels/cuda/cumulate.h"

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

class CumulateTest : public CudaTest {
 protected:
  template <class T>
  std::vector<T> run(ElementType type, const CumulateShape& s, const std::vector<T>& x) {
    const Input input(x, sizeof(T));
    const Output y(x.size() * sizeof(T), sizeof(T));
    launch([&](cudaStream_t stream) { return cumulate(type, s, input.data(), y.data(), stream); });
    return y.template get<T>();
  }

  // Sums of all elements up to each one, for A = double or int64_t.
  template <class A, class T>
  static std::vector<A> expect(const CumulateShape& s, const std::vector<T>& x) {
    std::vector<A> y;
    for (int64_t n = 0; n < static_cast<int64_t>(x.size()); ++n) {
      const int64_t at = n / s.inner % s.size;
      A sum = s.product ? 1 : 0;
      for (int64_t i = 0; i < s.size; ++i) {
        if (s.reverse ? i < at : i > at) continue;
        if (s.exclusive && i == at) continue;
        const A value = static_cast<A>(x[n + (i - at) * s.inner]);
        sum = s.product ? sum * value : sum + value;
      }
      y.push_back(sum);
    }
    return y;
  }

  void check(const CumulateShape& shape) {
    const int64_t count = shape.outer * shape.size * shape.inner;
    // Halves near 1, so that products keep their size; signs, so that integers keep theirs.
    const auto half = to_half(random_floats(count, 1, 0.95f, 1.05f));
    const auto x = to_floats(half);
    std::vector<int32_t> i32;
    std::vector<int64_t> i64;
    for (int64_t n = 0; n < count; ++n) {
      const int value = shape.product ? (n % 3 == 0 ? -1 : 1) : static_cast<int>(n * 7919 % 201) - 100;
      i32.push_back(value);
      i64.push_back(value * (shape.product ? int64_t{1} : int64_t{1} << 33));
    }
    EXPECT_EQ(count_mismatches(run(ElementType::kF32, shape, x), expect<double>(shape, x), 1e-6), 0);
    EXPECT_EQ(count_mismatches(to_floats(run(ElementType::kF16, shape, half)), expect<double>(shape, x), 1e-3), 0);
    const auto narrow = run(ElementType::kI32, shape, i32);
    EXPECT_EQ(std::vector<int64_t>(narrow.begin(), narrow.end()), expect<int64_t>(shape, i32));
    EXPECT_EQ(run(ElementType::kI64, shape, i64), expect<int64_t>(shape, i64));
  }
};

TEST_F(CumulateTest, GradedShapes) {
  for (const int64_t size : {1, 2, 31, 32, 33, 100, 256, 257, 700}) {
    for (const int64_t inner : {1, 3, 40}) {
      for (const bool exclusive : {false, true}) {
        for (const bool reverse : {false, true}) {
          for (const bool product : {false, true}) check({2, size, inner, exclusive, reverse, product});
        }
      }
      if (HasFailure()) FAIL() << "size " << size << " inner " << inner;
    }
  }
  check({0, 5, 3});
  check({3, 0, 3});
}

TEST_F(CumulateTest, IntegersWrapAround) {
  const CumulateShape s = {1, 2, 1};
  EXPECT_EQ(run(ElementType::kI32, s, std::vector<int32_t>{INT32_MAX, 1}),
            (std::vector<int32_t>{INT32_MAX, INT32_MIN}));
  EXPECT_EQ(cumulate(ElementType::kBool, s, nullptr, nullptr, stream_), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace tenon::cuda
