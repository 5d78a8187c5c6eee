// Expected values: the examples of ONNX NegativeLogLikelihoodLoss-13, and by hand.
#include <gtest/gtest.h>

#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class NllLossTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("nll_loss")); }
  OpTester loss(const std::string& reduction, const std::vector<int64_t>& ignore = {}) {
    OpTester tester(host_, "tenon.nll_loss/1");
    tester.attr("reduction", reduction);
    if (!ignore.empty()) tester.attr("ignore_index", ignore);
    return tester;
  }
  TestHost host_;
};

const std::vector<float> kX = {1, 2, 2, 2, 3, 2, 0, 1, 2, 2, 1, 2};  // [2,3,2]
const std::vector<int64_t> kTarget = {2, 1, 0, 2};
const std::vector<float> kWeight = {0.2f, 0.3f, 0.1f};

TEST_F(NllLossTest, Reductions) {
  loss("none").input({2, 3, 2}, kX).input({2, 2}, kTarget).expect({2, 2}, {-3, -2, 0, -2});
  loss("sum").input({2, 3, 2}, kX).input({2, 2}, kTarget).expect({}, {-7});
  loss("mean").input({2, 3, 2}, kX).input({2, 2}, kTarget).expect({}, {-1.75});
  loss("sum").input({2, 3, 2}, kX).input({2, 2}, kTarget).input({3}, kWeight).expect({}, {-1.1});
  loss("mean").input({2, 3, 2}, kX).input({2, 2}, kTarget).input({3}, kWeight).expect({}, {-1.1 / 0.7});
}

TEST_F(NllLossTest, IgnoredClass) {
  const std::vector<int32_t> target = {2, -9, 0, 2};
  loss("none", {-9}).input({2, 3, 2}, kX).input({2, 2}, target).expect({2, 2}, {-3, 0, 0, -2});
  loss("mean", {-9}).input({2, 3, 2}, kX).input({2, 2}, target).expect({}, {-5.0 / 3});
  loss("mean", {2}).input({2, 3, 2}, kX).input({2, 2}, kTarget).input({3}, kWeight).expect({}, {-0.6 / 0.5});
  // Nothing is left to average.
  loss("mean", {1})
      .input({1, 2}, {3, 4})
      .input<int64_t>({1}, {1})
      .expect({}, {std::numeric_limits<double>::quiet_NaN()});
}

TEST_F(NllLossTest, Ranks) {
  loss("none").input({2, 2}, {1, 2, 3, 4}).input<int64_t>({2}, {0, 1}).expect({2}, {-1, -4});
  loss("none").input({1, 2, 1, 2}, {1, 2, 3, 4}).input<int64_t>({1, 1, 2}, {0, 1}).expect({1, 1, 2}, {-1, -4});
}

TEST_F(NllLossTest, WrongInputs) {
  loss("mean").random_input({2}).input<int64_t>({2}, {0, 1}).expect_invalid({"rank", "[2]"});
  loss("mean").random_input({2, 3}).input<int64_t>({3}, {0, 1, 2}).expect_invalid({"target", "[2]", "[3]"});
  loss("mean").random_input({2, 3}).input({2}, {0, 1}).expect_invalid({"target", "i64", "f32"});
  loss("mean").random_input({2, 3}).input<int64_t>({2}, {0, 1}).random_input({2}).expect_invalid({"weight", "[3]"});
}

}  // namespace
}  // namespace tenon::testing
