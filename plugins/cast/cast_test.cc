// Expected values by hand, from the rules in the op's description, and from ONNX's tables of Cast 25.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class CastTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("cast")); }
  OpTester cast(int32_t to) {
    OpTester tester(host_, "tenon.cast/1");
    tester.attr("to", DType{to});
    return tester;
  }
  TestHost host_;
};

TEST_F(CastTest, FloatToInteger) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {1.9f, -1.9f, 300.0f, -300.0f, nan, 1e30f};
  cast(TN_I32).input({6}, x).expect({6}, {1, -1, 300, -300, 0, 2147483647.0}).expect_kernels({"tenon.cast.vector"});
  cast(TN_I8).input({6}, x).expect({6}, {1, -1, 127, -128, 0, 127}).expect_kernels({"tenon.cast.vector"});
  cast(TN_U8).input({6}, x).expect({6}, {1, 0, 255, 0, 0, 255}).expect_kernels({"tenon.cast.vector"});
  cast(TN_BOOL).input({4}, {0.0f, -0.0f, 0.5f, nan}).expect({4}, {0, 0, 1, 1}).expect_kernels({"tenon.cast.vector"});
}

TEST_F(CastTest, IntegerToInteger) {
  cast(TN_U8).input({2}, std::vector<int32_t>{300, -1}).expect({2}, {44, 255}).expect_kernels({"tenon.cast.vector"});
  cast(TN_I64).input({2}, std::vector<int32_t>{-5, 7}).expect({2}, {-5, 7}).expect_kernels({"tenon.cast.vector"});
  cast(TN_F32).input({2}, std::vector<int64_t>{int64_t{1} << 24, -3}).expect({2}, {16777216, -3}).expect_kernels();
}

TEST_F(CastTest, FloatWidths) {
  cast(TN_F64).input({2}, {0.5f, -3.0f}).expect({2}, {0.5, -3}).expect_kernels({"tenon.cast.vector"});
  cast(TN_F32).input({2}, std::vector<double>{0.25, 1e300}).expect({2}, {0.25, std::numeric_limits<float>::infinity()});
}

TEST_F(CastTest, EveryIntegerHasAKernel) {
  cast(TN_I16)
      .input({2}, std::vector<uint64_t>{40000, 7})
      .expect({2}, {-25536, 7})
      .expect_kernels({"tenon.cast.vector"});
  cast(TN_U32)
      .input({3}, {-1.0f, 4e9f, 5e9f})
      .expect({3}, {0, 4e9, 4294967295.0})
      .expect_kernels({"tenon.cast.vector"});
  cast(TN_U64)
      .input({2}, {-1.0f, 2e19f})
      .expect({2}, {0, 18446744073709551615.0})
      .expect_kernels({"tenon.cast.vector"});
  cast(TN_F64)
      .input({2}, std::vector<uint16_t>{65535, 1})
      .expect({2}, {65535, 1})
      .expect_kernels({"tenon.cast.vector"});
}

// The reference gives what the host then rounds: within range nothing is to be done here.
TEST_F(CastTest, Float8SaturatesUnlessToldOtherwise) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {0.3f, 1e6f, -1e6f, inf, -inf, nan};
  const auto saturated = [&](double largest) {
    return std::vector<double>{double{0.3f}, largest, -largest, largest, -largest, std::nan("")};
  };
  const std::pair<int32_t, double> kLargest[] = {
      {TN_F8E4M3FN, 448}, {TN_F8E4M3FNUZ, 240}, {TN_F8E5M2, 57344}, {TN_F8E5M2FNUZ, 57344}};
  for (const auto& [dtype, largest] : kLargest) {
    cast(dtype).input({6}, x).expect({6}, saturated(largest));
    OpTester(cast(dtype))
        .attr("saturate", int64_t{0})
        .input({6}, x)
        .expect({6}, {double{0.3f}, 1e6, -1e6, HUGE_VAL, -HUGE_VAL, std::nan("")});
  }
  // No attribute reaches the other small floats.
  cast(TN_F16).input({2}, {1e6f, inf}).expect({2}, {1e6, HUGE_VAL});
}

