// Expected values: zeros give equal shares; the others by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class SoftmaxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.load("softmax"));
    onednn_ = host_.load("softmax_onednn");
  }
  // oneDNN's fast implementations are for the innermost axis.
  std::vector<std::string> kernels(bool innermost) const {
    if (onednn_ && innermost) return {"tenon.softmax.vector.f32", "tenon.softmax.onednn.f32"};
    return {"tenon.softmax.vector.f32"};
  }
  OpTester softmax(int64_t axis) {
    OpTester tester(host_, "tenon.softmax/1");
    tester.attr("axis", axis);
    return tester;
  }
  TestHost host_;
  bool onednn_ = false;
};

TEST_F(SoftmaxTest, Values) {
  const double sum = 1 + std::exp(1.0) + std::exp(2.0);
  softmax(0).input({3}, {0, 1, 2}).expect({3}, {1 / sum, std::exp(1.0) / sum, std::exp(2.0) / sum});
  softmax(-1).input({1, 2, 1, 2}, std::vector<float>(4)).expect({1, 2, 1, 2}, std::vector<double>(4, 0.5));
  softmax(1).input({1, 2, 2}, {0, 0, std::log(3.0f), 0}).expect({1, 2, 2}, {0.25, 0.5, 0.75, 0.5});
  softmax(-1).input({2}, {1000, 1000}).expect({2}, {0.5, 0.5});
}

// An axis is one axis, not all from there on (which older versions of ONNX mean: 0.25 in the first line).
TEST_F(SoftmaxTest, ZerosGiveEqualSharesOfOneAxis) {
  const std::vector<float> four(4), many(24), row(1023);
  softmax(1).input({1, 2, 1, 2}, four).expect({1, 2, 1, 2}, std::vector<double>(4, 0.5)).expect_kernels(kernels(false));
  softmax(2).input({1, 2, 1, 2}, four).expect({1, 2, 1, 2}, std::vector<double>(4, 1)).expect_kernels(kernels(false));
  OpTester(host_, "tenon.softmax/1")  // the default axis is the last
      .input({1, 2, 1, 2}, four)
      .expect({1, 2, 1, 2}, std::vector<double>(4, 0.5))
      .expect_kernels(kernels(true));
  OpTester(host_, "tenon.softmax/1")
      .input({2, 3, 4}, many)
      .expect({2, 3, 4}, std::vector<double>(24, 0.25))
      .expect_kernels(kernels(true));
  softmax(1).input({2, 3, 4}, many).expect({2, 3, 4}, std::vector<double>(24, 1.0 / 3)).expect_kernels(kernels(false));
  softmax(-2).input({1, 1023}, row).expect({1, 1023}, std::vector<double>(1023, 1.0)).expect_kernels(kernels(false));
}

TEST_F(SoftmaxTest, KernelsAgree) {
  for (const Dims& dims : {Dims{128, 128}, Dims{3, 5, 7}, Dims{2, 10, 4, 4}, Dims{1, 1000}}) {
    for (int64_t axis = 0; axis < dims.rank; ++axis) {
      softmax(axis).random_input(dims, 4.0).expect_kernels(kernels(axis == dims.rank - 1));
    }
  }
}

TEST_F(SoftmaxTest, LogSoftmax) {
  const auto log_softmax = [&](int64_t axis) {
    OpTester tester(host_, "tenon.log_softmax/1");
    tester.attr("axis", axis);
    return tester;
  };
  const std::vector<std::string> kernel = {"tenon.log_softmax.vector.f32"};
  const double shift = std::log(1 + std::exp(1.0) + std::exp(2.0));
  log_softmax(0).input({3}, {0, 1, 2}).expect({3}, {-shift, 1 - shift, 2 - shift}).expect_kernels(kernel);
  log_softmax(-1).input({2}, {1000, 1000}).expect({2}, {-std::log(2.0), -std::log(2.0)}).expect_kernels(kernel);
  log_softmax(-1).input({2}, {0, 200}).expect({2}, {-200, 0}).expect_kernels(kernel);
  for (int64_t axis = 0; axis < 3; ++axis) log_softmax(axis).random_input({3, 35, 17}, 4.0).expect_kernels(kernel);
}

TEST_F(SoftmaxTest, BadAxis) {
  softmax(2).random_input({2, 3}).expect_invalid({"axis", "-2 to 1", "2"});
  softmax(INT64_MIN).random_input({2, 3}).expect_invalid({"axis", "-2 to 1"});
  softmax(INT64_MAX).random_input({2, 3}).expect_invalid({"axis", "-2 to 1"});
}

}  // namespace
}  // namespace tenon::testing
