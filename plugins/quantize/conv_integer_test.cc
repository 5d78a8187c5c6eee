// Expected values from ONNX's example of ConvInteger and by hand.
#include <gtest/gtest.h>

#include <random>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

template <class T>
std::vector<T> random_bytes(const Dims& dims, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<T> values(static_cast<size_t>(dims.elements()));
  for (T& value : values) value = static_cast<T>(engine());
  return values;
}

class ConvIntegerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("quantize")); }
  OpTester conv(const std::vector<int64_t>& strides, const std::vector<int64_t>& pads,
                const std::vector<int64_t>& dilations, int64_t groups = 1) {
    OpTester tester(host_, "tenon.conv_integer/1");
    tester.attr("strides", strides).attr("pads", pads).attr("dilations", dilations).attr("groups", groups);
    return tester;
  }
  TestHost host_;
  const std::vector<std::string> kernel_ = {"tenon.conv_integer.gemm"};
};

TEST_F(ConvIntegerTest, PaddingCountsAsZero) {
  conv({1, 1}, {1, 1, 1, 1}, {1, 1})
      .input({1, 1, 3, 3}, std::vector<uint8_t>{2, 3, 4, 5, 6, 7, 8, 9, 10})
      .input({2, 1, 2, 2}, std::vector<uint8_t>{1, 1, 1, 1, 1, 1, 1, 1})
      .input({}, std::vector<uint8_t>{1})
      .input({2}, std::vector<uint8_t>{0, 1})
      .expect({1, 2, 4, 4},
              {1, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
      .expect_kernels(kernel_);
}

// [1, 2, 3, 4] with ones of width 3, stride 2: padded below by 0 and above by 1, and the other way round.
TEST_F(ConvIntegerTest, OneSpatialAxis) {
  const std::vector<int8_t> x = {1, 2, 3, 4}, ones = {1, 1, 1};
  conv({2}, {0, 1}, {1}).input({1, 1, 4}, x).input({1, 1, 3}, ones).expect({1, 1, 2}, {6, 7}).expect_kernels(kernel_);
  conv({2}, {1, 0}, {1}).input({1, 1, 4}, x).input({1, 1, 3}, ones).expect({1, 1, 2}, {3, 9}).expect_kernels(kernel_);
  conv({1}, {0, 0}, {2}).input({1, 1, 4}, x).input({1, 1, 2}, std::vector<int8_t>{1, -1}).expect({1, 1, 2}, {-2, -2});
}

TEST_F(ConvIntegerTest, GroupsAndBias) {
  conv({1, 1}, {0, 0, 0, 0}, {1, 1}, 2)
      .input({1, 2, 1, 2}, std::vector<uint8_t>{1, 2, 3, 4})
      .input({4, 1, 1, 1}, std::vector<int8_t>{1, -1, 2, 0})
      .absent()
      .absent()
      .input({4}, std::vector<int32_t>{0, 0, 100, -7})
      .expect({1, 4, 1, 2}, {1, 2, -1, -2, 106, 108, -7, -7})
      .expect_kernels(kernel_);
}

TEST_F(ConvIntegerTest, ThreeSpatialAxesRunOnTheReference) {
  conv({1, 1, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1})
      .input({1, 1, 2, 2, 2}, std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8})
      .input({1, 1, 2, 1, 2}, std::vector<int8_t>{1, 1, 1, -1})
      .expect({1, 1, 1, 2, 1}, {2, 6});
}

TEST_F(ConvIntegerTest, KernelsAgreeWithTheReference) {
  struct Case {
    Dims x, weights;
    std::vector<int64_t> strides, pads, dilations;
    int64_t groups;
  };
  const Case cases[] = {
      {{2, 3, 9, 11}, {5, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
      {{1, 6, 12, 7}, {4, 3, 3, 2}, {2, 1}, {0, 2, 1, 0}, {2, 3}, 2},
      {{2, 17, 5, 9}, {33, 17, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
      {{1, 40, 6, 6}, {70, 40, 5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}, 1},
      {{2, 8, 10, 13}, {8, 1, 3, 5}, {2, 2}, {1, 2, 1, 2}, {1, 1}, 8},
      {{1, 4, 7, 7}, {4, 1, 3, 3}, {1, 1}, {5, 5, 5, 5}, {2, 2}, 4},
      {{1, 2, 3, 3}, {3, 2, 7, 7}, {1, 1}, {6, 6, 6, 6}, {1, 1}, 1},
  };
  for (const Case& c : cases) {
    for (const bool constant : {false, true}) {
      OpTester first = conv(c.strides, c.pads, c.dilations, c.groups);
      first.input(c.x, random_bytes<uint8_t>(c.x, 1)).input(c.weights, random_bytes<int8_t>(c.weights, 2));
      if (constant) first.constant();
      first.input({}, std::vector<uint8_t>{131}).input({c.weights[0]}, random_bytes<int8_t>({c.weights[0]}, 3));
      if (constant) first.constant();
      first.input({c.weights[0]}, std::vector<int32_t>(static_cast<size_t>(c.weights[0]), -1234))
          .expect_kernels(kernel_);
      OpTester second = conv(c.strides, c.pads, c.dilations, c.groups);
      second.input(c.x, random_bytes<int8_t>(c.x, 1)).input(c.weights, random_bytes<uint8_t>(c.weights, 2));
      second.expect_kernels(kernel_);
    }
  }
}

TEST_F(ConvIntegerTest, Errors) {
  const std::vector<uint8_t> nine(9), four(4);
  const std::vector<int64_t> ones = {1, 1}, none = {0, 0, 0, 0};
  conv(ones, none, ones).input({3, 3}, nine).input({2, 2}, four).expect_invalid({"rank 3", "[3,3]"});
  conv(ones, none, ones).input({1, 1, 3, 3}, nine).input({1, 2, 1, 2}, four).expect_invalid({"weights", "[1,2,1,2]"});
  conv({1}, none, ones).input({1, 1, 3, 3}, nine).input({1, 1, 2, 2}, four).expect_invalid({"strides"});
  conv(ones, {0, 0, 0, -1}, ones).input({1, 1, 3, 3}, nine).input({1, 1, 2, 2}, four).expect_invalid({"pads", "-1"});
  conv(ones, none, {3, 3}).input({1, 1, 3, 3}, nine).input({1, 1, 2, 2}, four).expect_invalid({"does not fit"});
  conv(ones, none, ones)
      .input({1, 1, 3, 3}, nine)
      .input({1, 1, 2, 2}, four)
      .input({2}, std::vector<uint8_t>{1, 1})
      .expect_invalid({"x_zero_point", "[2]"});
}

}  // namespace
}  // namespace tenon::testing
