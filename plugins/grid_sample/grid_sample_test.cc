// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

using Floats = std::vector<float>;
const std::vector<std::string> kKernels = {"tenon.grid_sample.taps.f32"};

class GridSampleTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("grid_sample")); }
  OpTester sample(const std::string& mode, const std::string& padding, int64_t align) {
    OpTester tester(host_, "tenon.grid_sample/1");
    tester.attr("mode", mode).attr("padding_mode", padding).attr("align_corners", align);
    return tester;
  }
  // A line [10, 20, 30] at some points.
  void line(const std::string& mode, const std::string& padding, int64_t align, const Floats& points,
            const std::vector<double>& y) {
    const auto count = static_cast<int64_t>(points.size());
    sample(mode, padding, align)
        .input({1, 1, 3}, {10, 20, 30})
        .input({1, count, 1}, points)
        .expect({1, 1, count}, y, 1e-4)
        .expect_kernels(kKernels);
  }
  TestHost host_;
};

TEST_F(GridSampleTest, Coordinates) {
  line("linear", "zeros", 1, {-1, -0.5, 0, 1}, {10, 15, 20, 30});
  // The outer edges: half a pixel is missing at each end.
  line("linear", "zeros", 0, {-1, 0, 1, 1.0f / 3}, {5, 20, 15, 25});
}

TEST_F(GridSampleTest, Padding) {
  line("linear", "zeros", 1, {-2, -1.5, 1.5, 5}, {0, 5, 15, 0});
  line("linear", "border", 1, {-2, 1.5, 5}, {10, 30, 30});
  // Pixels 2.5, 3.5, -0.5, 6.5 around the centres 0 and 2: 1.5, 0.5, 0.5, 1.5.
  line("linear", "reflection", 1, {1.5, 2.5, -1.5, 5.5}, {25, 15, 15, 25});
  // Around the edges -0.5 and 2.5: pixel 3 is 2, pixel -2 is 1.
  line("nearest", "reflection", 0, {4.0f / 3, -2}, {30, 20});
}

TEST_F(GridSampleTest, NearestTakesTheEvenOne) { line("nearest", "zeros", 1, {-0.5, 0.5, 0.6f, 3}, {10, 30, 30, 0}); }

TEST_F(GridSampleTest, CubicOnASlope) {
  // Keys' filter keeps straight lines where all four pixels exist: pixel 1.5 of 5.
  sample("cubic", "border", 1)
      .input({1, 1, 5}, {0, 10, 20, 30, 40})
      .input({1, 2, 1}, {-0.25, -1})
      .expect({1, 1, 2}, {15, 0}, 1e-4)
      .expect_kernels(kKernels);
}

// Half a pixel before the first one, whose value is repeated: Keys' weights there are -0.09375, 0.59375, 0.59375,
// -0.09375, of which only the last is for pixel 1.
TEST_F(GridSampleTest, CubicRepeatsTheBorder) { line("cubic", "border", 1, {-1.5}, {10 * 1.09375 - 20 * 0.09375}); }

TEST_F(GridSampleTest, ImagesAndVolumes) {
  // The last coordinate is that of the rows.
  sample("linear", "zeros", 1)
      .input({1, 2, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40})
      .input({1, 1, 2, 2}, {1, -1, 0, 1})
      .expect({1, 2, 1, 2}, {2, 3.5, 20, 35})
      .expect_kernels(kKernels);
  sample("nearest", "zeros", 1)
      .input<int32_t>({1, 1, 2, 1, 2}, {1, 2, 3, 4})
      .input({1, 1, 1, 1, 3}, {1, 0, -1})
      .expect({1, 1, 1, 1, 1}, {2});
}

TEST_F(GridSampleTest, KernelsAgree) {
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    for (const std::string padding : {"zeros", "border", "reflection"}) {
      for (const int64_t align : {0, 1}) {
        sample(mode, padding, align).random_input({2, 3, 9, 7}).random_input({2, 20, 21, 2}).expect_kernels(kKernels);
        sample(mode, padding, align)
            .random_input({1, 2, 3, 4, 5})
            .random_input({1, 3, 2, 4, 3})
            .expect_kernels(kKernels);
      }
    }
  }
}

TEST_F(GridSampleTest, FarPoints) {
  const float far = 1e38f;
  line("linear", "zeros", 0, {far, -far}, {0, 0});
  line("cubic", "border", 0, {far, -far}, {30, 10});
}

TEST_F(GridSampleTest, Errors) {
  sample("linear", "zeros", 0).random_input({1, 1, 3}).random_input({1, 2, 2}).expect_invalid({"grid", "[1,2,2]"});
  sample("linear", "zeros", 0).random_input({2, 1, 3}).random_input({1, 2, 1}).expect_invalid({"grid", "[2,"});
  sample("linear", "zeros", 0).random_input({1, 1, 0}).random_input({1, 2, 1}).expect_invalid({"one pixel"});
}

}  // namespace
}  // namespace tenon::testing
