// Expected values by hand: sums over windows of [1,2,3,4] with a kernel of ones, as in the SAME-padding cases that
// other engines got wrong.
#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/cpu/isa.h"
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
  // Needs masked loads.
  static std::string depthwise_rows() {
    return cpu::detect_isa() >= cpu::Isa::kAvx2 ? "tenon.conv2d.depthwise_rows.f32" : "tenon.conv2d.depthwise.f32";
  }
  TestHost host_;
  bool onednn_ = false;
};

/// A row of pixels and a kernel of ones over it.
struct RowCase {
  std::vector<float> row;
  int64_t kernel, stride, begin, end, dilation;
  std::vector<double> sums;
};

const RowCase kRowCases[] = {
    // [1,2,3,4], kernel 3, stride 2: SAME_UPPER pads (0,1), SAME_LOWER pads (1,0), pads 1 and 1.
    {{1, 2, 3, 4}, 3, 2, 0, 1, 1, {6, 7}},
    {{1, 2, 3, 4}, 3, 2, 1, 0, 1, {3, 9}},
    {{1, 2, 3, 4}, 3, 2, 1, 1, 1, {3, 9}},
    // Sizes 7 and 5 with total pad 2; 5 with kernel 2 pads (0,1); stride 3 above kernel 1 pads nothing.
    {{1, 2, 3, 4, 5, 6, 7}, 3, 2, 1, 1, 1, {3, 9, 15, 13}},
    {{1, 2, 3, 4, 5}, 3, 2, 1, 1, 1, {3, 9, 9}},
    {{1, 2, 3, 4, 5}, 2, 2, 0, 1, 1, {3, 7, 5}},
    {{1, 2, 3}, 1, 3, 0, 0, 1, {1}},
    // Dilation 2 makes a kernel of 3 five wide: total pad 3, upper (1,2) and lower (2,1).
    {{1, 2, 3, 4}, 3, 2, 1, 2, 2, {6, 6}},
    {{1, 2, 3, 4}, 3, 2, 2, 1, 2, {4, 4}},
    {{1, 2, 3, 4}, 3, 1, 2, 2, 2, {4, 6, 4, 6}},
};