// Cast 25: up and nearest of its table, down by its words.
TEST_F(CastTest, E8m0RoundsToPowersOfTwo) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto to_e8m0 = [&](const char* mode, int64_t saturate) {
    OpTester tester = cast(TN_F8E8M0);
    tester.attr("round_mode", std::string(mode)).attr("saturate", saturate);
    return tester;
  };
  const double smallest = std::ldexp(1.0, -127), largest = std::ldexp(1.0, 127), none = std::nan("");
  const std::vector<float> x = {1.0f, 1.1f, 1.5f, 3.0f, 0.124f};
  to_e8m0("up", 1).input({5}, x).expect({5}, {1, 2, 2, 4, 0.125});
  to_e8m0("nearest", 1).input({5}, x).expect({5}, {1, 1, 2, 4, 0.125});
  to_e8m0("down", 1).input({5}, x).expect({5}, {1, 1, 1, 2, 0.0625});
  const std::vector<float> edge = {0.0f, inf, std::ldexp(1.25f, 127), 1e-45f, nan};
  to_e8m0("up", 1).input({5}, edge).expect({5}, {smallest, largest, largest, smallest, none}, 0);
  to_e8m0("nearest", 0).input({5}, edge).expect({5}, {none, none, largest, none, none}, 0);
  to_e8m0("up", 0).input({5}, edge).expect({5}, {none, none, none, none, none}, 0);
}

// Integers below a byte keep the low bits of the truncated number: the low 4 bits of -9 are those of 7.
TEST_F(CastTest, SmallIntegersWrap) {
  const std::vector<float> x = {-9, 8.9f, 200, -1};
  const OpTester reference = cast(TN_U4);
  const auto low_bits = [&](int32_t dtype, int bits) {
    std::vector<int> result;
    const HostArray y = cast(dtype).input({4}, x).reference();
    for (const char byte : y.bytes) result.push_back(byte & ((1 << bits) - 1));
    return result;
  };
  EXPECT_EQ(low_bits(TN_I4, 4), (std::vector<int>{7, 8, 8, 15}));
  EXPECT_EQ(low_bits(TN_U4, 4), (std::vector<int>{7, 8, 8, 15}));
  EXPECT_EQ(low_bits(TN_I2, 2), (std::vector<int>{3, 0, 0, 3}));
  cast(TN_F32).input({3}, std::vector<int8_t>{-8, 7, 0}).declared_as(TN_I4).expect({3}, {-8, 7, 0});
}

// 1 + 2^-11 + 2^-40 is just above half way between two f16 numbers. As f32 it is half way and would go down.
TEST_F(CastTest, WideNumbersAreRoundedToSmallFloatsOnce) {
  const double step = std::ldexp(1.0, -11), more = std::ldexp(1.0, -40);
  const HostArray y = cast(TN_F16).input({2}, std::vector<double>{1 + step + more, -(1 + step - more)}).reference();
  EXPECT_GT(y.values<float>()[0], static_cast<float>(1 + step));
  EXPECT_GT(y.values<float>()[1], static_cast<float>(-1 - step));
  const int64_t half = (int64_t{1} << 62) + (int64_t{1} << 54);  // half way between two bf16 numbers
  const HostArray z = cast(TN_BF16).input({2}, std::vector<int64_t>{half, half + 1}).reference();
  EXPECT_EQ(z.values<float>()[0], static_cast<float>(half));
  EXPECT_GT(z.values<float>()[1], static_cast<float>(half));
}

TEST_F(CastTest, Strings) { cast(TN_STRING).input({1}, {1.0f}).expect_invalid({"numbers", "string"}); }

}  // namespace
}  // namespace tenon::testing
