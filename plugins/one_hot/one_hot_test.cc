// Expected values from ONNX's operator description (OneHot-11) and by hand.
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class OneHotTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("one_hot")); }
  OpTester one_hot(int64_t axis) { return std::move(OpTester(host_, "tenon.one_hot/1").attr("axis", axis)); }
  TestHost host_;
};

TEST_F(OneHotTest, Values) {
  one_hot(-1)
      .input<int64_t>({3}, {0, -1, 1})
      .input<int64_t>({}, {3})
      .constant()
      .input({2}, {2, 5})
      .expect({3, 3}, {5, 2, 2, 2, 2, 5, 2, 5, 2})
      .expect_kernels({"tenon.one_hot.fill"});
  one_hot(0)
      .input<int32_t>({2, 2}, {0, 1, 2, 1})
      .input<int32_t>({1}, {3})
      .constant()
      .input<uint8_t>({2}, {0, 1})
      .expect({3, 2, 2}, {1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0})
      .expect_kernels({"tenon.one_hot.fill"});
  one_hot(-2)
      .input<int64_t>({1, 2}, {1, 0})
      .input<int64_t>({}, {2})
      .constant()
      .input<int16_t>({2}, {0, 9})
      .expect({1, 2, 2}, {0, 9, 9, 0})
      .expect_kernels({"tenon.one_hot.fill"});
}

TEST_F(OneHotTest, OutOfRangeIsOff) {
  one_hot(-1)
      .input<int64_t>({5}, {2, -3, INT64_MAX, INT64_MIN, -2})
      .input<int64_t>({}, {2})
      .constant()
      .input<int64_t>({2}, {0, 1})
      .expect({5, 2}, {0, 0, 0, 0, 0, 0, 0, 0, 1, 0})
      .expect_kernels({"tenon.one_hot.fill"});
}

TEST_F(OneHotTest, Sizes) {
  one_hot(0)
      .input<int64_t>({}, {1})
      .input<int64_t>({}, {2})
      .constant()
      .input({2}, {0, 1})
      .expect({2}, {0, 1})
      .expect_kernels({"tenon.one_hot.fill"});
  one_hot(0)
      .input<int64_t>({3}, {1, 0, 0})
      .input<int64_t>({}, {0})
      .constant()
      .input({2}, {0, 1})
      .expect({0, 3}, {})
      .expect_kernels();
  std::vector<int64_t> indices;
  for (int64_t n = 0; n < 600; ++n) indices.push_back(n * 7 % 300);
  one_hot(1)
      .input<int64_t>({20, 30}, indices)
      .input<int64_t>({}, {200})
      .constant()
      .input({2}, {0, 1})
      .expect_kernels({"tenon.one_hot.fill"});
}

TEST_F(OneHotTest, Errors) {
  const auto indices = [&](int64_t axis) { return std::move(one_hot(axis).input<int64_t>({2}, {0, 1})); };
  indices(2).input<int64_t>({}, {2}).constant().input({2}, {0, 1}).expect_invalid({"axis", "2"});
  indices(0).input<int64_t>({}, {-1}).constant().input({2}, {0, 1}).expect_invalid({"depth", "-1"});
  indices(0).input<int64_t>({}, {2}).input({2}, {0, 1}).expect_invalid({"depth", "known"});
  indices(0).input<int64_t>({}, {2}).constant().input({3}, {0, 1, 2}).expect_invalid({"values", "[3]"});
}

}  // namespace
}  // namespace tenon::testing
