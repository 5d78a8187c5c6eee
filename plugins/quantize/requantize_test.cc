// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class RequantizeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("quantize")); }
  OpTester requantize() { return {host_, "tenon.requantize/1"}; }
  TestHost host_;
};

TEST_F(RequantizeTest, OneMultiplier) {
  requantize()
      .input({6}, std::vector<int32_t>{1, 3, -5, 1000, -1000, 2147483647})
      .input({}, {0.5f})
      .input({}, std::vector<uint8_t>{3})
      .expect({6}, {3, 5, 1, 255, 0, 255})
      .expect_kernels({"tenon.requantize.vector.u8"});
  requantize()
      .input({2}, std::vector<int32_t>{-2147483647 - 1, 250})
      .input({1}, {0.1f})
      .input({1}, std::vector<int8_t>{-3})
      .expect({2}, {-128, 22})
      .expect_kernels({"tenon.requantize.vector.i8"});
}

TEST_F(RequantizeTest, MultipliersOfAnAxis) {
  const std::vector<int32_t> x = {10, 20, 30, 40, 50, 60};
  requantize()
      .input({1, 3, 2}, x)
      .input({3, 1}, {0.1f, 1, 10})
      .input({}, std::vector<uint8_t>{0})
      .expect({1, 3, 2}, {1, 2, 30, 40, 255, 255})
      .expect_kernels({"tenon.requantize.vector.u8"});
  requantize()
      .input({3, 2}, x)
      .input({2}, {0.1f, 1})
      .input({}, std::vector<uint8_t>{0})
      .expect({3, 2}, {1, 20, 3, 40, 5, 60})
      .expect_kernels({"tenon.requantize.vector.u8"});
  // Several axes and several zero points: the reference.
  requantize()
      .input({3, 2}, x)
      .input({3, 2}, {1, 2, 3, 4, 5, 0})
      .input({2}, std::vector<uint8_t>{0, 1})
      .expect({3, 2}, {10, 41, 90, 161, 250, 1});
}

// 16777217 * 1 / 2^17 = 128.0000076: f32 would lose the 1, and then the tie with 127.5 + 0.5 / 2^17 the other way.
TEST_F(RequantizeTest, SumsKeepAllTheirBits) {
  requantize()
      .input({2}, std::vector<int32_t>{16777217, 16777216})
      .input({}, {7.450580596923828e-09f * 4})  // 2^-25: 0.50000003 and 0.5
      .input({}, std::vector<uint8_t>{0})
      .expect({2}, {1, 0})
      .expect_kernels({"tenon.requantize.vector.u8"});
}

TEST_F(RequantizeTest, Errors) {
  const std::vector<int32_t> x = {1, 2};
  requantize().input({2}, x).input({3}, {1, 1, 1}).input({}, std::vector<uint8_t>{0}).expect_invalid({"[2]", "[3]"});
  requantize().input({2}, x).input({3, 1}, {1, 1, 1}).input({}, std::vector<uint8_t>{0}).expect_invalid({"[3,1]"});
  requantize().input({2}, x).input({}, {1}).input({}, {1.0f}).expect_invalid({"zero_point", "f32"});
  requantize()
      .input({2}, {1.0f, 2})
      .input({}, {1})
      .input({}, std::vector<uint8_t>{0})
      .expect_invalid({"input x", "f32"});
}

}  // namespace
}  // namespace tenon::testing
