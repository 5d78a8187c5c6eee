// Expected values by hand; kernels are compared in the formats that the attributes name.
#include <gtest/gtest.h>

#include <string>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class ReformatTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("reformat")); }
  TestHost host_;
};

OpTester reformat(TestHost& host, const std::string& from, const std::string& to) {
  OpTester tester(host, "tenon.reformat/1");
  tester.attr("from", from).attr("to", to);
  return tester;
}

TEST_F(ReformatTest, ValuesStay) {
  reformat(host_, "row", "nhwc")
      .input({1, 2, 1, 2}, {1, 2, 3, 4})
      .expect({1, 2, 1, 2}, {1, 2, 3, 4})
      .expect_kernels({"tenon.reformat.copy"});
  reformat(host_, "row", "row")
      .input<int64_t>({3}, {1, 2, 3})
      .expect({3}, {1, 2, 3})
      .expect_kernels({"tenon.reformat.copy"});
}

TEST_F(ReformatTest, EveryPair) {
  for (const char* from : {"row", "nhwc", "nchw8c", "nchw16c"}) {
    for (const char* to : {"row", "nhwc", "nchw8c", "nchw16c"}) {
      reformat(host_, from, to).random_input({2, 21, 5, 7}).expect_kernels({"tenon.reformat.copy"});
    }
  }
}

}  // namespace
}  // namespace tenon::testing
