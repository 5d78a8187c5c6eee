// Expected values from the operator descriptions of ONNX Shape-15 and Size-13.
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class ShapeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("shape")); }
  void expect(int64_t start, int64_t end, const std::vector<double>& dims) {
    OpTester(host_, "tenon.shape/1")
        .attr("start", start)
        .attr("end", end)
        .random_input({2, 3, 4})
        .expect({static_cast<int64_t>(dims.size())}, dims)
        .expect_kernels({"tenon.shape.copy"});
  }
  TestHost host_;
};

TEST_F(ShapeTest, Values) {
  OpTester(host_, "tenon.shape/1").random_input({2, 3, 4}).expect({3}, {2, 3, 4}).expect_kernels({"tenon.shape.copy"});
  OpTester(host_, "tenon.shape/1").input({0, 5}, std::vector<float>{}).expect({2}, {0, 5}).expect_kernels();
  OpTester(host_, "tenon.shape/1").input({}, {1}).expect({0}, {}).expect_kernels();
}

TEST_F(ShapeTest, StartAndEnd) {
  expect(-1, INT64_MAX, {4});
  expect(0, -1, {2, 3});
  expect(1, 2, {3});
  expect(2, 1, {});
  expect(INT64_MIN, INT64_MAX, {2, 3, 4});
  expect(INT64_MAX, INT64_MIN, {});
  expect(-10, 1, {2});
}

TEST_F(ShapeTest, Size) {
  OpTester(host_, "tenon.size/1").random_input({2, 3, 4}).expect({}, {24}).expect_kernels({"tenon.size.copy"});
  OpTester(host_, "tenon.size/1").input({0, 5}, std::vector<float>{}).expect({}, {0}).expect_kernels();
  OpTester(host_, "tenon.size/1").input({}, {1}).expect({}, {1}).expect_kernels();
}

}  // namespace
}  // namespace tenon::testing
