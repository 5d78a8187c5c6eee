// Expected values from ONNX's example of MatMulInteger and by hand.
#include <gtest/gtest.h>

#include <random>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

template <class T>
std::vector<T> random_bytes(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) value = static_cast<T>(engine());
  return values;
}

class MatmulIntegerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("quantize")); }
  OpTester matmul() { return {host_, "tenon.matmul_integer/1"}; }
  TestHost host_;
  const std::vector<std::string> kernel_ = {"tenon.matmul_integer.gemm"};
};

TEST_F(MatmulIntegerTest, ZeroPoints) {
  const std::vector<uint8_t> a = {11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0}, b = {1, 4, 2, 5, 3, 6};
  matmul()
      .input({4, 3}, a)
      .input({3, 2}, b)
      .input({1}, std::vector<uint8_t>{12})
      .input({1}, std::vector<uint8_t>{0})
      .expect({4, 2}, {-38, -83, -44, -98, -50, -113, -56, -128})
      .expect_kernels(kernel_);
  matmul().input({4, 3}, a).input({3, 2}, b).expect({4, 2}, {34, 97, 28, 82, 22, 67, 16, 52}).expect_kernels(kernel_);
  // One for each row of a and each column of b: row 0 less 3 is 8 4 0, the columns less 1 and 4 are 0 1 2.
  matmul()
      .input({4, 3}, a)
      .input({3, 2}, b)
      .input({4, 1}, std::vector<uint8_t>{3, 2, 1, 0})
      .input({2}, std::vector<uint8_t>{1, 4})
      .expect({4, 2}, {4, 4, 4, 4, 4, 4, 4, 4})
      .expect_kernels(kernel_);
}

TEST_F(MatmulIntegerTest, ExtremesDoNotOverflow) {
  // (255 - 0) * (-128 - 127) * 3, and the same with the largest difference of both.
  matmul()
      .input({1, 3}, std::vector<uint8_t>{255, 255, 255})
      .input({3, 1}, std::vector<int8_t>{-128, -128, -128})
      .absent()
      .input({}, std::vector<int8_t>{127})
      .expect({1, 1}, {-195075})
      .expect_kernels(kernel_);
}

TEST_F(MatmulIntegerTest, BatchesAndVectors) {
  const std::vector<int8_t> a = {1, 2, 3, 4}, b = {1, 0, 0, 1, 2, 0, 0, 2};
  matmul().input({2, 2}, a).input({2, 2, 2}, b).expect({2, 2, 2}, {1, 2, 3, 4, 2, 4, 6, 8}).expect_kernels(kernel_);
  matmul()
      .input({2}, std::vector<int8_t>{1, 2})
      .input({2}, std::vector<int8_t>{3, 4})
      .expect({}, {11})
      .expect_kernels(kernel_);
  matmul().input({2, 2}, a).input({2}, std::vector<int8_t>{1, 1}).expect({2}, {3, 7}).expect_kernels(kernel_);
  matmul().input({2}, std::vector<int8_t>{1, 1}).input({2, 2}, a).expect({2}, {4, 6}).expect_kernels(kernel_);
  matmul().input({0, 2}, std::vector<int8_t>{}).input({2, 2}, a).expect({0, 2}, {}).expect_kernels(kernel_);
  matmul()
      .input({1, 0}, std::vector<int8_t>{})
      .input({0, 2}, std::vector<int8_t>{})
      .expect({1, 2}, {0, 0})
      .expect_kernels(kernel_);
  // A zero point for each matrix and column.
  matmul()
      .input({2, 1, 2}, a)
      .input({2, 2, 2}, b)
      .absent()
      .input({2, 1, 2}, std::vector<int8_t>{0, 1, 2, 0})
      .expect({2, 1, 2}, {1, -1, -8, 8})
      .expect_kernels(kernel_);
}

TEST_F(MatmulIntegerTest, EveryTileAgreesWithTheReference) {
  for (const auto& [m, k, n] : {std::tuple(1, 1, 1), {9, 31, 17}, {40, 515, 70}, {3, 1030, 200}, {130, 64, 16}}) {
    matmul()
        .input({m, k}, random_bytes<uint8_t>(m * k, 1))
        .input({k, n}, random_bytes<int8_t>(k * n, 2))
        .input({m, 1}, random_bytes<uint8_t>(m, 3))
        .input({n}, random_bytes<int8_t>(n, 4))
        .expect_kernels(kernel_);
    matmul()
        .input({2, m, k}, random_bytes<int8_t>(2 * m * k, 1))
        .input({k, n}, random_bytes<uint8_t>(k * n, 2))
        .expect_kernels(kernel_);
  }
}

TEST_F(MatmulIntegerTest, Errors) {
  const std::vector<uint8_t> six(6), two(2);
  matmul().input({2, 3}, six).input({2, 3}, six).expect_invalid({"3 rows", "[2,3]"});
  matmul().input({}, std::vector<uint8_t>{1}).input({1}, std::vector<uint8_t>{1}).expect_invalid({"at least one axis"});
  matmul().input({2, 3}, six).input({3, 2}, {1.0f, 1, 1, 1, 1, 1}).expect_invalid({"input b", "f32"});
  matmul().input({2, 3}, six).input({3, 2}, six).input({2}, two).expect_invalid({"[2,3]", "[2]"});
  matmul()
      .input({2, 3}, six)
      .input({3, 2}, six)
      .absent()
      .input({}, std::vector<int8_t>{1})
      .expect_invalid({"b_zero_point", "i8"});
}

}  // namespace
}  // namespace tenon::testing
