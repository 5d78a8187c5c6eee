// Expected values by hand from the formulas of ONNX's QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class QuantizeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("quantize")); }
  OpTester quantize(int32_t to, int32_t precision = TN_F32) {
    OpTester tester(host_, "tenon.quantize/1");
    tester.attr("to", DType{to}).attr("precision", DType{precision});
    return tester;
  }
  OpTester dequantize(int32_t to = TN_F32) {
    OpTester tester(host_, "tenon.dequantize/1");
    tester.attr("to", DType{to});
    return tester;
  }
  OpTester dynamic_quantize(int output) {
    OpTester tester(host_, "tenon.dynamic_quantize/1");
    tester.outputs(3, output);
    return tester;
  }
  TestHost host_;
  const float nan_ = std::numeric_limits<float>::quiet_NaN();
  const float inf_ = std::numeric_limits<float>::infinity();
};

// Ties go to the even number before the zero point is added: 1 / 2 = 0.5 -> 0, 3 / 2 = 1.5 -> 2.
TEST_F(QuantizeTest, OneScale) {
  quantize(TN_U8)
      .input({8}, {0, 1, 3, 5, 1000, -254, -1000, 2.1f})
      .input({}, {2.0f})
      .input({}, std::vector<uint8_t>{127})
      .expect({8}, {127, 127, 129, 129, 255, 0, 0, 128})
      .expect_kernels({"tenon.quantize.vector.u8"});
  quantize(TN_I8)
      .input({5}, {nan_, inf_, -inf_, -1, 3})
      .input({1}, {2.0f})
      .absent()
      .expect({5}, {-128, 127, -128, 0, 2})
      .expect_kernels({"tenon.quantize.vector.i8"});
  quantize(TN_U16)
      .input({4}, {-1, 131071, 3, 5})
      .input({}, {2.0f})
      .input({}, std::vector<uint16_t>{32767})
      .expect({4}, {32767, 65535, 32769, 32769})
      .expect_kernels({"tenon.quantize.vector.u16"});
  quantize(TN_I16)
      .input({2}, {-1e9f, 7})
      .input({}, {2.0f})
      .absent()
      .expect({2}, {-32768, 4})
      .expect_kernels({"tenon.quantize.vector.i16"});
}

TEST_F(QuantizeTest, AnAxis) {
  quantize(TN_U8)
      .input({1, 3, 2}, {-162, 10, -100, 232, -20, -50})
      .input({3}, {2.0f, 4.0f, 5.0f})
      .input({3}, std::vector<uint8_t>{84, 24, 196})
      .expect({1, 3, 2}, {3, 89, 0, 82, 192, 186})
      .expect_kernels({"tenon.quantize.vector.u8"});
  quantize(TN_I8)
      .attr("axis", int64_t{-1})
      .input({2, 3}, {2, 8, 15, -2, -6, -1000})
      .input({3}, {2.0f, 4.0f, 5.0f})
      .input({3}, std::vector<int8_t>{0, 1, 2})
      .expect({2, 3}, {1, 3, 5, -1, -1, -128})
      .expect_kernels({"tenon.quantize.vector.i8"});
}

TEST_F(QuantizeTest, LargeTensorsAgree) {
  quantize(TN_I8)
      .random_input({3, 70, 301}, 20)
      .random_input({70})
      .absent()
      .expect_kernels({"tenon.quantize.vector.i8"});
  quantize(TN_U8)
      .attr("axis", int64_t{2})
      .random_input({3, 70, 301}, 20)
      .random_input({301})
      .absent()
      .expect_kernels({"tenon.quantize.vector.u8"});
  quantize(TN_U8).random_input({100003}, 2000).input({}, {7.5f}).absent().expect_kernels({"tenon.quantize.vector.u8"});
}

