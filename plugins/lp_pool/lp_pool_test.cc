// Expected values by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

using Ints = std::vector<int64_t>;

class LpPoolTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("lp_pool")); }
  OpTester pool(double p, const Ints& kernel) {
    OpTester tester(host_, "tenon.lp_pool/1");
    tester.attr("p", p).attr("kernel", kernel);
    return tester;
  }
  TestHost host_;
};

TEST_F(LpPoolTest, Norms) {
  pool(2, {2}).input({1, 1, 3}, {3, -4, 0}).expect({1, 1, 2}, {5, 4});
  pool(1, {2}).input({1, 1, 3}, {3, -4, 0}).expect({1, 1, 2}, {7, 4});
  pool(3, {2}).input({1, 1, 3}, {3, -4, 0}).expect({1, 1, 2}, {std::cbrt(91.0), 4}, 1e-5);
}

TEST_F(LpPoolTest, Geometry) {
  pool(2, {2, 2})
      .attr("strides", Ints{2, 2})
      .attr("pads", Ints{1, 0, 0, 0})
      .attr("rounding", std::string("ceil"))
      .input({1, 1, 2, 3}, {3, 4, 5, 6, 8, 12})
      .expect({1, 1, 2, 2}, {5, 5, 10, 12});
  pool(1, {2}).attr("dilations", Ints{2}).input({1, 1, 4}, {1, 2, 3, 4}).expect({1, 1, 2}, {4, 6});
}

TEST_F(LpPoolTest, Errors) {
  pool(0, {2}).input({1, 1, 3}, {3, -4, 0}).expect_invalid({"'p'", "above 0"});
  pool(2, {4}).input({1, 1, 3}, {3, -4, 0}).expect_invalid({"4", "3"});
}

}  // namespace
}  // namespace tenon::testing
