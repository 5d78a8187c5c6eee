// Expected values from the examples of ONNX's operator description (Compress-11) and numpy's compress.
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class CompressTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("compress")); }
  template <class T = float>
  OpTester compress(int64_t axis, const Dims& dims, const std::vector<T>& x, const std::vector<uint8_t>& condition) {
    OpTester tester(host_, "tenon.compress/1");
    tester.attr("axis", axis).template input<T>(dims, x);
    tester.bools({static_cast<int64_t>(condition.size())}, condition);
    return tester;
  }
  TestHost host_;
};

TEST_F(CompressTest, Values) {
  compress(0, {3, 2}, {1, 2, 3, 4, 5, 6}, {0, 1, 1}).constant().expect({2, 2}, {3, 4, 5, 6});
  compress(1, {3, 2}, {1, 2, 3, 4, 5, 6}, {0, 1}).constant().expect({3, 1}, {2, 4, 6});
  compress<int16_t>(-1, {6}, {1, 2, 3, 4, 5, 6}, {0, 1, 0, 0, 1}).constant().expect({2}, {2, 5});
  compress<int64_t>(1, {2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {7, 0, 1})
      .constant()
      .expect({2, 2, 2}, {0, 1, 4, 5, 6, 7, 10, 11});
  compress<double>(0, {3}, {1, 2, 3}, {0, 0, 0}).constant().expect({0}, {});
  compress<uint8_t>(0, {3}, {1, 2, 3}, {}).expect({0}, {});
  compress(0, {2}, {1, 2}, {0, 1, 0, 0}).constant().expect({1}, {2});
}

TEST_F(CompressTest, Bound) {
  compress(0, {3, 2}, {1, 2, 3, 4, 5, 6}, {0, 1, 1}).expect_bound({3, 2}, {3, 4, 5, 6, 0, 0});
  compress(1, {3, 2}, {1, 2, 3, 4, 5, 6}, {0, 1}).expect_bound({3, 2}, {2, 0, 4, 0, 6, 0});
  compress<int16_t>(-1, {6}, {1, 2, 3, 4, 5, 6}, {0, 1, 0, 0, 1}).expect_bound({5}, {2, 5, 0, 0, 0});
  compress(0, {2, 0}, {}, {1}).expect_bound({1, 0}, {});
  // Random contents may pick what is not there.
  compress<double>(0, {2}, {1, 2}, {0, 1, 1, 1}).expect_bound({2}, {2, 0});
}

TEST_F(CompressTest, Errors) {
  compress(0, {2}, {1, 2}, {0, 1}).expect_invalid({"condition", "known"});
  compress(0, {2}, {1, 2}, {0, 1, 1}).constant().expect_invalid({"condition", "position 2", "axis of 2"});
  compress(1, {2}, {1, 2}, {0, 1}).constant().expect_invalid({"axis", "1"});
  OpTester(host_, "tenon.compress/1").random_input({2}).random_input({2}).expect_invalid({"condition", "bool", "f32"});
  OpTester(host_, "tenon.compress/1").random_input({2}).bools({1, 1}, {1}).expect_invalid({"condition", "[1,1]"});
}

}  // namespace
}  // namespace tenon::testing
