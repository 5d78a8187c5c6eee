// Expected values from ONNX's operator description (Pad-25), numpy's pad, and by hand.
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class PadTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("pad")); }
  OpTester pad(const std::string& mode) { return std::move(OpTester(host_, "tenon.pad/1").attr("mode", mode)); }
  // A vector through the reference and all kernels.
  void expect_row(const std::string& mode, const std::vector<float>& x, const std::vector<int64_t>& pads,
                  const std::vector<double>& y) {
    pad(mode)
        .input({static_cast<int64_t>(x.size())}, x)
        .input<int64_t>({2}, pads)
        .constant()
        .expect({static_cast<int64_t>(y.size())}, y)
        .expect_kernels({"tenon.pad.copy"});
  }
  TestHost host_;
};

TEST_F(PadTest, OnnxExamples) {
  const std::vector<float> x = {1.0f, 1.2f, 2.3f, 3.4f, 4.5f, 5.7f};
  pad("constant")
      .input({3, 2}, x)
      .input<int64_t>({4}, {0, 2, 0, 0})
      .constant()
      .input({}, {0})
      .expect({3, 4}, {0, 0, 1.0, 1.2, 0, 0, 2.3, 3.4, 0, 0, 4.5, 5.7})
      .expect_kernels({"tenon.pad.copy"});
  pad("reflect")
      .input({3, 2}, x)
      .input<int64_t>({4}, {0, 2, 0, 0})
      .constant()
      .expect({3, 4}, {1.0, 1.2, 1.0, 1.2, 2.3, 3.4, 2.3, 3.4, 4.5, 5.7, 4.5, 5.7})
      .expect_kernels({"tenon.pad.copy"});
  pad("edge")
      .input({3, 2}, x)
      .input<int64_t>({4}, {0, 2, 0, 0})
      .constant()
      .expect({3, 4}, {1.0, 1.0, 1.0, 1.2, 2.3, 2.3, 2.3, 3.4, 4.5, 4.5, 4.5, 5.7})
      .expect_kernels({"tenon.pad.copy"});
  pad("wrap")
      .input({3, 2}, x)
      .input<int64_t>({4}, {2, 1, 1, 1})
      .constant()
      .expect({6, 4}, {3.4, 2.3, 3.4, 2.3, 5.7, 4.5, 5.7, 4.5, 1.2, 1.0, 1.2, 1.0,
                       3.4, 2.3, 3.4, 2.3, 5.7, 4.5, 5.7, 4.5, 1.2, 1.0, 1.2, 1.0})
      .expect_kernels({"tenon.pad.copy"});
}

TEST_F(PadTest, NegativePads) {
  pad("constant")
      .input({4}, {1, 2, 3, 4})
      .input<int64_t>({2}, {-1, 1})
      .constant()
      .input({}, {9})
      .expect({4}, {2, 3, 4, 9})
      .expect_kernels({"tenon.pad.copy"});
  // Everything of axis 2 is cut, and as many zeros take its place.
  pad("constant")
      .random_input({1, 1, 4, 4})
      .input<int64_t>({8}, {0, 0, 4, 1, 0, 0, -4, -1})
      .constant()
      .input({}, {0})
      .expect({1, 1, 4, 4}, std::vector<double>(16, 0.0))
      .expect_kernels({"tenon.pad.copy"});
  expect_row("constant", {0, 1, 2, 3}, {-5, 2}, {0});
  expect_row("constant", {1, 2, 3, 4}, {-2, -2}, {});
  // The cut comes before the repetition.
  expect_row("wrap", {0, 1, 2, 3}, {1, -1}, {2, 0, 1, 2});
  expect_row("wrap", {0, 1, 2, 3}, {-2, 3}, {2, 3, 2, 3, 2});
  expect_row("reflect", {0, 1, 2, 3}, {-1, 2}, {1, 2, 3, 2, 1});
  expect_row("edge", {0, 1, 2, 3}, {3, -3}, {0, 0, 0, 0});
}

// numpy.pad reflects and wraps as often as needed.
TEST_F(PadTest, LongPads) {
  expect_row("reflect", {0, 1, 2, 3}, {7, 5}, {1, 0, 1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2});
  expect_row("wrap", {0, 1, 2}, {4, 7}, {2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0});
  expect_row("reflect", {5}, {2, 1}, {5, 5, 5, 5});
  expect_row("edge", {1, 2}, {3, 2}, {1, 1, 1, 1, 2, 2, 2});
}

TEST_F(PadTest, AxesAndDtypes) {
  pad("constant")
      .input<int8_t>({2, 2}, {1, 2, 3, 4})
      .input<int32_t>({2}, {1, 0})
      .constant()
      .input<int8_t>({1}, {7})
      .input<int64_t>({1}, {-2})
      .constant()
      .expect({3, 2}, {7, 7, 1, 2, 3, 4})
      .expect_kernels({"tenon.pad.copy"});
  pad("constant")
      .input<double>({2}, {1, 2})
      .input<int64_t>({2}, {0, 1})
      .constant()
      .absent()
      .input<int32_t>({1}, {0})
      .constant()
      .expect({3}, {1, 2, 0})
      .expect_kernels({"tenon.pad.copy"});
  pad("edge").input<int64_t>({}, {3}).input<int64_t>({0}, {}).constant().expect({}, {3}).expect_kernels(
      {"tenon.pad.copy"});
  pad("constant")
      .input({0, 2}, std::vector<float>{})
      .input<int64_t>({4}, {1, 0, 0, 0})
      .constant()
      .expect({1, 2}, {0, 0})
      .expect_kernels({"tenon.pad.copy"});
}

TEST_F(PadTest, LargeImages) {
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    pad(mode)
        .random_input({2, 16, 40, 50})
        .input<int64_t>({8}, {0, 0, 3, 2, 0, 0, 1, 4})
        .constant()
        .expect_kernels({"tenon.pad.copy"});
    pad(mode)
        .random_input({2, 30, 40, 17})
        .input<int64_t>({8}, {0, 2, -1, 0, 1, 1, 2, 0})
        .constant()
        .expect_kernels({"tenon.pad.copy"});
  }
}

TEST_F(PadTest, Errors) {
  pad("constant").random_input({4}).input<int64_t>({1}, {1}).constant().expect_invalid({"pads", "2", "1"});
  pad("constant").random_input({4}).input<int64_t>({2}, {-3, -2}).constant().expect_invalid({"pads", "-3", "-2"});
  pad("edge").random_input({4}).input<int64_t>({2}, {-4, 2}).constant().expect_invalid({"pads", "edge"});
  pad("reflect").input({0}, std::vector<float>{}).input<int64_t>({2}, {1, 0}).constant().expect_invalid({"reflect"});
  pad("constant").random_input({4}).input<int64_t>({2}, {INT64_MAX, 0}).constant().expect_invalid({"pads"});
  pad("constant").random_input({4}).input<int64_t>({2}, {INT64_MIN, INT64_MAX}).constant().expect_invalid({"pads"});
  pad("constant").random_input({4}).input<int64_t>({2}, {1, 1}).expect_invalid({"pads", "known"});
  pad("constant")
      .random_input({4})
      .input<int64_t>({2}, {1, 1})
      .constant()
      .input<double>({}, {1})
      .expect_invalid({"value", "f32", "f64"});
  pad("constant")
      .random_input({4, 4})
      .input<int64_t>({4}, {1, 1, 1, 1})
      .constant()
      .absent()
      .input<int64_t>({2}, {0, -2})
      .constant()
      .expect_invalid({"axes", "twice"});
}

}  // namespace
}  // namespace tenon::testing
