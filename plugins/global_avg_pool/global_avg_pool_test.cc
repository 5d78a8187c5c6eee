// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class GlobalAvgPoolTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("global_avg_pool")); }
  TestHost host_;
};

TEST_F(GlobalAvgPoolTest, Values) {
  OpTester(host_, "tenon.global_avg_pool/1")
      .input({1, 2, 2, 2}, {1, 2, 3, 4, -1, -1, -1, 0})
      .expect({1, 2, 1, 1}, {2.5, -0.75})
      .expect_kernels({"tenon.global_avg_pool.vector.f32"});
}

TEST_F(GlobalAvgPoolTest, EveryFormatAgrees) {
  for (const Dims& dims : {Dims{2, 21, 7, 5}, Dims{1, 64, 13, 13}}) {
    OpTester(host_, "tenon.global_avg_pool/1").random_input(dims).expect_kernels({"tenon.global_avg_pool.vector.f32"});
  }
}

TEST_F(GlobalAvgPoolTest, Errors) {
  OpTester(host_, "tenon.global_avg_pool/1").input({1, 1, 0, 3}, std::vector<float>{}).expect_invalid({"[1,1,0,3]"});
  OpTester(host_, "tenon.global_avg_pool/1").random_input({1, 3}).expect_invalid({"rank 4", "[1,3]"});
}

}  // namespace
}  // namespace tenon::testing