// 5 positions in blocks of 2: the last block has one.
TEST_F(QuantizeTest, Blocks) {
  quantize(TN_I8)
      .attr("axis", int64_t{1})
      .attr("block_size", int64_t{2})
      .input({2, 5}, {2, 4, 6, 8, 10, 20, 40, 60, 80, 100})
      .input({2, 3}, {1, 2, 5, 10, 20, 50})
      .input({2, 3}, std::vector<int8_t>{0, 1, 2, 0, 1, 2})
      .expect({2, 5}, {2, 4, 4, 5, 4, 2, 4, 4, 5, 4});
  dequantize()
      .attr("axis", int64_t{0})
      .attr("block_size", int64_t{2})
      .input({3, 2}, std::vector<uint8_t>{3, 89, 34, 200, 74, 59})
      .input({2, 2}, {3, 2, 4, 1})
      .input({2, 2}, std::vector<uint8_t>{1, 0, 4, 9})
      .expect({3, 2}, {6, 178, 99, 400, 280, 50});
}

// Of 4 and 2 bits the reference sees whole bytes; the values must lie in the small range.
TEST_F(QuantizeTest, SmallIntegers) {
  const std::vector<float> x = {0, 2.5f, 4.8f, 8.6f, -30, 6};
  const auto of = [&](int32_t dtype) {
    OpTester tester = quantize(dtype);
    tester.input({6}, x).input({}, {0.5f}).absent();
    return tester;
  };
  of(TN_U4).expect({6}, {0, 5, 10, 15, 0, 12});
  of(TN_I4).expect({6}, {0, 5, 7, 7, -8, 7});
  of(TN_U2).expect({6}, {0, 3, 3, 3, 0, 3});
  of(TN_I2).expect({6}, {0, 1, 1, 1, -2, 1});
}

TEST_F(QuantizeTest, SmallFloats) {
  const auto f8 = [&](int64_t saturate) {
    OpTester tester = quantize(TN_F8E4M3FN);
    tester.attr("saturate", saturate).input({3}, {1, -1e6f, nan_}).input({}, {2.0f}).absent();
    return tester;
  };
  f8(1).expect({3}, {0.5, -448, std::nan("")});
  f8(0).expect({3}, {0.5, -500000, std::nan("")});  // which the host makes NaN
  quantize(TN_F4E2M1).input({2}, {8.6f, -30}).input({}, {2.0f}).absent().expect({2}, {4.3, -15}, 1e-6);
}

// 1 / 3 as f16 is 0.333251953125, times 3 * 2^k rounds elsewhere than the exact quotient: 4097 / 2 = 2048.5 is a tie in
// f16 only through its rounding to 2048.
TEST_F(QuantizeTest, TheQuotientHasTheGivenPrecision) {
  quantize(TN_I16, TN_F16).input({2}, {4097, 4103}).input({}, {2.0f}).absent().expect({2}, {2048, 2052});
  quantize(TN_I16, TN_F32).input({2}, {4097, 4103}).input({}, {2.0f}).absent().expect({2}, {2048, 2052});
  quantize(TN_I16, TN_F16).input({1}, {8201}).input({}, {2.0f}).absent().expect({1}, {4100});
  quantize(TN_I16, TN_F32).input({1}, {8203}).input({}, {2.0f}).absent().expect({1}, {4102});
  quantize(TN_I16, TN_BF16).input({1}, {515}).input({}, {2.0f}).absent().expect({1}, {258});
  quantize(TN_U8, TN_F64)
      .input({2}, std::vector<int32_t>{7, -9})
      .input({}, std::vector<int32_t>{2})
      .absent()
      .expect({2}, {4, 0});
}

