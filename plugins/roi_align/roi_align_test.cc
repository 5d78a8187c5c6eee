// Expected values by hand: on a slope, where interpolation gives the coordinate itself.
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

using Floats = std::vector<float>;
const std::vector<std::string> kKernels = {"tenon.roi_align.channels.f32"};

class RoiAlignTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.load("roi_align"));
    for (int row = 0; row < 8; ++row) {
      for (int column = 0; column < 8; ++column) slope_.push_back(static_cast<float>(10 * row + column));
    }
  }
  OpTester align(const std::string& mode, const std::string& transformation, int64_t ratio, int64_t size) {
    OpTester tester(host_, "tenon.roi_align/1");
    tester.attr("mode", mode).attr("coordinate_transformation_mode", transformation);
    tester.attr("sampling_ratio", ratio).attr("output_height", size).attr("output_width", size);
    return tester;
  }
  Floats slope_;
  TestHost host_;
};

TEST_F(RoiAlignTest, MeansAreCentresOfBins) {
  // Bins of 2 x 2 from (x, y) = (1, 2); centres at x 2 and 4, y 3 and 5, half a pixel less with half_pixel.
  const Floats roi = {1, 2, 5, 6};
  for (const int64_t ratio : {0, 1, 2}) {
    align("avg", "output_half_pixel", ratio, 2)
        .input({1, 1, 8, 8}, slope_)
        .input({1, 4}, roi)
        .input<int64_t>({1}, {0})
        .expect({1, 1, 2, 2}, {32, 34, 52, 54}, 1e-4)
        .expect_kernels(kKernels);
    align("avg", "half_pixel", ratio, 2)
        .input({1, 1, 8, 8}, slope_)
        .input({1, 4}, roi)
        .input<int64_t>({1}, {0})
        .expect({1, 1, 2, 2}, {26.5, 28.5, 46.5, 48.5}, 1e-4)
        .expect_kernels(kKernels);
  }
}

TEST_F(RoiAlignTest, ScaleImageAndMaximum) {
  Floats x = slope_;
  x.insert(x.end(), 64, 7.0f);
  // One sample in the middle of (2, 2) to (4, 4) of the first image: the pixel (3, 3); the second image is flat.
  align("max", "output_half_pixel", 1, 1)
      .attr("spatial_scale", 0.5)
      .input({2, 1, 8, 8}, x)
      .input({2, 4}, {4, 4, 8, 8, 4, 4, 8, 8})
      .input<int64_t>({2}, {0, 1})
      .expect({2, 1, 1, 1}, {33, 7})
      .expect_kernels(kKernels);
}

TEST_F(RoiAlignTest, OutsideIsZero) {
  // Four samples a bin at -2, 0, 2, 4: of 16 in all 9 lie on the image (from -1 on), which is flat.
  align("avg", "output_half_pixel", 4, 1)
      .input({1, 1, 8, 8}, Floats(64, 16))
      .input({1, 4}, {-3, -3, 5, 5})
      .input<int64_t>({1}, {0})
      .expect({1, 1, 1, 1}, {9})
      .expect_kernels(kKernels);
  // A region far larger than the image takes no longer, one of NaN gives 0.
  align("avg", "half_pixel", 0, 1)
      .input({1, 1, 8, 8}, Floats(64, 16))
      .input({2, 4}, {-1e30f, -1e30f, 1e30f, 1e30f, NAN, 0, 1, 1})
      .input<int64_t>({2}, {0, 0})
      .expect({2, 1, 1, 1}, {0, 0})
      .expect_kernels(kKernels);
}

TEST_F(RoiAlignTest, KernelsAgree) {
  for (const std::string mode : {"avg", "max"}) {
    for (const int64_t ratio : {0, 2}) {
      align(mode, "half_pixel", ratio, 3)
          .random_input({2, 37, 8, 8})
          .input({3, 4}, {0.3f, 1.2f, 6.7f, 7.9f, -2, 3, 4, 9, 5, 5, 2, 2})
          .input<int64_t>({3}, {1, 0, 1})
          .expect_kernels(kKernels);
    }
  }
}

TEST_F(RoiAlignTest, MaxRoiPool) {
  // (1, 2) to (4, 4) is 4 wide and 3 high: columns 1-2 and 3-4, rows 2-3 and 3-4 (bins of 1.5).
  OpTester(host_, "tenon.max_roi_pool/1")
      .attr("pooled_shape", std::vector<int64_t>{2, 2})
      .input({1, 1, 8, 8}, slope_)
      .input({1, 5}, {0, 1, 2, 4, 4})
      .expect({1, 1, 2, 2}, {32, 34, 42, 44});
  OpTester(host_, "tenon.max_roi_pool/1")
      .attr("pooled_shape", std::vector<int64_t>{1, 1})
      .attr("spatial_scale", 0.5)
      .input({1, 1, 8, 8}, slope_)
      .input({2, 5}, {0, 2, 2, 5, 5, 0, 100, 100, 200, 200})
      .expect({2, 1, 1, 1}, {33, 0});
}

TEST_F(RoiAlignTest, Errors) {
  align("avg", "half_pixel", 0, 1)
      .input({1, 1, 8, 8}, slope_)
      .random_input({2, 5})
      .input<int64_t>({2}, {0, 0})
      .expect_invalid({"rois", "[R,4]", "[2,5]"});
  align("avg", "half_pixel", 0, 1)
      .input({1, 1, 8, 8}, slope_)
      .random_input({2, 4})
      .input<int64_t>({1}, {0})
      .expect_invalid({"batch_indices", "[2]", "[1]"});
}

}  // namespace
}  // namespace tenon::testing
