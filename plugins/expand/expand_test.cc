// Expected values from numpy: x * np.ones(shape, x.dtype).
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class ExpandTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("expand")); }
  OpTester expand() { return OpTester(host_, "tenon.expand/1"); }
  TestHost host_;
};

TEST_F(ExpandTest, Values) {
  expand()
      .input({3, 1}, {1, 2, 3})
      .input<int64_t>({2}, {3, 4})
      .constant()
      .expect({3, 4}, {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3})
      .expect_kernels({"tenon.expand.copy"});
  expand()
      .input<int64_t>({3, 1}, {1, 2, 3})
      .input<int64_t>({3}, {2, 1, 2})
      .constant()
      .expect({2, 3, 2}, {1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3})
      .expect_kernels({"tenon.expand.copy"});
  // A 1 in the shape keeps the axis, and a shorter shape keeps the first axes.
  expand()
      .input<int8_t>({2, 1, 2}, {1, 2, 3, 4})
      .input<int32_t>({2}, {2, 1})
      .constant()
      .expect({2, 2, 2}, {1, 2, 1, 2, 3, 4, 3, 4})
      .expect_kernels({"tenon.expand.copy"});
}

TEST_F(ExpandTest, RanksAndSizes) {
  expand().input<int16_t>({}, {7}).input<int64_t>({0}, {}).constant().expect({}, {7}).expect_kernels(
      {"tenon.expand.copy"});
  expand().input({1}, {7}).input<int64_t>({2}, {0, 3}).constant().expect({0, 3}, {}).expect_kernels();
  expand().random_input({0, 2}).input<int64_t>({2}, {1, 1}).constant().expect({0, 2}, {}).expect_kernels();
  expand()
      .random_input({5, 1, 3, 1, 2, 1, 1, 3})
      .input<int64_t>({8}, {1, 4, 1, 3, 1, 7, 2, 1})
      .constant()
      .expect_kernels({"tenon.expand.copy"});
  expand().random_input({1, 33, 1}).input<int64_t>({3}, {40, 1, 70}).constant().expect_kernels({"tenon.expand.copy"});
}

TEST_F(ExpandTest, Errors) {
  expand().random_input({2}).input<int64_t>({1}, {3}).constant().expect_invalid({"broadcast", "2", "3"});
  expand().random_input({2}).input<int64_t>({1}, {-1}).constant().expect_invalid({"shape", "-1"});
  expand().random_input({2}).input<int64_t>({1}, {2}).expect_invalid({"shape", "known"});
  expand().random_input({2}).random_input({1}).constant().expect_invalid({"shape", "i64", "f32"});
  expand().random_input({1}).input<int64_t>({2}, {INT64_MAX, 2}).constant().expect_invalid({"64 bits"});
  expand().random_input({1}).input<int64_t>({9}, {1, 1, 1, 1, 1, 1, 1, 1, 1}).constant().expect_invalid({"8"});
}

}  // namespace
}  // namespace tenon::testing
