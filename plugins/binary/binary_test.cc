// Expected values by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class BinaryTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("binary")); }
  TestHost host_;
};

TEST_F(BinaryTest, SameShape) {
  const std::vector<float> a = {1, 2, 3, 4};
  const std::vector<float> b = {4, 2, -1, 8};
  OpTester(host_, "tenon.add/1").input({4}, a).input({4}, b).expect({4}, {5, 4, 2, 12}).expect_kernels();
  OpTester(host_, "tenon.sub/1").input({4}, a).input({4}, b).expect({4}, {-3, 0, 4, -4}).expect_kernels();
  OpTester(host_, "tenon.mul/1").input({4}, a).input({4}, b).expect({4}, {4, 4, -3, 32}).expect_kernels();
  OpTester(host_, "tenon.div/1").input({4}, a).input({4}, b).expect({4}, {0.25, 1, -3, 0.5}).expect_kernels();
}

TEST_F(BinaryTest, Broadcasting) {
  OpTester(host_, "tenon.add/1")
      .input({2, 3}, {0, 1, 2, 3, 4, 5})
      .input({3}, {10, 20, 30})
      .expect({2, 3}, {10, 21, 32, 13, 24, 35})
      .expect_kernels();
  OpTester(host_, "tenon.sub/1")
      .input({2, 1}, {10, 20})
      .input({1, 3}, {1, 2, 3})
      .expect({2, 3}, {9, 8, 7, 19, 18, 17})
      .expect_kernels();
  OpTester(host_, "tenon.mul/1").input({}, {3}).input({2}, {1, 2}).expect({2}, {3, 6}).expect_kernels();
  OpTester(host_, "tenon.add/1")
      .input({2, 3}, std::vector<float>(6))
      .input({4}, std::vector<float>(4))
      .expect_invalid({"[2,3]", "[4]"});
  OpTester(host_, "tenon.add/1")
      .input({2}, std::vector<float>(2))
      .input({2}, std::vector<int32_t>(2))
      .expect_invalid({"f32", "i32"});
}

TEST_F(BinaryTest, Integers) {
  OpTester(host_, "tenon.add/1")
      .input({1}, std::vector<int64_t>{int64_t{1} << 40})
      .input({1}, std::vector<int64_t>{5})
      .expect({1}, {1099511627781.0});
  OpTester(host_, "tenon.mul/1")
      .input({1}, std::vector<int32_t>{1 << 30})
      .input({1}, std::vector<int32_t>{4})
      .expect({1}, {0});
  OpTester(host_, "tenon.div/1")
      .input({3}, std::vector<int32_t>{7, -7, std::numeric_limits<int32_t>::min()})
      .input({3}, std::vector<int32_t>{2, 2, -1})
      .expect({3}, {3, -3, -2147483648.0});
  OpTester(host_, "tenon.mul/1")
      .input({1}, std::vector<uint16_t>{65535})
      .input({1}, std::vector<uint16_t>{65535})
      .expect({1}, {1});
}

TEST_F(BinaryTest, EveryFormatAgrees) {
  for (const char* op : {"tenon.add", "tenon.sub", "tenon.mul", "tenon.div"}) {
    const std::string id = std::string(op) + "/1";
    const std::string kernel = std::string(op) + ".vector.f32";
    OpTester(host_, id).random_input({2, 19, 5, 3}).random_input({2, 19, 5, 3}).expect_kernels({kernel});
    OpTester(host_, id).random_input({2, 19, 5, 3}).random_input({1, 19, 1, 1}).expect_kernels({kernel});
    OpTester(host_, id).random_input({2, 19, 5, 3}).random_input({1, 1, 5, 3}).expect_kernels({kernel});
    OpTester(host_, id).random_input({2, 19, 5, 3}).random_input({1}).expect_kernels({kernel});
  }
}

}  // namespace
}  // namespace tenon::testing
