#include "kernels/cpu/top_k.h"

#include <numeric>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

// Few different values, so that there are many equals.
void check(int64_t outer, int64_t size, int64_t inner, int64_t k, bool largest) {
  TopKShape shape;
  shape.outer = outer;
  shape.size = size;
  shape.inner = inner;
  shape.k = k;
  shape.largest = largest;
  std::vector<float> input(static_cast<size_t>(outer * size * inner));
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i * 2654435761u >> 22) - 500;
  std::vector<float> values(static_cast<size_t>(outer * k * inner));
  std::vector<int64_t> indices(values.size());
  for (int64_t lane = 0; lane < outer * inner; ++lane) {
    const int64_t from = lane / inner * size * inner + lane % inner, to = lane / inner * k * inner + lane % inner;
    std::vector<int64_t> order(static_cast<size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const float x = input[static_cast<size_t>(from + a * inner)], y = input[static_cast<size_t>(from + b * inner)];
      return largest ? x > y : x < y;
    });
    for (int64_t n = 0; n < k; ++n) {
      indices[static_cast<size_t>(to + n * inner)] = order[static_cast<size_t>(n)];
      values[static_cast<size_t>(to + n * inner)] =
          input[static_cast<size_t>(from + order[static_cast<size_t>(n)] * inner)];
    }
  }
  for (const int threads : {1, 3}) {
    Buffer found_values(values.size() * sizeof(float)), found_indices(indices.size() * sizeof(int64_t));
    Buffer workspace(top_k_workspace(shape, threads));
    top_k(shape, input.data(), found_values.data(), found_indices.data<int64_t>(), workspace.data<void>(),
          make_parallel(threads));
    EXPECT_TRUE(found_values.intact() && found_indices.intact() && workspace.intact());
    EXPECT_TRUE(std::equal(values.begin(), values.end(), found_values.data())) << size << " " << k;
    EXPECT_TRUE(std::equal(indices.begin(), indices.end(), found_indices.data<int64_t>())) << size << " " << k;
  }
}

TEST(TopK, Lanes) {
  for (const bool largest : {false, true}) {
    check(1, 1, 1, 1, largest);
    check(3, 10, 4, 10, largest);
    check(2, 5000, 1, 1, largest);
    check(2, 5000, 3, 40, largest);
    check(1, 5000, 1, 4900, largest);
    check(5, 7, 2, 0, largest);
    check(0, 7, 2, 3, largest);
  }
}

TEST(TopK, SpecialValues) {
  TopKShape shape;
  shape.size = 6;
  shape.k = 6;
  const std::vector<float> input = {-0.0f, 0.0f, NAN, -INFINITY, INFINITY, -NAN};
  std::vector<float> values(6);
  std::vector<int64_t> indices(6);
  std::vector<uint64_t> workspace(top_k_workspace(shape, 1) / 8);
  top_k(shape, input.data(), values.data(), indices.data(), workspace.data(), Parallel());
  EXPECT_EQ(indices, (std::vector<int64_t>{2, 5, 4, 0, 1, 3}));
  shape.largest = false;
  top_k(shape, input.data(), values.data(), indices.data(), workspace.data(), Parallel());
  EXPECT_EQ(indices, (std::vector<int64_t>{3, 0, 1, 4, 2, 5}));
  EXPECT_TRUE(std::signbit(values[1]) && !std::signbit(values[2]));
}

// Infinity is smaller than NaN, also where the best so far are NaNs.
TEST(TopK, MostAreNan) {
  TopKShape shape;
  shape.size = 500;
  shape.k = 2;
  shape.largest = false;
  std::vector<float> input(500, NAN), values(2);
  input[300] = INFINITY;
  std::vector<int64_t> indices(2);
  std::vector<uint64_t> workspace(top_k_workspace(shape, 1) / 8);
  top_k(shape, input.data(), values.data(), indices.data(), workspace.data(), Parallel());
  EXPECT_EQ(indices, (std::vector<int64_t>{300, 0}));
  input[301] = 1;
  input[499] = -1;
  top_k(shape, input.data(), values.data(), indices.data(), workspace.data(), Parallel());
  EXPECT_EQ(indices, (std::vector<int64_t>{499, 301}));
  shape.largest = true;
  top_k(shape, input.data(), values.data(), indices.data(), workspace.data(), Parallel());
  EXPECT_EQ(indices, (std::vector<int64_t>{0, 1}));
}

}  // namespace
}  // namespace tenon::cpu
