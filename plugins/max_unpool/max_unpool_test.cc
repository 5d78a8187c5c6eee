// Expected values by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

using Ints = std::vector<int64_t>;

class MaxUnpoolTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("max_unpool")); }
  OpTester indices() { return OpTester(host_, "tenon.max_pool_indices/1"); }
  OpTester unpool() {
    OpTester tester(host_, "tenon.max_unpool/1");
    tester.attr("kernel", Ints{2, 2}).attr("strides", Ints{2, 2});
    return tester;
  }
  TestHost host_;
};

TEST_F(MaxUnpoolTest, Indices) {
  // Two channels of 2 x 3; windows of 2 x 2.
  const std::vector<float> x = {1, 5, 2, 4, 3, 6, 9, 9, 0, 9, 0, NAN};
  indices().attr("kernel", Ints{2, 2}).input({1, 2, 2, 3}, x).expect({1, 2, 1, 2}, {1, 5, 6, 11});
  // The same, columns first: (row, column) is column * 2 + row.
  indices()
      .attr("kernel", Ints{2, 2})
      .attr("storage_order", int64_t{1})
      .input({1, 2, 2, 3}, x)
      .expect({1, 2, 1, 2}, {2, 5, 6, 11});
}

TEST_F(MaxUnpoolTest, IndicesOfVolumesPadsAndCeil) {
  indices()
      .attr("kernel", Ints{2, 1, 1})
      .input<int8_t>({1, 1, 3, 1, 2}, {-5, 3, -4, -9, -6, 7})
      .expect({1, 1, 2, 1, 2}, {2, 1, 2, 5});
  indices()
      .attr("kernel", Ints{2})
      .attr("strides", Ints{2})
      .attr("pads", Ints{1, 0})
      .attr("rounding", std::string("ceil"))
      .input({1, 1, 4}, {-3, -1, -2, -5})
      .expect({1, 1, 3}, {0, 1, 3});
}

TEST_F(MaxUnpoolTest, Unpool) {
  unpool()
      .input({1, 1, 2, 2}, {1, 2, 3, 4})
      .input<int64_t>({1, 1, 2, 2}, {5, 7, 13, 15})
      .expect({1, 1, 4, 4}, {0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4});
  // A larger output: the places stay where they are.
  unpool()
      .input({1, 1, 1, 1}, {7})
      .input<int64_t>({1, 1, 1, 1}, {2})
      .input<int64_t>({4}, {1, 1, 2, 3})
      .constant()
      .expect({1, 1, 2, 3}, {0, 0, 0, 7, 0, 0});
}

TEST_F(MaxUnpoolTest, Errors) {
  unpool()
      .input({1, 1, 1, 1}, {7})
      .input<int64_t>({1, 1, 1, 1}, {2})
      .input<int64_t>({4}, {1, 1, 1, 3})
      .constant()
      .expect_invalid({"output_shape", "[1,1,2,2]", "1"});
  unpool().input({1, 1, 1, 1}, {7}).input<int64_t>({1}, {2}).expect_invalid({"indices", "[1,1,1,1]", "[1]"});
  indices().attr("kernel", Ints{2}).input({1, 1, 1, 1}, {7}).expect_invalid({"kernel", "1 axes"});
}

}  // namespace
}  // namespace tenon::testing
