// Expected values by hand: rows whose deviation is a whole number.
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class LayerNormTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("layer_norm")); }
  OpTester norm(const std::string& name, int64_t axis, double epsilon = 0) {
    OpTester tester(host_, "tenon." + name + "/1");
    tester.attr("axis", axis).attr("epsilon", epsilon);
    return tester;
  }
  TestHost host_;
};

const std::vector<std::string> kLayer = {"tenon.layer_norm.vector.f32"};
const std::vector<std::string> kRms = {"tenon.rms_norm.vector.f32"};

TEST_F(LayerNormTest, Values) {
  // Means 3 and 7, deviations 2 and 4.
  const std::vector<float> x = {1, 5, 3, 11};
  norm("layer_norm", -1).input({2, 2}, x).expect({2, 2}, {-1, 1, -1, 1}).expect_kernels(kLayer);
  norm("layer_norm", 1)
      .input({2, 2}, x)
      .input({2}, {2, 3})
      .input({2}, {10, 20})
      .expect({2, 2}, {8, 23, 8, 23})
      .expect_kernels(kLayer);
  norm("layer_norm", 1).input({2, 2}, x).absent().input({2}, {10, 20}).expect({2, 2}, {9, 21, 9, 21});
  // Variance 4 and epsilon 12 give a divisor of 4.
  norm("layer_norm", 0, 12).input({2}, {1, 5}).expect({2}, {-0.5, 0.5}).expect_kernels(kLayer);
  // Both axes: mean 5, variance (16 + 0 + 4 + 36) / 4 = 14.
  const double d = std::sqrt(14.0);
  norm("layer_norm", 0)
      .input({2, 2}, x)
      .input({2, 2}, {1, 1, 1, 2})
      .expect({2, 2}, {-4 / d, 0, -2 / d, 12 / d})
      .expect_kernels(kLayer);
}

TEST_F(LayerNormTest, RootMeanSquare) {
  // Mean squares 12.5 and 49; sqrt(12.5 - 3.5 + 7) = 4.
  norm("rms_norm", -1)
      .input({2, 2}, {3, 4, 7, -7})
      .input({2}, {1, 2})
      .expect({2, 2}, {3 / std::sqrt(12.5), 8 / std::sqrt(12.5), 1, -2})
      .expect_kernels(kRms);
  norm("rms_norm", -1, 3.5).input({2}, {3, 4}).expect({2}, {0.75, 1}).expect_kernels(kRms);
}

TEST_F(LayerNormTest, ScaleOfAnotherShape) {
  const std::vector<float> x = {1, 5, 3, 11};
  norm("layer_norm", 1).input({2, 2}, x).input({2, 1}, {2, 3}).expect({2, 2}, {-2, 2, -3, 3});
  norm("layer_norm", 1).input({2, 2}, x).input({}, {2}).expect({2, 2}, {-2, 2, -2, 2});
  norm("layer_norm", 1).input({2, 2}, x).input({1, 2}, {2, 3}).expect({2, 2}, {-2, 3, -2, 3}).expect_kernels(kLayer);
}

TEST_F(LayerNormTest, KernelsAgree) {
  for (const Dims& dims : {Dims{3, 5, 768}, Dims{128, 7}, Dims{1, 1, 4099}}) {
    for (int64_t axis = 0; axis < dims.rank; ++axis) {
      Dims rest;
      for (int n = static_cast<int>(axis); n < dims.rank; ++n) rest.push_back(dims[n]);
      norm("layer_norm", axis, 1e-5).random_input(dims, 3).random_input(rest).random_input(rest).expect_kernels(kLayer);
      norm("rms_norm", axis, 1e-5).random_input(dims, 3).random_input(rest).expect_kernels(kRms);
    }
  }
}

TEST_F(LayerNormTest, WrongInputs) {
  norm("layer_norm", 2).random_input({2, 3}).expect_invalid({"axis", "-2 to 1"});
  norm("layer_norm", 1).random_input({2, 3}).random_input({2}).expect_invalid({"[2]", "[2,3]"});
  norm("layer_norm", 1).random_input({2, 3}).random_input({1, 2, 3}).expect_invalid({"scale", "[1,2,3]"});
  norm("layer_norm", 1).random_input({2, 1}).random_input({2}).expect_invalid({"scale", "[2]", "[2,1]"});
  norm("layer_norm", 1).input<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6}).expect_invalid({"floating", "i32"});
}

}  // namespace
}  // namespace tenon::testing
