// Expected values from the examples of ONNX's operator description (ReverseSequence-10).
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class ReverseSequenceTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("reverse_sequence")); }
  OpTester reverse(int64_t batch_axis, int64_t time_axis) {
    return std::move(
        OpTester(host_, "tenon.reverse_sequence/1").attr("batch_axis", batch_axis).attr("time_axis", time_axis));
  }
  TestHost host_;
};

TEST_F(ReverseSequenceTest, OnnxExamples) {
  reverse(1, 0)
      .input({4, 4}, {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15})
      .input<int64_t>({4}, {4, 3, 2, 1})
      .expect({4, 4}, {3, 6, 9, 12, 2, 5, 8, 13, 1, 4, 10, 14, 0, 7, 11, 15})
      .expect_kernels({"tenon.reverse_sequence.copy"});
  reverse(0, 1)
      .input<uint8_t>({4, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
      .input<int32_t>({4}, {1, 2, 3, 4})
      .expect({4, 4}, {0, 1, 2, 3, 5, 4, 6, 7, 10, 9, 8, 11, 15, 14, 13, 12})
      .expect_kernels({"tenon.reverse_sequence.copy"});
}

TEST_F(ReverseSequenceTest, MoreAxesAndLengths) {
  reverse(1, 0)
      .input<int16_t>({2, 1, 2}, {1, 2, 3, 4})
      .input<int64_t>({1}, {INT64_MAX})
      .expect({2, 1, 2}, {3, 4, 1, 2})
      .expect_kernels({"tenon.reverse_sequence.copy"});
  reverse(0, 1)
      .random_input({9, 30, 7, 11})
      .input<int64_t>({9}, {0, 1, 2, 3, 29, 30, 15, 16, -5})
      .expect_kernels({"tenon.reverse_sequence.copy"});
  reverse(0, 1).random_input({2, 0}).input<int64_t>({2}, {0, 0}).expect({2, 0}, {}).expect_kernels();
}

TEST_F(ReverseSequenceTest, Errors) {
  reverse(0, 0).random_input({2, 3}).input<int64_t>({2}, {1, 1}).expect_invalid({"axis", "twice"});
  reverse(0, 1).random_input({2, 3}).input<int64_t>({3}, {1, 1, 1}).expect_invalid({"lengths", "[2]", "[3]"});
  reverse(0, 1).random_input({2, 3}).input<int64_t>({2}, {1, 4}).constant().expect_invalid({"lengths", "0 to 3", "4"});
  reverse(0, 1).random_input({2}).input<int64_t>({2}, {1, 1}).expect_invalid({"rank"});
}

}  // namespace
}  // namespace tenon::testing
