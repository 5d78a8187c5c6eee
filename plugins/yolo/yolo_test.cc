// Expected values from the definition: logistic(0) = 0.5, which scale_x_y keeps; logistic(ln 3) = 0.75.
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class YoloTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("yolo")); }
  TestHost host_;
};

OpTester yolo(TestHost& host, int64_t anchors, int64_t classes, double scale) {
  OpTester tester(host, "tenon.yolo/1");
  tester.attr("anchors", anchors).attr("classes", classes).attr("scale_x_y", scale);
  return tester;
}

TEST_F(YoloTest, Values) {
  const float ln3 = std::log(3.0f);
  yolo(host_, 1, 1, 1)
      .input({1, 6, 1, 1}, {0, ln3, 7, -2, ln3, 0})
      .expect({1, 6, 1, 1}, {0.5, 0.75, 7, -2, 0.75, 0.5})
      .expect_kernels({"tenon.yolo.vector.f32"});
  // 0.75 * 1.2 - 0.5 * 0.2 = 0.8
  yolo(host_, 1, 1, 1.2)
      .input({1, 6, 1, 1}, {0, ln3, 7, -2, ln3, 0})
      .expect({1, 6, 1, 1}, {0.5, 0.8, 7, -2, 0.75, 0.5})
      .expect_kernels({"tenon.yolo.vector.f32"});
}

TEST_F(YoloTest, Grids) {
  yolo(host_, 3, 80, 1.05).random_input({2, 255, 10, 7}, 3).expect_kernels({"tenon.yolo.vector.f32"});
}

TEST_F(YoloTest, WrongChannels) {
  yolo(host_, 3, 80, 1).random_input({1, 256, 2, 2}).expect_invalid({"255", "[1,256,2,2]"});
  yolo(host_, (int64_t{1} << 61) + 1, 3, 1).random_input({1, 8, 2, 2}).expect_invalid({"channels", "64 bits"});
}

}  // namespace
}  // namespace tenon::testing