TEST_F(Conv2dTest, SamePaddingInEveryTactic) {
  for (const RowCase& c : kRowCases) {
    for (const bool vertical : {false, true}) {
      for (const int64_t channels : {int64_t{1}, int64_t{3}, int64_t{16}}) {
        for (const bool depthwise : {false, true}) {
          SCOPED_TRACE(text("row of ", c.row.size(), ", kernel ", c.kernel, ", stride ", c.stride, ", pads ", c.begin,
                            ",", c.end, ", dilation ", c.dilation, ", channels ", channels,
                            vertical ? ", vertical" : "", depthwise ? ", depthwise" : ""));
          // Channel i holds the row i + 1 times; without groups an output channel adds its own and the next channel.
          const auto dims = [&](int64_t first, int64_t second, int64_t length) {
            return vertical ? Dims{first, second, length, 1} : Dims{first, second, 1, length};
          };
          std::vector<float> x, weights;
          std::vector<double> expected;
          for (int64_t o = 0; o < channels; ++o) {
            const int64_t next = depthwise ? o : (o + 1) % channels;
            for (const float value : c.row) x.push_back(value * static_cast<float>(o + 1));
            for (const double sum : c.sums) {
              expected.push_back(sum * static_cast<double>(next == o ? o + 1 : o + 1 + next + 1));
            }
            for (int64_t i = 0; i < (depthwise ? 1 : channels); ++i) {
              const bool adds = depthwise || i == o || i == next;
              weights.insert(weights.end(), static_cast<size_t>(c.kernel), adds ? 1.0f : 0.0f);
            }
          }
          std::vector<std::string> required = {"tenon.conv2d.im2col.f32", "tenon.conv2d.direct.f32"};
          if (depthwise) required.emplace_back("tenon.conv2d.depthwise.f32");
          if (!depthwise && channels <= 4) required.emplace_back("tenon.conv2d.first.f32");
          const auto pair = [&](int64_t along, int64_t across) {
            return vertical ? std::vector<int64_t>{along, across} : std::vector<int64_t>{across, along};
          };
          const std::vector<int64_t> pads =
              vertical ? std::vector<int64_t>{c.begin, 0, c.end, 0} : std::vector<int64_t>{0, c.begin, 0, c.end};
          conv(pair(c.stride, 1), pads, pair(c.dilation, 1), depthwise ? channels : 1)
              .input(dims(1, channels, static_cast<int64_t>(c.row.size())), x)
              .input(dims(channels, depthwise ? 1 : channels, c.kernel), weights)
              .constant()
              .expect(dims(1, channels, static_cast<int64_t>(c.sums.size())), expected)
              .expect_kernels(kernels(required));
        }
      }
    }
  }
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
      {{2, 60, 7, 9}, {48, 20, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 3, "tenon.conv2d.gemm1x1.f32"},
      {{1, 32, 13, 17}, {32, 32, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, "tenon.conv2d.direct.f32"},
      {{1, 32, 13, 17}, {32, 32, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, "tenon.conv2d.winograd.f32"},
      {{2, 20, 9, 11}, {24, 20, 3, 3}, {1, 1}, {0, 2, 1, 0}, {1, 1}, 1, "tenon.conv2d.winograd.f32"},
      {{2, 20, 9, 11}, {12, 20, 3, 3}, {2, 1}, {0, 2, 1, 0}, {1, 1}, 1, "tenon.conv2d.direct.f32"},
      {{1, 24, 14, 14}, {24, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 24, "tenon.conv2d.depthwise.f32"},
      {{1, 40, 15, 14}, {40, 1, 5, 5}, {2, 2}, {2, 2, 2, 2}, {1, 1}, 40, "tenon.conv2d.depthwise.f32"},
      {{1, 24, 14, 14}, {24, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 24, depthwise_rows()},
      {{2, 17, 15, 30}, {17, 1, 5, 5}, {2, 2}, {2, 1, 0, 2}, {1, 1}, 17, depthwise_rows()},
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
       {Activation{ActivationKind::kRelu, 0, 0}, Activation{ActivationKind::kLeaky, 0.1, 0},
        Activation{ActivationKind::kSwish, 0, 0}, Activation{ActivationKind::kLogistic, 0, 0},
        Activation{ActivationKind::kGelu, 0, 0}, Activation{ActivationKind::kGeluTanh, 0, 0}}) {
    conv({1, 1}, {1, 1, 1, 1})
        .random_input({1, 16, 9, 9})
        .random_input({16, 16, 3, 3}, 0.3)
        .constant()
        .epilogue(activation)
        .expect_kernels(kernels({"tenon.conv2d.direct.f32", "tenon.conv2d.im2col.f32"}));
    conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 5)
        .random_input({1, 5, 9, 9})
        .random_input({5, 1, 3, 3}, 0.3)
        .constant()
        .epilogue(activation)
        .expect_kernels(kernels({"tenon.conv2d.depthwise.f32", depthwise_rows()}));
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
  // Sums and products of these would overflow.
  const int64_t most = INT64_MAX;
  conv({1, 1}, {0, 0, 0, most}).random_input({1, 3, 4, 4}).random_input({8, 3, 3, 3}).expect_invalid({"pads", "2147"});
  conv({1, most}, {0, 0, 0, 0}).random_input({1, 3, 4, 4}).random_input({8, 3, 3, 3}).expect_invalid({"strides"});
  conv({1, 1}, {0, 0, 0, 0}, {most, 1})
      .random_input({1, 3, 4, 4})
      .random_input({8, 3, 3, 3})
      .expect_invalid({"dilations", "2147483647"});
}

}  // namespace
}  // namespace tenon::testing
