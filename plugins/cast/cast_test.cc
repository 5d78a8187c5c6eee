// Expected values by hand, from the rules in the op's description.
#include <gtest/gtest.h>

#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class CastTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("cast")); }
  OpTester cast(int32_t to) {
    OpTester tester(host_, "tenon.cast/1");
    tester.attr("to", DType{to});
    return tester;
  }
  TestHost host_;
};

TEST_F(CastTest, FloatToInteger) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {1.9f, -1.9f, 300.0f, -300.0f, nan, 1e30f};
  cast(TN_I32).input({6}, x).expect({6}, {1, -1, 300, -300, 0, 2147483647.0}).expect_kernels({"tenon.cast.vector"});
  cast(TN_I8).input({6}, x).expect({6}, {1, -1, 127, -128, 0, 127}).expect_kernels({"tenon.cast.vector"});
  cast(TN_U8).input({6}, x).expect({6}, {1, 0, 255, 0, 0, 255}).expect_kernels({"tenon.cast.vector"});
  cast(TN_BOOL).input({4}, {0.0f, -0.0f, 0.5f, nan}).expect({4}, {0, 0, 1, 1}).expect_kernels({"tenon.cast.vector"});
}

TEST_F(CastTest, IntegerToInteger) {
  cast(TN_U8).input({2}, std::vector<int32_t>{300, -1}).expect({2}, {44, 255}).expect_kernels({"tenon.cast.vector"});
  cast(TN_I64).input({2}, std::vector<int32_t>{-5, 7}).expect({2}, {-5, 7}).expect_kernels({"tenon.cast.vector"});
  cast(TN_F32).input({2}, std::vector<int64_t>{int64_t{1} << 24, -3}).expect({2}, {16777216, -3}).expect_kernels();
}

TEST_F(CastTest, FloatWidths) {
  cast(TN_F64).input({2}, {0.5f, -3.0f}).expect({2}, {0.5, -3}).expect_kernels({"tenon.cast.vector"});
  cast(TN_F32).input({2}, std::vector<double>{0.25, 1e300}).expect({2}, {0.25, std::numeric_limits<float>::infinity()});
}

}  // namespace
}  // namespace tenon::testing
