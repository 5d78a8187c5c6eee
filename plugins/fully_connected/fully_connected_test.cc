// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class FullyConnectedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.load("fully_connected"));
    onednn_ = host_.load("fully_connected_onednn");
  }
  std::vector<std::string> kernels() const {
    std::vector<std::string> names = {"tenon.fully_connected.gemm.f32", "tenon.fully_connected.direct.f32"};
    if (onednn_) names.push_back("tenon.fully_connected.onednn.f32");
    return names;
  }
  OpTester layer() { return OpTester(host_, "tenon.fully_connected/1"); }
  TestHost host_;
  bool onednn_ = false;
};

TEST_F(FullyConnectedTest, Values) {
  const std::vector<float> weights = {1, 2, 3, -1, 0, 1};
  layer()
      .input({2, 3}, {1, 1, 1, 0, 1, 2})
      .input({2, 3}, weights)
      .constant()
      .input({2}, {10, 20})
      .constant()
      .expect({2, 2}, {16, 20, 18, 22})
      .expect_kernels(kernels());
  layer()
      .input({1, 3, 1, 1}, {1, 1, 1})
      .input({2, 3}, weights)
      .constant()
      .absent()
      .expect({1, 2}, {6, 0})
      .expect_kernels(kernels());
}

TEST_F(FullyConnectedTest, KernelsAgree) {
  for (const Dims& x : {Dims{1, 1024}, Dims{3, 17, 5, 5}, Dims{64, 33}}) {
    layer()
        .random_input(x)
        .random_input({1000, x.product(1, x.rank)})
        .constant()
        .random_input({1000})
        .constant()
        .expect_kernels(kernels());
  }
  layer()
      .random_input({4, 30})
      .random_input({50, 30})
      .constant()
      .random_input({50})
      .constant()
      .epilogue({ActivationKind::kLeaky, 0.1, 0})
      .expect_kernels(kernels());
}

TEST_F(FullyConnectedTest, Axis) {
  // Each of the four rows [1, 1, 1], [0, 1, 2], [2, 0, 0] and [0, 0, 0] on its own.
  OpTester last = layer();
  last.attr("axis", int64_t{-1})
      .input({2, 2, 3}, {1, 1, 1, 0, 1, 2, 2, 0, 0, 0, 0, 0})
      .input({2, 3}, {1, 2, 3, -1, 0, 1})
      .constant()
      .input({2}, {10, 20})
      .constant()
      .expect({2, 2, 2}, {16, 20, 18, 22, 12, 18, 10, 20})
      .expect_kernels(kernels());
  for (const ActivationKind kind : {ActivationKind::kGelu, ActivationKind::kGeluTanh}) {
    layer()
        .attr("axis", int64_t{2})
        .random_input({3, 5, 4, 6})
        .random_input({70, 24})
        .constant()
        .random_input({70})
        .constant()
        .epilogue({kind, 0, 0})
        .expect_kernels(kernels());
  }
  layer()
      .attr("axis", int64_t{3})
      .random_input({2, 3, 4})
      .random_input({5, 1})
      .constant()
      .expect_kernels({"tenon.fully_connected.gemm.f32"});
}

TEST_F(FullyConnectedTest, Errors) {
  layer().attr("axis", int64_t{-3}).random_input({1, 4}).random_input({2, 4}).constant().expect_invalid({"axis", "-3"});
  layer().random_input({1, 4}).random_input({2, 3}).constant().absent().expect_invalid({"weights", "4", "[2,3]"});
  layer().random_input({1, 3}).random_input({2, 3}).constant().random_input({3}).constant().expect_invalid(
      {"bias", "[2]", "[3]"});
}

}  // namespace
}  // namespace tenon::testing
