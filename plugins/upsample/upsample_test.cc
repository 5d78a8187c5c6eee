// Expected values by hand: each pixel repeated.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class UpsampleTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("upsample")); }
  TestHost host_;
};

TEST_F(UpsampleTest, Values) {
  OpTester(host_, "tenon.upsample/1")
      .attr("factors", std::vector<int64_t>{2, 3})
      .attr("scale", 0.5)
      .input({1, 1, 1, 2}, {2, 4})
      .expect({1, 1, 2, 6}, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2})
      .expect_kernels({"tenon.upsample.nearest.f32"});
}

TEST_F(UpsampleTest, Formats) {
  OpTester(host_, "tenon.upsample/1")
      .attr("factors", std::vector<int64_t>{2, 2})
      .random_input({2, 19, 5, 3})
      .expect_kernels({"tenon.upsample.nearest.f32"});
}

TEST_F(UpsampleTest, Errors) {
  OpTester(host_, "tenon.upsample/1")
      .attr("factors", std::vector<int64_t>{0, 2})
      .random_input({1, 1, 2, 2})
      .expect_invalid({"factors", "0"});
  OpTester(host_, "tenon.upsample/1")
      .attr("factors", std::vector<int64_t>{2, 2})
      .random_input({2, 2})
      .expect_invalid({"rank 4"});
  OpTester(host_, "tenon.upsample/1")
      .attr("factors", std::vector<int64_t>{1, INT64_MAX})
      .random_input({1, 1, 2, 2})
      .expect_invalid({"width", "64 bits"});
}

}  // namespace
}  // namespace tenon::testing
