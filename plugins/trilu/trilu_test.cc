// Expected values from numpy's triu and tril.
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class TriluTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("trilu")); }
  void expect(int64_t upper, int64_t k, const std::vector<double>& y) {
    OpTester(host_, "tenon.trilu/1")
        .attr("upper", upper)
        .input<int16_t>({2, 3}, {1, 2, 3, 4, 5, 6})
        .input<int64_t>({}, {k})
        .expect({2, 3}, y)
        .expect_kernels({"tenon.trilu.copy"});
  }
  TestHost host_;
};

TEST_F(TriluTest, Diagonals) {
  expect(1, 0, {1, 2, 3, 0, 5, 6});
  expect(1, 1, {0, 2, 3, 0, 0, 6});
  expect(1, -1, {1, 2, 3, 4, 5, 6});
  expect(1, 3, {0, 0, 0, 0, 0, 0});
  expect(0, 0, {1, 0, 0, 4, 5, 0});
  expect(0, 1, {1, 2, 0, 4, 5, 6});
  expect(0, -1, {0, 0, 0, 4, 0, 0});
  expect(0, INT64_MAX, {1, 2, 3, 4, 5, 6});
  expect(0, INT64_MIN, {0, 0, 0, 0, 0, 0});
  expect(1, INT64_MIN, {1, 2, 3, 4, 5, 6});
  expect(1, INT64_MAX, {0, 0, 0, 0, 0, 0});
}

TEST_F(TriluTest, Batches) {
  OpTester(host_, "tenon.trilu/1")
      .input<double>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})
      .expect({2, 2, 2}, {1, 2, 0, 4, 5, 6, 0, 8})
      .expect_kernels({"tenon.trilu.copy"});
  OpTester(host_, "tenon.trilu/1").random_input({5, 70, 90}).expect_kernels({"tenon.trilu.copy"});
  OpTester(host_, "tenon.trilu/1").random_input({3, 0, 5}).expect({3, 0, 5}, {}).expect_kernels();
}

TEST_F(TriluTest, Errors) {
  OpTester(host_, "tenon.trilu/1").random_input({3}).expect_invalid({"rank 2", "[3]"});
  OpTester(host_, "tenon.trilu/1").random_input({3, 3}).input<int64_t>({2}, {0, 0}).expect_invalid({"k", "[2]"});
}

}  // namespace
}  // namespace tenon::testing
