// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class WhereTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("where")); }
  TestHost host_;
};

TEST_F(WhereTest, SameShape) {
  OpTester(host_, "tenon.where/1")
      .bools({3}, {1, 0, 1})
      .input({3}, {1, 2, 3})
      .input({3}, {10, 20, 30})
      .expect({3}, {1, 20, 3})
      .expect_kernels({"tenon.where.vector"});
}

TEST_F(WhereTest, AllThreeBroadcast) {
  OpTester(host_, "tenon.where/1")
      .bools({2, 1}, {1, 0})
      .input({2}, {1, 2})
      .input({}, {9})
      .expect({2, 2}, {1, 2, 9, 9})
      .expect_kernels();
  OpTester(host_, "tenon.where/1")
      .bools({3}, {1, 0, 1})
      .input({1, 1, 3}, {1, 2, 3})
      .input({2, 1, 1}, {-1, -2})
      .expect({2, 1, 3}, {1, -1, 3, 1, -2, 3})
      .expect_kernels();
  OpTester(host_, "tenon.where/1")
      .bools({}, {0})
      .input({0}, std::vector<float>{})
      .input({1}, {1})
      .expect({0}, {})
      .expect_kernels();
}

TEST_F(WhereTest, OtherDtypes) {
  OpTester(host_, "tenon.where/1")
      .bools({2}, {0, 1})
      .input({2}, std::vector<int64_t>{1, int64_t{1} << 62})
      .input({}, std::vector<int64_t>{-1})
      .expect({2}, {-1, 4611686018427387904.0})
      .expect_kernels({"tenon.where.vector"});
  OpTester(host_, "tenon.where/1")
      .bools({2}, {0, 1})
      .bools({2}, {0, 1})
      .bools({1}, {1})
      .expect({2}, {1, 1})
      .expect_kernels();
  OpTester(host_, "tenon.where/1")
      .bools({2}, {0, 1})
      .input({2}, std::vector<uint16_t>{1, 2})
      .input({2}, std::vector<uint16_t>{3, 4})
      .expect({2}, {3, 2})
      .expect_kernels();
}

TEST_F(WhereTest, Refused) {
  OpTester(host_, "tenon.where/1").input({1}, {1}).input({1}, {1}).input({1}, {1}).expect_invalid({"bool", "f32"});
  OpTester(host_, "tenon.where/1")
      .bools({1}, {1})
      .input({1}, {1})
      .input({1}, std::vector<int32_t>{1})
      .expect_invalid({"f32", "i32"});
  OpTester(host_, "tenon.where/1")
      .bools({2}, {1, 1})
      .input({3}, {1, 2, 3})
      .input({1}, {1})
      .expect_invalid({"[2]", "[3]"});
}

}  // namespace
}  // namespace tenon::testing
