// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class ConcatTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("concat")); }
  TestHost host_;
};

TEST_F(ConcatTest, Values) {
  OpTester(host_, "tenon.concat/1")
      .attr("axis", int64_t{1})
      .input({2, 1}, {1, 2})
      .input({2, 2}, {3, 4, 5, 6})
      .expect({2, 3}, {1, 3, 4, 2, 5, 6})
      .expect_kernels({"tenon.concat.copy"});
  OpTester(host_, "tenon.concat/1")
      .attr("axis", int64_t{-2})
      .input<int64_t>({1, 2}, {1, 2})
      .input<int64_t>({2, 2}, {3, 4, 5, 6})
      .expect({3, 2}, {1, 2, 3, 4, 5, 6})
      .expect_kernels({"tenon.concat.copy"});
}

TEST_F(ConcatTest, DtypesAndRanks) {
  OpTester(host_, "tenon.concat/1")
      .attr("axis", int64_t{0})
      .input<int8_t>({1}, {1})
      .input<int8_t>({0}, {})
      .input<int8_t>({2}, {2, 3})
      .expect({3}, {1, 2, 3})
      .expect_kernels({"tenon.concat.copy"});
  OpTester(host_, "tenon.concat/1")
      .attr("axis", int64_t{-1})
      .input<uint16_t>({2, 1}, {1, 2})
      .input<uint16_t>({2, 1}, {3, 4})
      .expect({2, 2}, {1, 3, 2, 4})
      .expect_kernels({"tenon.concat.copy"});
  OpTester(host_, "tenon.concat/1")
      .attr("axis", int64_t{1})
      .input<double>({0, 1}, {})
      .input<double>({0, 2}, {})
      .expect({0, 3}, {})
      .expect_kernels({"tenon.concat.copy"});
  OpTester(host_, "tenon.concat/1")
      .attr("axis", int64_t{5})
      .random_input({2, 1, 3, 2, 1, 2, 2, 3})
      .random_input({2, 1, 3, 2, 1, 4, 2, 3})
      .expect_kernels({"tenon.concat.copy"});
  OpTester(host_, "tenon.concat/1").attr("axis", int64_t{0}).random_input({}).random_input({}).expect_invalid({"axis"});
}

TEST_F(ConcatTest, ImageFormats) {
  for (int64_t axis = 0; axis < 4; ++axis) {
    Dims second = {2, 16, 5, 7};
    second[static_cast<int>(axis)] = 9;
    OpTester(host_, "tenon.concat/1")
        .attr("axis", axis)
        .random_input({2, 16, 5, 7})
        .random_input(second)
        .expect_kernels({"tenon.concat.copy"});
  }
}

TEST_F(ConcatTest, Errors) {
  OpTester(host_, "tenon.concat/1")
      .attr("axis", int64_t{0})
      .random_input({1, 2})
      .random_input({1, 3})
      .expect_invalid({"input 1", "[1,2]", "[1,3]"});
  OpTester(host_, "tenon.concat/1")
      .attr("axis", int64_t{1})
      .input({0, INT64_MAX}, std::vector<float>{})
      .input({0, 1}, std::vector<float>{})
      .expect_invalid({"along the axis", "64 bits"});
  OpTester(host_, "tenon.concat/1").attr("axis", int64_t{2}).random_input({1, 2}).expect_invalid({"axis", "2"});
}

}  // namespace
}  // namespace tenon::testing
