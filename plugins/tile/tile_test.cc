// Expected values from numpy's tile.
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class TileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("tile")); }
  OpTester tile() { return OpTester(host_, "tenon.tile/1"); }
  TestHost host_;
};

TEST_F(TileTest, Values) {
  tile()
      .input({2, 2}, {0, 1, 2, 3})
      .input<int64_t>({2}, {2, 2})
      .constant()
      .expect({4, 4}, {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3})
      .expect_kernels({"tenon.tile.copy"});
  tile()
      .input<uint8_t>({3}, {1, 2, 3})
      .input<int32_t>({1}, {3})
      .constant()
      .expect({9}, {1, 2, 3, 1, 2, 3, 1, 2, 3})
      .expect_kernels({"tenon.tile.copy"});
}

TEST_F(TileTest, RanksAndSizes) {
  tile().input<double>({}, {7}).input<int64_t>({0}, {}).constant().expect({}, {7}).expect_kernels({"tenon.tile.copy"});
  tile().random_input({2, 3}).input<int64_t>({2}, {0, 2}).constant().expect({0, 6}, {}).expect_kernels();
  tile().random_input({0, 3}).input<int64_t>({2}, {5, 2}).constant().expect({0, 6}, {}).expect_kernels();
  tile()
      .random_input({2, 1, 3, 2, 1, 2, 2, 3})
      .input<int64_t>({8}, {2, 3, 2, 2, 2, 3, 2, 2})
      .constant()
      .expect_kernels({"tenon.tile.copy"});
  tile().random_input({3, 40, 25}).input<int64_t>({3}, {2, 1, 5}).constant().expect_kernels({"tenon.tile.copy"});
}

TEST_F(TileTest, Errors) {
  tile().random_input({2, 3}).input<int64_t>({1}, {3}).constant().expect_invalid({"repeats", "2", "1"});
  tile().random_input({2}).input<int64_t>({1}, {-1}).constant().expect_invalid({"repeats", "-1"});
  tile().random_input({2}).input<int64_t>({1}, {INT64_MAX}).constant().expect_invalid({"64 bits"});
  tile().random_input({2}).input<int64_t>({1}, {2}).expect_invalid({"repeats", "known"});
}

}  // namespace
}  // namespace tenon::testing
