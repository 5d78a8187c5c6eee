// Expected values from Darknet: 4 channels x 4 x 4 filled 0..63, stride 2. Space-to-depth would start 0 2 8 10.
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class ReorgTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("reorg")); }
  TestHost host_;
};

TEST_F(ReorgTest, DarknetsOrder) {
  std::vector<float> x(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  OpTester(host_, "tenon.reorg/1")
      .attr("stride", int64_t{2})
      .input({1, 4, 4, 4}, x)
      .expect({1, 16, 2, 2}, {0,  2,  4,  6,  16, 18, 20, 22, 32, 34, 36, 38, 48, 50, 52, 54, 1,  3,  5,  7,  17, 19,
                              21, 23, 33, 35, 37, 39, 49, 51, 53, 55, 8,  10, 12, 14, 24, 26, 28, 30, 40, 42, 44, 46,
                              56, 58, 60, 62, 9,  11, 13, 15, 25, 27, 29, 31, 41, 43, 45, 47, 57, 59, 61, 63})
      .expect_kernels({"tenon.reorg.copy.f32"});
}

TEST_F(ReorgTest, BatchesAndStride1) {
  OpTester(host_, "tenon.reorg/1")
      .attr("stride", int64_t{2})
      .random_input({3, 8, 6, 4})
      .expect_kernels({"tenon.reorg.copy.f32"});
  OpTester(host_, "tenon.reorg/1").input<int16_t>({1, 1, 1, 2}, {5, 6}).expect({1, 1, 1, 2}, {5, 6});
  OpTester(host_, "tenon.reorg/1")
      .input({1, 1, 1, 2}, {5, 6})
      .expect({1, 1, 1, 2}, {5, 6})
      .expect_kernels({"tenon.reorg.copy.f32"});
}

TEST_F(ReorgTest, Errors) {
  OpTester(host_, "tenon.reorg/1")
      .attr("stride", int64_t{2})
      .random_input({1, 3, 4, 4})
      .expect_invalid({"stride", "divisible by 4", "[1,3,4,4]"});
  OpTester(host_, "tenon.reorg/1")
      .attr("stride", int64_t{2})
      .random_input({1, 4, 5, 4})
      .expect_invalid({"stride", "5"});
  for (const int64_t stride : {int64_t{1} << 31, int64_t{1} << 32, INT64_MAX}) {  // the second's square is 0 in 64 bits
    OpTester(host_, "tenon.reorg/1").attr("stride", stride).random_input({1, 4, 4, 4}).expect_invalid({"stride"});
  }
}

}  // namespace
}  // namespace tenon::testing
