// Expected values by hand: each input pixel adds a multiple of the kernel.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

using Ints = std::vector<int64_t>;
const std::vector<std::string> kKernels = {"tenon.conv_transpose.col2im.f32"};

class ConvTransposeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("conv_transpose")); }
  OpTester conv(const Ints& strides, const Ints& pads) {
    OpTester tester(host_, "tenon.conv_transpose/1");
    tester.attr("strides", strides).attr("pads", pads);
    return tester;
  }
  TestHost host_;
};

TEST_F(ConvTransposeTest, Line) {
  // 1 and 10 times (1, 2, 3), 2 apart: 1 2 3+10 20 30.
  conv({2}, {0, 0})
      .input({1, 1, 2}, {1, 10})
      .input({1, 1, 3}, {1, 2, 3})
      .input({1}, {0.5})
      .expect({1, 1, 5}, {1.5, 2.5, 13.5, 20.5, 30.5})
      .expect_kernels(kKernels);
  conv({2}, {1, 0})
      .attr("output_padding", Ints{1})
      .input({1, 1, 2}, {1, 10})
      .input({1, 1, 3}, {1, 2, 3})
      .expect({1, 1, 5}, {2, 13, 20, 30, 0})
      .expect_kernels(kKernels);
  conv({1}, {0, 1})
      .attr("dilations", Ints{2})
      .input({1, 1, 2}, {1, 10})
      .input({1, 1, 3}, {1, 2, 3})
      .expect({1, 1, 5}, {1, 10, 2, 20, 3})
      .expect_kernels(kKernels);
}

TEST_F(ConvTransposeTest, ImageAndGroups) {
  // Two groups of one channel: 1 times a 2 x 2 kernel and 2 times two others.
  OpTester(host_, "tenon.conv_transpose/1")
      .attr("groups", int64_t{2})
      .input({1, 2, 1, 1}, {1, 2})
      .input({2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8})
      .expect({1, 4, 1, 2}, {1, 2, 3, 4, 10, 12, 14, 16})
      .expect_kernels(kKernels);
}

TEST_F(ConvTransposeTest, KernelsAgree) {
  conv({2, 2}, {1, 1, 1, 1})
      .attr("output_padding", Ints{1, 0})
      .random_input({2, 8, 6, 7})
      .random_input({8, 5, 4, 3})
      .random_input({5})
      .expect_kernels(kKernels);
  conv({1, 3}, {0, 2, 1, 0})
      .attr("dilations", Ints{2, 1})
      .attr("groups", int64_t{3})
      .random_input({1, 6, 5, 4})
      .random_input({6, 2, 3, 3})
      .expect_kernels(kKernels);
  conv({2, 1, 2}, {0, 0, 1, 1, 0, 0})
      .random_input({1, 3, 3, 4, 5})
      .random_input({3, 2, 2, 3, 3})
      .expect_kernels(kKernels);
}

TEST_F(ConvTransposeTest, Errors) {
  conv({1}, {3, 3}).random_input({1, 1, 2}).random_input({1, 1, 3}).expect_invalid({"pads", "-2"});
  conv({INT32_MAX}, {0, 0}).random_input({1, 1, 3}).random_input({1, 1, 3}).expect_invalid({"output", "4294967297"});
  conv({1}, {0, 0}).random_input({1, 2, 2}).random_input({1, 1, 3}).expect_invalid({"weights", "[2,1,", "[1,1,3]"});
  conv({1}, {0, 0})
      .attr("output_padding", Ints{-1})
      .random_input({1, 1, 2})
      .random_input({1, 1, 3})
      .expect_invalid({"output_padding", "-1"});
}

}  // namespace
}  // namespace tenon::testing
