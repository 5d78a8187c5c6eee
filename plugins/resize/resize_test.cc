// Expected values: the formulas of the specification by hand; the cubic ones with numpy from Keys' filter.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

class ResizeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("resize")); }

  OpTester resize(const std::string& mode, const std::string& transformation) {
    OpTester tester(host_, "tenon.resize/1");
    tester.attr("mode", mode).attr("coordinate_transformation_mode", transformation);
    return tester;
  }
  // A line [1,1,1,n] through sizes and, where the scale is exact enough, through scales.
  void line(const std::string& mode, const std::string& transformation, const std::string& nearest_mode,
            const Floats& x, const std::vector<double>& y) {
    const auto in = static_cast<int64_t>(x.size()), out = static_cast<int64_t>(y.size());
    const std::string kernel = mode == "nearest" ? "tenon.resize.nearest" : "tenon.resize.separable.f32";
    SCOPED_TRACE(text(mode, " ", transformation, " ", nearest_mode, " ", in, " to ", out));
    resize(mode, transformation)
        .attr("nearest_mode", nearest_mode)
        .input({1, 1, 1, in}, x)
        .absent()
        .absent()
        .input<int64_t>({4}, {1, 1, 1, out})
        .constant()
        .expect({1, 1, 1, out}, y, 1e-5)
        .expect_kernels({kernel});
    const float scale = static_cast<float>(out) / static_cast<float>(in);
    resize(mode, transformation)
        .attr("nearest_mode", nearest_mode)
        .input({1, 1, 1, in}, x)
        .absent()
        .input<float>({4}, {1, 1, 1, scale})
        .constant()
        .expect({1, 1, 1, out}, y, 1e-5)
        .expect_kernels({kernel});
  }
  TestHost host_;
};

TEST_F(ResizeTest, Linear) {
  const Floats three = {1, 2, 3}, five = {0, 1, 2, 3, 4};
  const std::string any = "floor";
  line("linear", "align_corners", any, three, {1, 1.5, 2, 2.5, 3});
  line("linear", "half_pixel", any, three, {1, 1.4, 2, 2.6, 3});
  line("linear", "pytorch_half_pixel", any, three, {1, 1.4, 2, 2.6, 3});
  line("linear", "asymmetric", any, three, {1, 1.6, 2.2, 2.8, 3});
  line("linear", "align_corners", any, five, {0, 2, 4});
  line("linear", "half_pixel", any, five, {1.0 / 3, 2, 11.0 / 3});
  line("linear", "asymmetric", any, five, {0, 5.0 / 3, 10.0 / 3});
  line("linear", "half_pixel", any, five, {2});
  line("linear", "pytorch_half_pixel", any, five, {0});
  line("linear", "asymmetric", any, five, {0});
  line("linear", "align_corners", any, five, {0});
}

TEST_F(ResizeTest, Nearest) {
  const Floats three = {1, 2, 3}, tens = {10, 20, 30};
  line("nearest", "half_pixel", "round_prefer_floor", three, {1, 1, 2, 3, 3});
  line("nearest", "asymmetric", "floor", three, {1, 1, 2, 2, 3});
  line("nearest", "asymmetric", "ceil", three, {1, 2, 3, 3, 3});
  line("nearest", "asymmetric", "round_prefer_floor", tens, {10, 10, 20, 20, 30, 30});
  line("nearest", "asymmetric", "round_prefer_ceil", tens, {10, 20, 20, 30, 30, 30});
}

