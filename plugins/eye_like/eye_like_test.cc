// Expected values from numpy's eye.
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class EyeLikeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("eye_like")); }
  OpTester eye(int32_t dtype, int64_t k) {
    return std::move(OpTester(host_, "tenon.eye_like/1").attr("dtype", DType{dtype}).attr("k", k));
  }
  TestHost host_;
};

TEST_F(EyeLikeTest, Values) {
  eye(TN_F32, 0).random_input({2, 3}).expect({2, 3}, {1, 0, 0, 0, 1, 0});
  eye(TN_I64, 1).random_input({3, 3}).expect({3, 3}, {0, 1, 0, 0, 0, 1, 0, 0, 0});
  eye(TN_BOOL, -1).random_input({3, 2}).expect({3, 2}, {0, 0, 1, 0, 0, 1});
  eye(TN_F64, INT64_MAX).random_input({1, 2}).expect({1, 2}, {0, 0});
  eye(TN_U8, INT64_MIN).random_input({1, 2}).expect({1, 2}, {0, 0});
}

TEST_F(EyeLikeTest, Errors) {
  eye(TN_F32, 0).random_input({2}).expect_invalid({"rank 2", "[2]"});
  eye(TN_STRING, 0).random_input({2, 2}).expect_invalid({"string"});
}

}  // namespace
}  // namespace tenon::testing
