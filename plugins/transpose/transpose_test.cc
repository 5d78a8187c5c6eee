// Expected values by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class TransposeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("transpose")); }
  TestHost host_;
};

TEST_F(TransposeTest, Values) {
  OpTester(host_, "tenon.transpose/1")
      .input({2, 3}, {1, 2, 3, 4, 5, 6})
      .expect({3, 2}, {1, 4, 2, 5, 3, 6})
      .expect_kernels({"tenon.transpose.tiled"});
  OpTester(host_, "tenon.transpose/1")
      .attr("perm", std::vector<int64_t>{1, 0, 2})
      .input({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})
      .expect({2, 2, 2}, {0, 1, 4, 5, 2, 3, 6, 7})
      .expect_kernels({"tenon.transpose.tiled"});
}

TEST_F(TransposeTest, AnyPermutation) {
  std::vector<int64_t> perm = {0, 1, 2, 3};
  do {
    OpTester(host_, "tenon.transpose/1")
        .attr("perm", perm)
        .random_input({3, 17, 5, 20})
        .expect_kernels({"tenon.transpose.tiled"});
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST_F(TransposeTest, DtypesAndRanks) {
  const Dims dims = {3, 2};
  OpTester(host_, "tenon.transpose/1")
      .input<int8_t>({2, 3}, {1, 2, 3, 4, 5, 6})
      .expect(dims, {1, 4, 2, 5, 3, 6})
      .expect_kernels({"tenon.transpose.tiled"});
  OpTester(host_, "tenon.transpose/1")
      .input<int16_t>({2, 3}, {1, 2, 3, 4, 5, 6})
      .expect(dims, {1, 4, 2, 5, 3, 6})
      .expect_kernels({"tenon.transpose.tiled"});
  OpTester(host_, "tenon.transpose/1")
      .input<int64_t>({2, 3}, {1, 2, 3, 4, 5, 6})
      .expect(dims, {1, 4, 2, 5, 3, 6})
      .expect_kernels({"tenon.transpose.tiled"});
  OpTester(host_, "tenon.transpose/1").input<double>({}, {7}).expect({}, {7}).expect_kernels({"tenon.transpose.tiled"});
  OpTester(host_, "tenon.transpose/1")
      .input({2, 0, 3}, std::vector<float>{})
      .expect({3, 0, 2}, {})
      .expect_kernels({"tenon.transpose.tiled"});
  OpTester(host_, "tenon.transpose/1")
      .attr("perm", std::vector<int64_t>{7, 0, 6, 1, 5, 2, 4, 3})
      .random_input({2, 3, 2, 1, 2, 3, 2, 4})
      .expect_kernels({"tenon.transpose.tiled"});
}

TEST_F(TransposeTest, Errors) {
  OpTester(host_, "tenon.transpose/1")
      .attr("perm", std::vector<int64_t>{0, 0})
      .random_input({2, 3})
      .expect_invalid({"perm", "twice"});
  OpTester(host_, "tenon.transpose/1")
      .attr("perm", std::vector<int64_t>{0})
      .random_input({2, 3})
      .expect_invalid({"perm", "2", "1"});
}

}  // namespace
}  // namespace tenon::testing
