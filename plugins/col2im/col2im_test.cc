// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class Col2imTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("col2im")); }
  OpTester col2im() { return OpTester(host_, "tenon.col2im/1"); }
  TestHost host_;
};

TEST_F(Col2imTest, OverlappingBlocks) {
  // Blocks of 1 x 2 at the three columns of a 1 x 4 image.
  col2im()
      .input({1, 2, 3}, {1, 2, 3, 10, 20, 30})
      .input<int64_t>({2}, {1, 4})
      .constant()
      .input<int64_t>({2}, {1, 2})
      .constant()
      .expect({1, 1, 1, 4}, {1, 12, 23, 30})
      .expect_kernels({"tenon.col2im.planes.f32"});
}

TEST_F(Col2imTest, KernelsAgree) {
  col2im()
      .attr("strides", std::vector<int64_t>{2, 1})
      .attr("pads", std::vector<int64_t>{1, 0, 0, 2})
      .attr("dilations", std::vector<int64_t>{1, 2})
      .random_input({2, 3 * 6, 3 * 4})
      .input<int64_t>({2}, {6, 6})
      .constant()
      .input<int64_t>({2}, {2, 3})
      .constant()
      .expect_kernels({"tenon.col2im.planes.f32"});
}

TEST_F(Col2imTest, Integers) {
  col2im()
      .input<int32_t>({1, 2, 1}, {5, 6})
      .input<int64_t>({1}, {3})
      .constant()
      .input<int64_t>({1}, {2})
      .constant()
      .attr("strides", std::vector<int64_t>{2})
      .expect({1, 1, 3}, {5, 6, 0});
}

TEST_F(Col2imTest, Errors) {
  col2im()
      .random_input({1, 2, 4})
      .input<int64_t>({2}, {1, 4})
      .constant()
      .input<int64_t>({2}, {1, 2})
      .constant()
      .expect_invalid({"multiple of 2", "3", "[1,2,4]"});
  col2im()
      .random_input({1, 2, 3})
      .input<int64_t>({2}, {1, 4})
      .input<int64_t>({2}, {1, 2})
      .expect_invalid({"image_shape", "known"});
}

}  // namespace
}  // namespace tenon::testing