TEST_F(QuantizeTest, Dequantize) {
  dequantize()
      .input({4}, std::vector<uint8_t>{0, 3, 128, 255})
      .input({}, {2.0f})
      .input({}, std::vector<uint8_t>{128})
      .expect({4}, {-256, -250, 0, 254})
      .expect_kernels({"tenon.dequantize.vector.u8"});
  dequantize()
      .input({1, 3, 2}, std::vector<int8_t>{3, 89, 34, -56, 74, 59})
      .input({3}, {2.0f, 4.0f, 5.0f})
      .input({3}, std::vector<int8_t>{84, 24, -60})
      .expect({1, 3, 2}, {-162, 10, 40, -320, 670, 595})
      .expect_kernels({"tenon.dequantize.vector.i8"});
  dequantize()
      .input({2}, std::vector<int32_t>{2147483647, -16777217})
      .input({}, {0.5f})
      .input({}, std::vector<int32_t>{-1})
      .expect({2}, {1073741824, -8388608})
      .expect_kernels({"tenon.dequantize.vector.i32"});
  dequantize()
      .input({2}, std::vector<int16_t>{-300, -30000})
      .input({1}, {2.0f})
      .input({1}, std::vector<int16_t>{-1024})
      .expect({2}, {1448, -57952})
      .expect_kernels({"tenon.dequantize.vector.i16"});
  dequantize()
      .input({2}, {448.0f, -104.0f})
      .declared_as(TN_F8E4M3FN)
      .input({}, {2.0f})
      .absent()
      .expect({2}, {896, -208});
  dequantize(TN_F16)
      .input({2}, std::vector<int8_t>{-8, 7})
      .declared_as(TN_I4)
      .input({}, {0.25f})
      .declared_as(TN_F8E8M0)
      .absent()
      .expect({2}, {-2, 1.75});
}

// ONNX's example: the range [-3, 2] has the scale 5 / 255, of which 3 are 153 steps.
TEST_F(QuantizeTest, DynamicQuantize) {
  const std::vector<float> x = {0, 2, -3, -2.5f, 1.34f, 0.5f};
  const std::vector<std::string> kernel = {"tenon.dynamic_quantize.vector"};
  dynamic_quantize(0).input({2, 3}, x).expect({2, 3}, {153, 255, 0, 26, 221, 179}).expect_kernels(kernel);
  dynamic_quantize(1).input({6}, x).expect({}, {5.0 / 255}, 1e-9).expect_kernels(kernel);
  dynamic_quantize(2).input({6}, x).expect({}, {153}).expect_kernels(kernel);
  // The range always holds 0.
  dynamic_quantize(0).input({3}, {1, 3, 4}).expect({3}, {64, 191, 255}).expect_kernels(kernel);
  dynamic_quantize(2).input({3}, {-1, -2, -4}).expect({}, {255}).expect_kernels(kernel);
  dynamic_quantize(0).input({2}, {0, 0}).expect({2}, {0, 0}).expect_kernels(kernel);
  dynamic_quantize(0).random_input({5, 40001}, 3).expect_kernels(kernel);
}

TEST_F(QuantizeTest, Errors) {
  const std::vector<float> x(6);
  quantize(TN_U8).input({2, 3}, x).input({2}, {1, 1}).expect_invalid({"scale", "[3]", "[2]"});
  quantize(TN_U8).attr("axis", int64_t{2}).input({2, 3}, x).input({3}, {1, 1, 1}).expect_invalid({"axis", "2"});
  quantize(TN_U8)
      .input({2, 3}, x)
      .input({}, {1})
      .input({}, std::vector<int8_t>{0})
      .expect_invalid({"zero_point", "i8"});
  quantize(TN_U8)
      .input({2, 3}, x)
      .input({3}, {1, 1, 1})
      .input({}, std::vector<uint8_t>{0})
      .expect_invalid({"zero_point", "[3]"});
  quantize(TN_I32).input({2, 3}, x).input({}, {1}).expect_invalid({"'to'", "i32"});
  quantize(TN_U8, TN_I8).input({2, 3}, x).input({}, {1}).expect_invalid({"precision", "i8"});
  quantize(TN_U8).attr("block_size", int64_t{2}).input({2, 3}, x).input({2, 3}, x).expect_invalid({"[2,2]", "[2,3]"});
  quantize(TN_U8)
      .attr("block_size", std::numeric_limits<int64_t>::max())
      .input({2, 3}, x)
      .input({2, 2}, {1, 1, 1, 1})
      .expect_invalid({"[2,1]"});
  dequantize().input({1}, {1.0f}).input({}, {1}).expect_invalid({"input x", "f32"});
  dequantize(TN_I8).input({1}, std::vector<int8_t>{1}).input({}, {1}).expect_invalid({"'to'", "i8"});
}

}  // namespace
}  // namespace tenon::testing
