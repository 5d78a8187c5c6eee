// Expected values from the definition: logistic(0) = 0.5; softmax of (0, ln 3) = (1/4, 3/4).
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class RegionTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("region")); }
  TestHost host_;
};

OpTester region(TestHost& host, int64_t anchors, int64_t classes, int64_t softmax) {
  OpTester tester(host, "tenon.region/1");
  tester.attr("anchors", anchors).attr("classes", classes).attr("coords", int64_t{4}).attr("softmax", softmax);
  return tester;
}

TEST_F(RegionTest, Values) {
  const float ln3 = std::log(3.0f);
  region(host_, 1, 2, 1)
      .input({1, 7, 1, 1}, {0, 0, 7, -2, 0, 0, ln3})
      .expect({1, 7, 1, 1}, {0.5, 0.5, 7, -2, 0.5, 0.25, 0.75})
      .expect_kernels({"tenon.region.vector.f32"});
  region(host_, 1, 2, 0)
      .input({1, 7, 1, 1}, {0, 0, 7, -2, 0, 0, ln3})
      .expect({1, 7, 1, 1}, {0.5, 0.5, 7, -2, 0.5, 0.5, 0.75})
      .expect_kernels({"tenon.region.vector.f32"});
}

TEST_F(RegionTest, Grids) {
  region(host_, 5, 20, 1).random_input({2, 125, 13, 9}, 3).expect_kernels({"tenon.region.vector.f32"});
}

TEST_F(RegionTest, WrongChannels) {
  region(host_, 5, 20, 1).random_input({1, 120, 2, 2}).expect_invalid({"125", "[1,120,2,2]"});
  // (2^61 + 1) * 8 is 8 in 64 bits.
  region(host_, (int64_t{1} << 61) + 1, 3, 1).random_input({1, 8, 2, 2}).expect_invalid({"channels", "64 bits"});
  region(host_, 1, INT64_MAX, 1).random_input({1, 7, 2, 2}).expect_invalid({"64 bits"});
}

}  // namespace
}  // namespace tenon::testing
