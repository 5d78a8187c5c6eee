// Expected values by hand; NaN as numpy has it.
#include <gtest/gtest.h>

#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class ArgMaxTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("arg_max")); }
  OpTester arg(const std::string& name, int64_t axis, int64_t keepdims = 1, int64_t last = 0) {
    OpTester tester(host_, "tenon." + name + "/1");
    tester.attr("axis", axis).attr("keepdims", keepdims).attr("select_last_index", last);
    return tester;
  }
  OpTester hardmax(int64_t axis) {
    OpTester tester(host_, "tenon.hardmax/1");
    tester.attr("axis", axis);
    return tester;
  }
  TestHost host_;
};

TEST_F(ArgMaxTest, Values) {
  const std::vector<float> x = {2, 1, 3, 3, 10, 3};
  arg("arg_max", 1).input({2, 3}, x).expect({2, 1}, {2, 1}).expect_kernels({"tenon.arg_max.vector.f32"});
  arg("arg_max", 0, 0).input({2, 3}, x).expect({3}, {1, 1, 0}).expect_kernels({"tenon.arg_max.vector.f32"});
  arg("arg_min", -1, 0).input({2, 3}, x).expect({2}, {1, 0}).expect_kernels({"tenon.arg_min.vector.f32"});
  arg("arg_min", 1, 0, 1).input({2, 3}, x).expect({2}, {1, 2});
  arg("arg_max", 0, 0, 1).input({2, 3}, x).expect({3}, {1, 1, 1});
  arg("arg_max", 0).input<int64_t>({2}, {(int64_t{1} << 53), (int64_t{1} << 53) + 1}).expect({1}, {1});
  arg("arg_min", 0).input<uint8_t>({3}, {255, 0, 0}).expect({1}, {1});
}

TEST_F(ArgMaxTest, NanWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* name : {"arg_max", "arg_min"}) {
    arg(name, 0)
        .input({4}, {1, nan, 5, nan})
        .expect({1}, {1})
        .expect_kernels({std::string("tenon.") + name + ".vector.f32"});
  }
}

TEST_F(ArgMaxTest, KernelsAgree) {
  for (int64_t axis = 0; axis < 3; ++axis) {
    arg("arg_max", axis).random_input({5, 21, 37}).expect_kernels({"tenon.arg_max.vector.f32"});
    arg("arg_min", axis).random_input({5, 21, 37}).expect_kernels({"tenon.arg_min.vector.f32"});
  }
}

TEST_F(ArgMaxTest, WrongAxis) {
  arg("arg_max", 2).random_input({2, 3}).expect_invalid({"axis", "-2 to 1", "2"});
  arg("arg_max", 1).input({2, 0}, std::vector<float>{}).expect_invalid({"axis", "at least 1", "[2,0]"});
  arg("arg_max", 0).input({0, 2}, std::vector<float>{}).expect_invalid({"axis", "at least 1"});
}

TEST_F(ArgMaxTest, Hardmax) {
  hardmax(1).input({2, 3}, {3, 3, 1, 0, 1, 2}).expect({2, 3}, {1, 0, 0, 0, 0, 1});
  hardmax(0).input({2, 2}, {3, 3, 1, 4}).expect({2, 2}, {1, 0, 0, 1});
  hardmax(-1).input({1, 2, 1, 2}, std::vector<float>(4)).expect({1, 2, 1, 2}, {1, 0, 1, 0});
  hardmax(0).input({0}, std::vector<float>{}).expect({0}, {});
  hardmax(2).random_input({2, 3}).expect_invalid({"axis", "-2 to 1"});
}

}  // namespace
}  // namespace tenon::testing
