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
      .constant()
      .expect({3}, {3, -3, -2147483648.0})
      .expect_kernels();
  OpTester(host_, "tenon.mul/1")
      .input({1}, std::vector<uint16_t>{65535})
      .input({1}, std::vector<uint16_t>{65535})
      .expect({1}, {1});
}

TEST_F(BinaryTest, MinMaxPrelu) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a = {1, -2, 3, nan, 5};
  const std::vector<float> b = {4, -3, 3, 1, nan};
  OpTester(host_, "tenon.min/1").input({5}, a).input({5}, b).expect({5}, {1, -3, 3, nan, nan}).expect_kernels();
  OpTester(host_, "tenon.max/1").input({5}, a).input({5}, b).expect({5}, {4, -2, 3, nan, nan}).expect_kernels();
  OpTester(host_, "tenon.prelu/1")
      .input({2, 3}, {-1, 0, 1, -2, 3, -4})
      .input({3}, {0.5f, 7, 2})
      .expect({2, 3}, {-0.5, 0, 1, -1, 3, -8})
      .expect_kernels();
  OpTester(host_, "tenon.prelu/1")
      .input({3}, std::vector<float>(3))
      .input({2, 1}, std::vector<float>(2))
      .expect_invalid({"[3]", "[2,1]"});
  OpTester(host_, "tenon.prelu/1")
      .input({2}, std::vector<int32_t>{-3, 4})
      .input({1}, std::vector<int32_t>{2})
      .expect({2}, {-6, 4});
  OpTester(host_, "tenon.max/1")
      .input({2}, std::vector<uint64_t>{~uint64_t{0}, 1})
      .input({}, std::vector<uint64_t>{2})
      .expect({2}, {18446744073709551615.0, 2});
}

TEST_F(BinaryTest, BoolsAreNoNumbers) {
  OpTester(host_, "tenon.add/1").bools({1}, {1}).bools({1}, {1}).expect_invalid({"number", "bool"});
}

TEST_F(BinaryTest, IntegerKernels) {
  for (const char* op : {"add", "sub", "mul", "min", "max", "prelu"}) {
    const std::string name = std::string("tenon.") + op;
    OpTester(host_, name + "/1")
        .input({2, 3}, std::vector<int64_t>{-5, int64_t{1} << 40, 7, 0, -1, 9})
        .input({3}, std::vector<int64_t>{3, -2, 1})
        .expect_kernels({name + ".vector.int"});
    OpTester(host_, name + "/1")
        .input({2}, std::vector<int32_t>{-5, 9})
        .input({}, std::vector<int32_t>{3})
        .expect_kernels({name + ".vector.int"});
  }
}

TEST_F(BinaryTest, Pow) {
  const double inf = std::numeric_limits<double>::infinity();
  OpTester(host_, "tenon.pow/1")
      .input({6}, {2, 9, -2, 0, 0, 4})
      .input({6}, {3, 0.5f, 3, 0, -1, -0.5f})
      .expect({6}, {8, 3, -8, 1, inf, 0.5})
      .expect_kernels();
  for (const float exponent : {2.0f, 0.5f, 1.7f}) {
    OpTester(host_, "tenon.pow/1")
        .input({2, 2}, {0.25f, 1, 2, 3})
        .input({}, {exponent})
        .expect({2, 2}, {std::pow(0.25, exponent), 1, std::pow(2.0, exponent), std::pow(3.0, exponent)})
        .expect_kernels({"tenon.pow.scalar.f32"});
  }
  OpTester(host_, "tenon.pow/1").random_input({1, 19, 3, 2}).input({1}, std::vector<float>{2}).expect_kernels();
}

TEST_F(BinaryTest, PowOfMixedDtypes) {
  OpTester(host_, "tenon.pow/1")
      .input({3}, std::vector<float>{1.5f, 2, -3})
      .input({3}, std::vector<int64_t>{2, -1, 3})
      .expect({3}, {2.25, 0.5, -27});
  OpTester(host_, "tenon.pow/1")
      .input({4}, std::vector<int64_t>{3, -2, 2, 1})
      .input({4}, std::vector<int64_t>{39, 3, -1, -5})
      .expect({4}, {4052555153018976267.0, -8, 0, 1});
  OpTester(host_, "tenon.pow/1")
      .input({3}, std::vector<int32_t>{2, 9, 2})
      .input({3}, std::vector<float>{3, 0.5f, 100})
      .expect({3}, {8, 3, 2147483647});
  OpTester(host_, "tenon.pow/1")
      .input({1}, std::vector<uint8_t>{16})
      .input({1}, std::vector<uint8_t>{2})
      .expect({1}, {0});
  OpTester(host_, "tenon.pow/1").input({1}, std::vector<float>{1}).absent().expect_invalid({"none"});
}

// Python: -7 % 3 is 2 and 7 % -3 is -2; C: -7 % 3 is -1 and 7 % -3 is 1.
TEST_F(BinaryTest, Mod) {
  const std::vector<int32_t> a = {7, -7, 7, -7, 6}, b = {3, 3, -3, -3, -3};
  OpTester(host_, "tenon.mod/1").input({5}, a).input({5}, b).constant().expect({5}, {1, 2, -2, -1, 0}).expect_kernels();
  OpTester(host_, "tenon.mod/1")
      .attr("sign", "dividend")
      .input({5}, a)
      .input({5}, b)
      .constant()
      .expect({5}, {1, -1, 1, -1, 0})
      .expect_kernels();
  const std::vector<float> x = {5.5f, -5.5f, 5.5f}, y = {2, 2, -2};
  OpTester(host_, "tenon.mod/1")
      .attr("sign", "dividend")
      .input({3}, x)
      .input({3}, y)
      .expect({3}, {1.5, -1.5, 1.5})
      .expect_kernels();
  OpTester(host_, "tenon.mod/1").input({3}, x).input({3}, y).expect({3}, {1.5, 0.5, -0.5}).expect_kernels();
  OpTester(host_, "tenon.mod/1")
      .input({2}, std::vector<int64_t>{std::numeric_limits<int64_t>::min(), 5})
      .input({}, std::vector<int64_t>{-1})
      .expect({2}, {0, 0});
  OpTester(host_, "tenon.mod/1")
      .input({2}, std::vector<uint8_t>{250, 7})
      .input({}, std::vector<uint8_t>{240})
      .expect({2}, {10, 7});
}

TEST_F(BinaryTest, EveryFormatAgrees) {
  for (const char* op : {"tenon.add", "tenon.sub", "tenon.mul", "tenon.div", "tenon.min", "tenon.max", "tenon.prelu"}) {
    const std::string id = std::string(op) + "/1";
    const std::string kernel = std::string(op) + ".vector.f32";
    OpTester(host_, id).random_input({2, 19, 5, 3}).random_input({2, 19, 5, 3}).expect_kernels({kernel});
    OpTester(host_, id).random_input({2, 19, 5, 3}).random_input({1, 19, 1, 1}).expect_kernels({kernel});
    OpTester(host_, id).random_input({2, 19, 5, 3}).random_input({1, 1, 5, 3}).expect_kernels({kernel});
    OpTester(host_, id).random_input({2, 19, 5, 3}).random_input({1}).expect_kernels({kernel});
    OpTester(host_, id).random_input({2, 19, 5, 3}).input({}, {0.75f}).expect_kernels({kernel});
    if (id == "tenon.prelu/1") continue;
    OpTester(host_, id).input({1, 1, 1, 1}, {0.75f}).random_input({2, 19, 5, 3}).expect_kernels({kernel});
  }
}

}  // namespace
}  // namespace tenon::testing
