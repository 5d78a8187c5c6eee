// Expected values by hand.
#include <gtest/gtest.h>

#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

class ClipTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("clip")); }
  TestHost host_;
};

TEST_F(ClipTest, BoundsMayBeAbsent) {
  const std::vector<float> x = {-5, -1, 0.5f, 7, kNan, kInf};
  OpTester(host_, "tenon.clip/1")
      .input({6}, x)
      .input({}, {-2})
      .input({}, {3})
      .expect({6}, {-2, -1, 0.5, 3, kNan, 3})
      .expect_kernels({"tenon.clip.vector.f32"});
  OpTester(host_, "tenon.clip/1")
      .input({6}, x)
      .input({1}, {0})
      .absent()
      .expect({6}, {0, 0, 0.5, 7, kNan, kInf})
      .expect_kernels({"tenon.clip.vector.f32"});
  OpTester(host_, "tenon.clip/1")
      .input({6}, x)
      .absent()
      .input({}, {0})
      .expect({6}, {-5, -1, 0, 0, kNan, 0})
      .expect_kernels({"tenon.clip.vector.f32"});
  OpTester(host_, "tenon.clip/1")
      .input({6}, x)
      .absent()
      .absent()
      .expect({6}, {-5, -1, 0.5, 7, kNan, kInf})
      .expect_kernels();
  OpTester(host_, "tenon.clip/1").input({6}, x).expect({6}, {-5, -1, 0.5, 7, kNan, kInf}).expect_kernels();
}

TEST_F(ClipTest, MinAboveMaxGivesMax) {
  OpTester(host_, "tenon.clip/1")
      .input({3}, {-1, 2, 9})
      .input({}, {5})
      .input({}, {1})
      .expect({3}, {1, 1, 1})
      .expect_kernels();
}

TEST_F(ClipTest, NanBound) {
  OpTester(host_, "tenon.clip/1")
      .input({2}, {1, 2})
      .input({}, {kNan})
      .input({}, {1})
      .expect({2}, {kNan, kNan})
      .expect_kernels();
}

TEST_F(ClipTest, Integers) {
  const int64_t large = (int64_t{1} << 60) + 1;
  OpTester(host_, "tenon.clip/1")
      .input({2}, std::vector<int64_t>{large, -7})
      .input({}, std::vector<int64_t>{0})
      .absent()
      .expect({2}, {static_cast<double>(large), 0});
  OpTester(host_, "tenon.clip/1")
      .input({3}, std::vector<int8_t>{-128, 3, 127})
      .input({}, std::vector<int8_t>{-1})
      .input({}, std::vector<int8_t>{100})
      .expect({3}, {-1, 3, 100});
}

TEST_F(ClipTest, Refused) {
  OpTester(host_, "tenon.clip/1").input({2}, {1, 2}).input({2}, {1, 2}).expect_invalid({"min", "one element", "[2]"});
  OpTester(host_, "tenon.clip/1")
      .input({2}, {1, 2})
      .absent()
      .input({}, std::vector<int32_t>{1})
      .expect_invalid({"max", "i32"});
}

// 21 channels leave the last block of a blocked format half empty.
TEST_F(ClipTest, EveryFormatAgrees) {
  OpTester(host_, "tenon.clip/1")
      .random_input({1, 21, 3, 2})
      .input({}, {0.25f})
      .input({}, {0.5f})
      .expect_kernels({"tenon.clip.vector.f32"});
}

}  // namespace
}  // namespace tenon::testing
