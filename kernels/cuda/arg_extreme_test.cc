#include "kernels/cuda/arg_extreme.h"

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

using ArgExtremeTest = CudaTest;

template <class T>
std::vector<int64_t> expect_places(bool smallest, bool last, int64_t axis, int64_t inner, const std::vector<T>& x) {
  std::vector<int64_t> places;
  for (int64_t list = 0; list < static_cast<int64_t>(x.size()) / axis; ++list) {
    const auto value = [&](int64_t i) {
      const double v = static_cast<double>(x[(list / inner * axis + i) * inner + list % inner]);
      return std::isnan(v) ? INFINITY : smallest ? -v : v;
    };
    int64_t best = 0;
    for (int64_t i = 1; i < axis; ++i) {
      if (value(i) > value(best) || (last && value(i) == value(best))) best = i;
    }
    places.push_back(best);
  }
  return places;
}

TEST_F(ArgExtremeTest, GradedShapes) {
  for (const int64_t axis : {1, 2, 5, 33, 300, 3000}) {
    for (const int64_t inner : {1, 3, 40}) {
      for (const bool smallest : {false, true}) {
        for (const bool last : {false, true}) {
          // Few values, so that many are equal.
          auto x = random_floats(3 * axis * inner, 3, -3, 3);
          for (float& value : x) value = std::round(value);
          if (axis == 33) x[7 * inner] = x[9 * inner] = NAN;
          const auto run = [&](ElementType type, const auto& values) {
            using T = std::decay_t<decltype(values[0])>;
            const Input input(values, sizeof(T));
            const Output y(3 * inner * sizeof(int64_t));
            launch([&](cudaStream_t stream) {
              return arg_extreme(type, smallest, last, 3, axis, inner, input.data(), y.data<int64_t>(), stream);
            });
            return y.template get<int64_t>();
          };
          EXPECT_EQ(run(ElementType::kF32, x), expect_places(smallest, last, axis, inner, x));
          EXPECT_EQ(run(ElementType::kF16, to_half(x)), expect_places(smallest, last, axis, inner, x));
          for (float& value : x) value = std::isnan(value) ? 0.0f : value;
          const std::vector<int32_t> i32(x.begin(), x.end());
          const std::vector<int64_t> i64(x.begin(), x.end());
          EXPECT_EQ(run(ElementType::kI32, i32), expect_places(smallest, last, axis, inner, i32));
          EXPECT_EQ(run(ElementType::kI64, i64), expect_places(smallest, last, axis, inner, i64));
        }
      }
    }
  }
}

TEST_F(ArgExtremeTest, Refusals) {
  EXPECT_EQ(arg_extreme(ElementType::kBool, false, false, 1, 1, 1, nullptr, nullptr, stream_), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace tenon::cuda
