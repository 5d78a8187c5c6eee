// Bit patterns by hand, from IEEE 754 and the tables of the 8-bit floats.
#include <gtest/gtest.h>

#include <limits>

#include "plugins/common/small_float.h"
#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class BitCastTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("cast")); }
  OpTester bit_cast(int32_t from, int32_t to) {
    OpTester tester(host_, "tenon.bit_cast/1");
    tester.attr("from", DType{from}).attr("to", DType{to});
    return tester;
  }
  TestHost host_;
};

TEST_F(BitCastTest, WideTypes) {
  const std::vector<std::string> kernel = {"tenon.bit_cast.copy"};
  bit_cast(TN_F32, TN_I32).input({2}, {1.0f, -2.0f}).expect({2}, {0x3F800000, -1073741824.0}).expect_kernels(kernel);
  bit_cast(TN_U16, TN_I16).input({2}, std::vector<uint16_t>{65535, 1}).expect({2}, {-1, 1}).expect_kernels(kernel);
  bit_cast(TN_I64, TN_F64).input({1}, std::vector<int64_t>{0x4000000000000000}).expect({1}, {2}).expect_kernels(kernel);
  bit_cast(TN_U8, TN_BOOL).input({2}, std::vector<uint8_t>{0, 1}).expect({2}, {0, 1}).expect_kernels(kernel);
}

TEST_F(BitCastTest, SmallTypes) {
  bit_cast(TN_F16, TN_U16).input({2}, {1.0f, -0.0f}).declared_as(TN_F16).expect({2}, {0x3C00, 0x8000});
  bit_cast(TN_U16, TN_BF16).input({2}, std::vector<uint16_t>{0x3FC0, 0xFF80}).expect({2}, {1.5, -HUGE_VAL});
  bit_cast(TN_F8E4M3FN, TN_U8).input({3}, {1.0f, 448.0f, -0.0f}).declared_as(TN_F8E4M3FN).expect({3}, {56, 126, 128});
  bit_cast(TN_I8, TN_F8E5M2).input({2}, std::vector<int8_t>{0x3C, -4}).expect({2}, {1, -HUGE_VAL});
  bit_cast(TN_F8E8M0, TN_U8).input({2}, {1.0f, 0.5f}).declared_as(TN_F8E8M0).expect({2}, {127, 126});
  // 0xD is -3 as i4, 13 as u4 and -3 as f4e2m1.
  bit_cast(TN_I4, TN_U4).input({1}, std::vector<int8_t>{-3}).declared_as(TN_I4).expect({1}, {13});
  bit_cast(TN_U4, TN_F4E2M1).input({2}, std::vector<uint8_t>{13, 7}).declared_as(TN_U4).expect({2}, {-3, 6});
  bit_cast(TN_F4E2M1, TN_U4).input({2}, {-3.0f, 0.5f}).declared_as(TN_F4E2M1).expect({2}, {13, 1});
}

// Infinities and every NaN too.
TEST_F(BitCastTest, EveryPatternSurvives) {
  for (const int32_t dtype : {TN_F16, TN_BF16, TN_F8E4M3FN, TN_F8E4M3FNUZ, TN_F8E5M2, TN_F8E5M2FNUZ, TN_F8E8M0}) {
    for (uint32_t bits = 0; bits < (dtype <= TN_BF16 ? 65536u : 256u); ++bits) {
      ASSERT_EQ(plugins::small_float_bits(dtype, plugins::small_float_value(dtype, bits)), bits) << dtype_name(dtype);
    }
  }
  // 65520 is half way between the largest f16 and what would be next; 2049 between two of them.
  EXPECT_EQ(plugins::small_float_bits(TN_F16, 65519.0f), 0x7BFFu);
  EXPECT_EQ(plugins::small_float_bits(TN_F16, 65520.0f), 0x7C00u);
  EXPECT_EQ(plugins::small_float_bits(TN_F16, 2049.0f), 0x6800u);
  EXPECT_EQ(plugins::small_float_bits(TN_F16, 2051.0f), 0x6802u);
  EXPECT_EQ(plugins::small_float_bits(TN_BF16, -3.4e38f), 0xFF80u);
  EXPECT_EQ(plugins::small_float_bits(TN_F8E4M3FN, -500.0f), 0xFFu);
  EXPECT_EQ(plugins::small_float_bits(TN_F8E4M3FNUZ, -1e-9f), 0x00u);
  EXPECT_EQ(plugins::small_float_bits(TN_F4E2M1, -100.0f), 0xFu);
  EXPECT_EQ(plugins::largest_of(TN_F8E4M3FN), 448.0f);
  EXPECT_EQ(plugins::largest_of(TN_F8E4M3FNUZ), 240.0f);
  EXPECT_EQ(plugins::largest_of(TN_F8E5M2), 57344.0f);
  EXPECT_EQ(plugins::largest_of(TN_F4E2M1), 6.0f);
}

TEST_F(BitCastTest, Errors) {
  bit_cast(TN_F32, TN_F16).input({1}, {1.0f}).expect_invalid({"32 bits", "f16", "16"});
  bit_cast(TN_F16, TN_U16).input({1}, {1.0f}).expect_invalid({"expected f16", "f32"});
}

}  // namespace
}  // namespace tenon::testing