// Scales of f32 are not exact: 3 / 0.6f is a little less than 5, and 0.7f * 10 a little less than 7.
TEST_F(ResizeTest, ScalesAreMeantAsWritten) {
  resize("nearest", "asymmetric")
      .attr("nearest_mode", std::string("floor"))
      .input<float>({10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
      .absent()
      .input<float>({1}, {0.6f})
      .constant()
      .expect({6}, {0, 1, 3, 5, 6, 8});
  resize("nearest", "asymmetric")
      .input<float>({10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
      .absent()
      .input<float>({1}, {0.7f})
      .constant()
      .expect({7}, {0, 1, 3, 4, 6, 7, 9});
}

TEST_F(ResizeTest, HalfPixelSymmetricCentres) {
  // 4 cells by 0.6: 2 of 2.4 cells are left; their centre is that of the image: 1.5 -+ 1 / (2 * 0.6).
  resize("linear", "half_pixel_symmetric")
      .input<float>({4}, {1, 2, 3, 4})
      .absent()
      .input<double>({1}, {0.6})
      .constant()
      .expect({2}, {2.5 - 5.0 / 6, 2.5 + 5.0 / 6}, 1e-5);
}

TEST_F(ResizeTest, CubicWeights) {
  resize("cubic", "asymmetric")
      .input<float>({4}, {1, 10, 100, 1000})
      .absent()
      .input<float>({1}, {4})
      .constant()
      .expect({16},
              {1, -0.125, -2.9375, -1.53125, 10, -0.300781, -28.53125, -14.996094, 100, 313.398438, 558.4375,
               799.257812, 1000, 1094.921875, 1084.375, 1031.640625},
              1e-3);
}

TEST_F(ResizeTest, CropAndExtrapolate) {
  resize("linear", "tf_crop_and_resize")
      .attr("extrapolation_value", -7.0)
      .input<float>({5}, {0, 10, 20, 30, 40})
      .input<float>({2}, {0.25, 1.25})
      .constant()
      .absent()
      .input<int64_t>({1}, {5})
      .constant()
      .expect({5}, {10, 20, 30, 40, -7});
  // One cell: the middle of the region.
  resize("linear", "tf_crop_and_resize")
      .input<float>({5}, {0, 10, 20, 30, 40})
      .input<float>({2}, {0.5, 1})
      .constant()
      .absent()
      .input<int64_t>({1}, {1})
      .constant()
      .expect({1}, {30});
}

TEST_F(ResizeTest, AntialiasWidensTheFilter) {
  // By 1/2: a triangle of radius 2 at 0.5 and 2.5 with clamped cells; weights 1/8, 3/8, 3/8, 1/8.
  resize("linear", "half_pixel")
      .attr("antialias", int64_t{1})
      .input<float>({1, 1, 1, 4}, {8, 16, 24, 80})
      .absent()
      .absent()
      .input<int64_t>({4}, {1, 1, 1, 2})
      .constant()
      .expect({1, 1, 1, 2}, {(8 + 3 * 8 + 3 * 16 + 24) / 8.0, (16 + 3 * 24 + 3 * 80 + 80) / 8.0})
      .expect_kernels({"tenon.resize.separable.f32"});
  resize("linear", "half_pixel")
      .attr("antialias", int64_t{1})
      .attr("exclude_outside", int64_t{1})
      .input<float>({4}, {8, 16, 24, 80})
      .constant()
      .absent()
      .absent()
      .input<int64_t>({1}, {2})
      .constant()
      .expect({2}, {(3 * 8 + 3 * 16 + 24) / 7.0, (16 + 3 * 24 + 3 * 80) / 7.0});
}

TEST_F(ResizeTest, PolicyAndAxes) {
  const auto policy = [&](const std::string& name) {
    OpTester tester = resize("nearest", "half_pixel");
    tester.attr("keep_aspect_ratio_policy", name).attr("axes", Ints{2, -1});
    return tester.random_input({1, 4, 2, 1}).absent().absent().input<int64_t>({2}, {7, 8}).constant().reference().dims;
  };
  // Axis 2: 2 to 7, factor 3.5; axis 3: 1 to 8.
  EXPECT_EQ(to_text(policy("not_larger")), "[1,4,7,4]");
  EXPECT_EQ(to_text(policy("not_smaller")), "[1,4,16,8]");
  EXPECT_EQ(to_text(policy("stretch")), "[1,4,7,8]");
}

TEST_F(ResizeTest, IntegersAreRounded) {
  resize("linear", "align_corners")
      .input<uint8_t>({2}, {250, 255})
      .absent()
      .absent()
      .input<int64_t>({1}, {4})
      .constant()
      .expect({4}, {250, 252, 253, 255});
  // Weights such as 1/3 and 2/3 must not turn 5 into 4.
  resize("linear", "align_corners")
      .input<int8_t>({3}, {5, 5, 5})
      .absent()
      .absent()
      .input<int64_t>({1}, {7})
      .constant()
      .expect({7}, {5, 5, 5, 5, 5, 5, 5});
}

TEST_F(ResizeTest, KernelsAgree) {
  for (const std::string mode : {"linear", "cubic", "nearest"}) {
    const std::string kernel = mode == "nearest" ? "tenon.resize.nearest" : "tenon.resize.separable.f32";
    for (const Ints& sizes : {Ints{2, 3, 14, 10}, Ints{2, 3, 3, 9}, Ints{2, 3, 7, 2}, Ints{2, 3, 200, 250}}) {
      for (const int64_t antialias : {0, 1}) {
        if (antialias == 1 && mode == "nearest") continue;
        resize(mode, "half_pixel")
            .attr("antialias", antialias)
            .random_input({2, 3, 7, 5})
            .absent()
            .absent()
            .input<int64_t>({4}, sizes)
            .constant()
            .expect_kernels({kernel});
      }
    }
    // The channels of images whose channels are last: whole runs of cells move.
    resize(mode, "asymmetric")
        .random_input({2, 5, 3, 4})
        .absent()
        .input<float>({4}, {1, 2.5, 1, 1})
        .constant()
        .expect_kernels({kernel});
  }
  resize("nearest", "asymmetric")
      .input<uint8_t>({1, 4}, {1, 2, 3, 4})
      .absent()
      .input<float>({2}, {1, 0.5})
      .constant()
      .attr("nearest_mode", std::string("ceil"))
      .expect({1, 2}, {1, 3})
      .expect_kernels({"tenon.resize.nearest"});
}

TEST_F(ResizeTest, Errors) {
  const auto sizes = [&](const Ints& values) {
    OpTester tester = resize("nearest", "half_pixel");
    tester.random_input({2, 3})
        .absent()
        .absent()
        .input<int64_t>({static_cast<int64_t>(values.size())}, values)
        .constant();
    return tester;
  };
  sizes({2}).expect_invalid({"sizes", "[2]", "[1]"});
  sizes({2, -1}).expect_invalid({"sizes", "-1"});
  sizes({2, INT64_MAX}).expect_invalid({"sizes", "2^31"});
  resize("nearest", "half_pixel").random_input({2, 3}).expect_invalid({"scales", "sizes"});
  resize("nearest", "half_pixel")
      .random_input({2})
      .absent()
      .input<float>({1}, {0})
      .constant()
      .expect_invalid({"scales", "0"});
  resize("nearest", "half_pixel")
      .random_input({2})
      .absent()
      .input<float>({1}, {1e30f})
      .constant()
      .expect_invalid({"2^31"});
  resize("linear", "tf_crop_and_resize")
      .random_input({2})
      .absent()
      .input<float>({1}, {2})
      .constant()
      .expect_invalid({"roi", "none"});
  resize("nearest", "half_pixel")
      .attr("axes", Ints{0, 0})
      .random_input({2, 2})
      .absent()
      .input<float>({2}, {2, 2})
      .constant()
      .expect_invalid({"axes", "once"});
  resize("nearest", "half_pixel")
      .random_input({0})
      .absent()
      .absent()
      .input<int64_t>({1}, {2})
      .constant()
      .expect_invalid({"0 cells"});
}

}  // namespace
}  // namespace tenon::testing
