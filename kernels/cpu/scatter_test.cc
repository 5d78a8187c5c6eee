#include "kernels/cpu/scatter.h"

#include <cmath>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

std::vector<float> numbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 2654435761u >> 20 & 255) - 128;
  return values;
}

float apply(Reduction reduction, float y, float u) {
  switch (reduction) {
    case Reduction::kAdd:
      return y + u;
    case Reduction::kMul:
      return y * u;
    case Reduction::kMin:
      return std::min(y, u);
    case Reduction::kMax:
      return std::max(y, u);
    default:
      return u;
  }
}

constexpr Reduction kAll[] = {Reduction::kNone, Reduction::kAdd, Reduction::kMul, Reduction::kMin, Reduction::kMax};

// The order of updates of one place shows in the result of kNone, and in the roundings of the others.
void check(int64_t tuples, int64_t positions, int64_t inner) {
  GatherShape shape;
  shape.tuples = tuples;
  shape.inner = inner;
  shape.sizes[0] = positions;
  std::vector<int64_t> indices;
  for (int64_t n = 0; n < tuples; ++n) indices.push_back(n * 7919 % positions - (n % 2 != 0 ? positions : 0));
  const std::vector<float> data = numbers(positions * inner), updates = numbers(tuples * inner);
  for (const Reduction reduction : kAll) {
    std::vector<float> expected = data;
    for (int64_t n = 0; n < tuples * inner; ++n) {
      const int64_t index = indices[static_cast<size_t>(n / inner)];
      float& y = expected[static_cast<size_t>((index < 0 ? index + positions : index) * inner + n % inner)];
      y = apply(reduction, y, updates[static_cast<size_t>(n)]);
    }
    for (const int threads : {1, 3}) {
      Buffer output(data.size() * sizeof(float));
      std::copy(data.begin(), data.end(), output.data());
      scatter(shape, reduction, {indices.data(), true}, updates.data(), output.data(), make_parallel(threads));
      EXPECT_TRUE(output.intact());
      // Long products overflow, and infinity times 0 is NaN.
      const auto same = [](float e, float y) { return e == y || (std::isnan(e) && std::isnan(y)); };
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), output.data(), same))
          << tuples << " " << positions << " " << inner << " reduction " << static_cast<int>(reduction);
    }
  }
}

TEST(Scatter, TuplesAndRuns) {
  check(5, 3, 1);
  check(1, 1, 1);
  check(0, 3, 4);
  check(3, 3, 0);
  check(30000, 100, 1);
  check(300, 70, 500);
  check(20, 5000, 3);
}

TEST(Scatter, Elements) {
  // Axis 1 of [2,3,2]; two updates of one place in each lane.
  const int64_t dims[] = {2, 3, 2}, index_dims[] = {2, 2, 1};
  const std::vector<int32_t> indices = {2, -1, 0, 0};
  const std::vector<int64_t> updates = {10, 20, 30, 40};
  std::vector<int64_t> y = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  scatter_elements(3, 1, dims, index_dims, Reduction::kAdd, {indices.data(), false}, updates.data(), y.data(),
                   make_parallel(3));
  EXPECT_EQ(y, (std::vector<int64_t>{0, 1, 2, 3, 34, 5, 76, 7, 8, 9, 10, 11}));
  scatter_elements(3, 1, dims, index_dims, Reduction::kNone, {indices.data(), false}, updates.data(), y.data(),
                   Parallel());
  EXPECT_EQ(y, (std::vector<int64_t>{0, 1, 2, 3, 20, 5, 40, 7, 8, 9, 10, 11}));
}

TEST(Scatter, Wraps) {
  EXPECT_EQ(reduce<int8_t>(Reduction::kAdd, 127, 1), -128);
  EXPECT_EQ(reduce<uint16_t>(Reduction::kMul, 65535, 65535), 1);
  EXPECT_EQ(reduce<int64_t>(Reduction::kMul, INT64_MIN, -1), INT64_MIN);
  EXPECT_TRUE(std::isnan(reduce<float>(Reduction::kMax, NAN, 1)));
  EXPECT_TRUE(std::isnan(reduce<float>(Reduction::kMin, 1, NAN)));
}

}  // namespace
}  // namespace tenon::cpu
