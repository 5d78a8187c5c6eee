// Expected values by hand, and from numpy's stable argsort.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

class TopKTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("top_k")); }
  // Values and indices, through the reference and all kernels.
  template <class T>
  void expect(const Dims& dims, const std::vector<T>& x, int64_t axis, int64_t k, int64_t largest, const Dims& y,
              const std::vector<double>& values, const std::vector<double>& indices) {
    for (int output = 0; output < 2; ++output) {
      OpTester(host_, "tenon.top_k/1")
          .attr("axis", axis)
          .attr("largest", largest)
          .template input<T>(dims, x)
          .template input<int64_t>({1}, {k})
          .constant()
          .outputs(2, output)
          .expect(y, output == 0 ? values : indices)
          .expect_kernels();
    }
  }
  TestHost host_;
};

TEST_F(TopKTest, Values) {
  const std::vector<float> x = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  expect<float>({3, 4}, x, 1, 3, 1, {3, 3}, {3, 2, 1, 7, 6, 5, 11, 10, 9}, {3, 2, 1, 3, 2, 1, 3, 2, 1});
  expect<float>({3, 4}, x, -2, 1, 0, {1, 4}, {0, 1, 2, 3}, {0, 0, 0, 0});
  expect<float>({3, 4}, x, 0, 2, 1, {2, 4}, {8, 9, 10, 11, 4, 5, 6, 7}, {2, 2, 2, 2, 1, 1, 1, 1});
  expect<int64_t>({4}, {INT64_MAX, INT64_MIN, INT64_MAX - 1, 0}, 0, 4, 0, {4},
                  {-9223372036854775808.0, 0, 9223372036854775807.0, 9223372036854775807.0}, {1, 3, 2, 0});
  expect<uint8_t>({3}, {200, 100, 255}, 0, 2, 1, {2}, {255, 200}, {2, 0});
}

TEST_F(TopKTest, EqualsKeepTheirOrder) {
  expect<float>({6}, {1, 2, 1, 2, 1, 2}, 0, 5, 1, {5}, {2, 2, 2, 1, 1}, {1, 3, 5, 0, 2});
  expect<float>({6}, {1, 2, 1, 2, 1, 2}, 0, 5, 0, {5}, {1, 1, 1, 2, 2}, {0, 2, 4, 1, 3});
  expect<float>({4}, {0.0f, -0.0f, 0.0f, -0.0f}, 0, 3, 1, {3}, {0, 0, 0}, {0, 1, 2});
}

TEST_F(TopKTest, NanAndInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  expect<float>({5}, {1, -inf, nan, inf, -nan}, 0, 5, 1, {5}, {nan, nan, kInf, 1, -kInf}, {2, 4, 3, 0, 1});
  expect<float>({5}, {1, -inf, nan, inf, -nan}, 0, 4, 0, {4}, {-kInf, 1, kInf, nan}, {1, 0, 3, 2});
}

TEST_F(TopKTest, Sizes) {
  expect<float>({2, 0}, {}, 1, 0, 1, {2, 0}, {}, {});
  expect<float>({3}, {1, 2, 3}, 0, 0, 1, {0}, {}, {});
  expect<float>({0, 3}, {}, 1, 2, 1, {0, 2}, {}, {});
  for (const int64_t k : {1, 7, 700, 3000}) {
    for (const int64_t largest : {0, 1}) {
      for (int output = 0; output < 2; ++output) {
        OpTester(host_, "tenon.top_k/1")
            .attr("axis", int64_t{1})
            .attr("largest", largest)
            .random_input({2, 3000, 2})
            .input<int64_t>({1}, {k})
            .constant()
            .outputs(2, output)
            .expect_kernels({"tenon.top_k.select.f32"});
      }
    }
  }
}

TEST_F(TopKTest, Errors) {
  const auto top_k = [&] { return std::move(OpTester(host_, "tenon.top_k/1").outputs(2, 0).random_input({3})); };
  top_k().input<int64_t>({1}, {4}).constant().expect_invalid({"k", "0 to 3", "4"});
  top_k().input<int64_t>({1}, {-1}).constant().expect_invalid({"k", "-1"});
  top_k().input<int64_t>({2}, {1, 1}).constant().expect_invalid({"k", "2 numbers"});
  top_k().input<int64_t>({1}, {1}).expect_invalid({"k", "known"});
  top_k().attr("axis", int64_t{1}).input<int64_t>({1}, {1}).constant().expect_invalid({"axis", "1"});
}

}  // namespace
}  // namespace tenon::testing
