// Expected values by hand: sums over windows of [1,2,3,4] with a kernel of ones, as in the SAME-padding cases that
// other engines got wrong.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class Conv2dTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.load("conv2d"));
    onednn_ = host_.load("conv2d_onednn");
  }
  OpTester conv(const std::vector<int64_t>& strides, const std::vector<int64_t>& pads,
                const std::vector<int64_t>& dilations = {1, 1}, int64_t groups = 1) {
    OpTester tester(host_, "tenon.conv2d/1");
    tester.attr("strides", strides).attr("pads", pads).attr("dilations", dilations).attr("groups", groups);
    return tester;
  }
  std::vector<std::string> kernels(std::vector<std::string> names) const {
    if (onednn_) names.push_back("tenon.conv2d.onednn.f32");
    return names;
  }
  TestHost host_;
  bool onednn_ = false;
};

TEST_F(Conv2dTest, SamePaddingStride2) {
  const std::vector<float> x = {1, 2, 3, 4}, ones = {1, 1, 1};
  // SAME_UPPER pads (0,1), SAME_LOWER pads (1,0).
  conv({1, 2}, {0, 0, 0, 1})
      .input({1, 1, 1, 4}, x)
      .input({1, 1, 1, 3}, ones)
      .constant()
      .expect({1, 1, 1, 2}, {6, 7})
      .expect_kernels(kernels({"tenon.conv2d.im2col.f32"}));
  conv({1, 2}, {0, 1, 0, 0})
      .input({1, 1, 1, 4}, x)
      .input({1, 1, 1, 3}, ones)
      .constant()
      .expect({1, 1, 1, 2}, {3, 9})
      .expect_kernels(kernels({"tenon.conv2d.im2col.f32"}));
  conv({1, 2}, {0, 1, 0, 1})
      .input({1, 1, 1, 4}, x)
      .input({1, 1, 1, 3}, ones)
      .constant()
      .expect({1, 1, 1, 2}, {3, 9})
      .expect_kernels(kernels({"tenon.conv2d.im2col.f32"}));
}

TEST_F(Conv2dTest, Dilation) {
  // Taps two apart: 1+3, 2+4.
  conv({1, 1}, {0, 0, 0, 0}, {1, 2})
      .input({1, 1, 1, 4}, {1, 2, 3, 4})
      .input({1, 1, 1, 2}, {1, 1})
      .constant()
      .expect({1, 1, 1, 2}, {4, 6})
      .expect_kernels();
}

TEST_F(Conv2dTest, GroupsAndBias) {
  // Two groups of one channel: channel 0 times 2 plus 10, channel 1 times 3 plus 20.
  conv({1, 1}, {0, 0, 0, 0}, {1, 1}, 2)
      .input({1, 2, 1, 2}, {1, 2, 3, 4})
      .input({2, 1, 1, 1}, {2, 3})
      .constant()
      .input({2}, {10, 20})
      .constant()
      .expect({1, 2, 1, 2}, {12, 14, 29, 32})
      .expect_kernels(kernels({"tenon.conv2d.depthwise.f32"}));
}

TEST_F(Conv2dTest, KernelsAgree) {
  struct Case {
    Dims x, weights;
    std::vector<int64_t> strides, pads, dilations;
    int64_t groups;
    std::string kernel;
  };
  const Case cases[] = {
      {{1, 3, 33, 31}, {16, 3, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1, "tenon.conv2d.first.f32"},
      {{1, 32, 13, 17}, {48, 32, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, "tenon.conv2d.gemm1x1.f32"},
      {{1, 32, 13, 17}, {32, 32, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, "tenon.conv2d.direct.f32"},
      {{1, 32, 13, 17}, {32, 32, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, "tenon.conv2d.winograd.f32"},
      {{2, 20, 9, 11}, {24, 20, 3, 3}, {1, 1}, {0, 2, 1, 0}, {1, 1}, 1, "tenon.conv2d.winograd.f32"},
      {{2, 20, 9, 11}, {12, 20, 3, 3}, {2, 1}, {0, 2, 1, 0}, {1, 1}, 1, "tenon.conv2d.direct.f32"},
      {{1, 24, 14, 14}, {24, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 24, "tenon.conv2d.depthwise.f32"},
      {{1, 40, 15, 14}, {40, 1, 5, 5}, {2, 2}, {2, 2, 2, 2}, {1, 1}, 40, "tenon.conv2d.depthwise.f32"},
      {{1, 16, 12, 12}, {16, 1, 3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, 16, "tenon.conv2d.depthwise.f32"},
      {{1, 16, 12, 12}, {32, 4, 3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, 4, "tenon.conv2d.im2col.f32"}};
  for (const Case& c : cases) {
    conv(c.strides, c.pads, c.dilations, c.groups)
        .random_input(c.x)
        .random_input(c.weights, 0.3)
        .constant()
        .random_input({c.weights[0]})
        .constant()
        .expect_kernels(kernels({c.kernel, "tenon.conv2d.im2col.f32"}));
  }
}

TEST_F(Conv2dTest, FusedActivations) {
  for (const Activation& activation :
       {Activation{ActivationKind::kRelu, 0, 0}, Activation{ActivationKind::kLeaky, 0.1, 0}}) {
    conv({1, 1}, {1, 1, 1, 1})
        .random_input({1, 16, 9, 9})
        .random_input({16, 16, 3, 3}, 0.3)
        .constant()
        .epilogue(activation)
        .expect_kernels(kernels({"tenon.conv2d.direct.f32", "tenon.conv2d.im2col.f32"}));
  }
}

TEST_F(Conv2dTest, Errors) {
  conv({1, 1}, {0, 0, 0, 0})
      .random_input({1, 3, 4, 4})
      .random_input({8, 4, 3, 3})
      .expect_invalid({"weights", "3", "4"});
  conv({1, 1}, {0, 0, 0, 0}).random_input({3, 4, 4}).random_input({8, 3, 3, 3}).expect_invalid({"x", "rank 4"});
  conv({1, 1}, {0, 0, 0, 0}, {1, 1}, 2)
      .random_input({1, 3, 4, 4})
      .random_input({8, 3, 3, 3})
      .expect_invalid({"groups", "3", "2"});
  conv({1, 1}, {0, 0, 0, 0}).random_input({1, 3, 2, 2}).random_input({8, 3, 3, 3}).expect_invalid({"3x3", "fit"});
  conv({1}, {0, 0, 0, 0}).random_input({1, 3, 4, 4}).random_input({8, 3, 3, 3}).expect_invalid({"strides", "2", "1"});
  conv({0, 1}, {0, 0, 0, 0}).random_input({1, 3, 4, 4}).random_input({8, 3, 3, 3}).expect_invalid({"strides", "0"});
}

}  // namespace
}  // namespace tenon::testing
