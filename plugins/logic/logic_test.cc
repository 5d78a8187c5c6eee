// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class LogicTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("logic")); }
  TestHost host_;
};

void check(TestHost& host, const std::string& name, const std::vector<double>& expected) {
  OpTester(host, "tenon." + name + "/1")
      .bools({2, 1}, {0, 1})
      .bools({2}, {0, 1})
      .expect({2, 2}, expected)
      .expect_kernels({"tenon." + name + ".vector"});
}

TEST_F(LogicTest, Bools) {
  check(host_, "and", {0, 0, 0, 1});
  check(host_, "or", {0, 1, 1, 1});
  check(host_, "xor", {0, 1, 1, 0});
  OpTester(host_, "tenon.not/1").bools({3}, {0, 1, 0}).expect({3}, {1, 0, 1}).expect_kernels({"tenon.not.vector"});
  OpTester(host_, "tenon.and/1").input({1}, {1}).input({1}, {1}).expect_invalid({"bool", "f32"});
}

TEST_F(LogicTest, Bits) {
  const std::vector<int32_t> a = {12, -1}, b = {10, 7};
  OpTester(host_, "tenon.bitwise_and/1").input({2}, a).input({2}, b).expect({2}, {8, 7});
  OpTester(host_, "tenon.bitwise_or/1").input({2}, a).input({2}, b).expect({2}, {14, -1});
  OpTester(host_, "tenon.bitwise_xor/1").input({2}, a).input({2}, b).expect({2}, {6, -8});
  OpTester(host_, "tenon.bitwise_not/1").input({2}, a).expect({2}, {-13, 0});
  OpTester(host_, "tenon.bitwise_not/1").input({2}, std::vector<uint8_t>{0, 200}).expect({2}, {255, 55});
  OpTester(host_, "tenon.bitwise_and/1")
      .input({2}, std::vector<uint64_t>{~uint64_t{0}, 6})
      .input({}, std::vector<uint64_t>{3})
      .expect({2}, {3, 2});
  OpTester(host_, "tenon.bitwise_or/1").input({1}, {1}).input({1}, {1}).expect_invalid({"integer", "f32"});
}

TEST_F(LogicTest, Shifts) {
  const std::vector<uint8_t> a = {1, 129, 255, 7}, b = {3, 1, 8, 200};
  OpTester(host_, "tenon.bit_shift/1").attr("direction", "left").input({4}, a).input({4}, b).expect({4}, {8, 2, 0, 0});
  OpTester(host_, "tenon.bit_shift/1")
      .attr("direction", "right")
      .input({4}, a)
      .input({4}, b)
      .expect({4}, {0, 64, 0, 0});
  OpTester(host_, "tenon.bit_shift/1")
      .attr("direction", "left")
      .input({1}, std::vector<int32_t>{1})
      .input({1}, std::vector<int32_t>{1})
      .expect_invalid({"unsigned", "i32"});
}

}  // namespace
}  // namespace tenon::testing
