// The extreme positions are those that other engines got wrong.
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class SliceTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("slice")); }
  TestHost host_;
};

OpTester slice(TestHost& host, std::vector<int64_t> starts, std::vector<int64_t> ends, std::vector<int64_t> axes,
               std::vector<int64_t> steps) {
  OpTester tester(host, "tenon.slice/1");
  tester.attr("starts", starts).attr("ends", ends).attr("axes", axes).attr("steps", steps);
  return tester;
}

TEST_F(SliceTest, ExtremePositions) {
  const std::vector<float> x = {1, 2, 3, 4};
  slice(host_, {-1}, {INT64_MIN}, {0}, {-1})
      .input({4}, x)
      .expect({4}, {4, 3, 2, 1})
      .expect_kernels({"tenon.slice.copy"});
  slice(host_, {1}, {INT64_MAX}, {0}, {1}).input({4}, x).expect({3}, {2, 3, 4}).expect_kernels({"tenon.slice.copy"});
  slice(host_, {0}, {INT64_MAX}, {0}, {INT64_MAX}).input({4}, x).expect({1}, {1}).expect_kernels({"tenon.slice.copy"});
  slice(host_, {3}, {INT64_MIN}, {0}, {INT64_MIN}).input({4}, x).expect({1}, {4}).expect_kernels({"tenon.slice.copy"});
  slice(host_, {INT64_MAX}, {INT64_MIN}, {0}, {-1})
      .input({4}, x)
      .expect({4}, {4, 3, 2, 1})
      .expect_kernels({"tenon.slice.copy"});
  slice(host_, {INT64_MIN}, {INT64_MAX}, {0}, {1}).input({4}, x).expect({4}, {1, 2, 3, 4}).expect_kernels();
  slice(host_, {INT64_MIN}, {INT64_MAX}, {0}, {-1}).input({4}, x).expect({0}, {}).expect_kernels();
  slice(host_, {0}, {5}, {0}, {-1}).input({0}, std::vector<float>{}).expect({0}, {}).expect_kernels();
  slice(host_, {-1}, {INT64_MIN}, {0}, {-1}).input({0}, std::vector<float>{}).expect({0}, {}).expect_kernels();
  slice(host_, {2}, {1}, {0}, {1}).input({4}, x).expect({0}, {}).expect_kernels();
}

// A step beyond the axis takes one element; times the stride of the axis it would overflow.
TEST_F(SliceTest, ExtremeSteps) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  slice(host_, {1}, {INT64_MAX}, {0}, {INT64_MAX})
      .input({2, 3}, x)
      .expect({1, 3}, {4, 5, 6})
      .expect_kernels({"tenon.slice.copy"});
  slice(host_, {1, -1}, {INT64_MIN, INT64_MIN}, {0, 1}, {INT64_MIN, -1})
      .input({2, 3}, x)
      .expect({1, 3}, {6, 5, 4})
      .expect_kernels({"tenon.slice.copy"});
}

// Computed positions are inputs; axes and steps may be left out.
TEST_F(SliceTest, PositionsAsInputs) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const auto numbers = [](OpTester& tester, std::vector<int64_t> values) {
    tester.input<int64_t>({static_cast<int64_t>(values.size())}, values).constant();
  };
  OpTester all(host_, "tenon.slice/1");
  all.input({2, 3}, x);
  for (const std::vector<int64_t>& values : {std::vector<int64_t>{2}, {-4}, {1}, {-2}}) numbers(all, values);
  all.expect({2, 2}, {3, 1, 6, 4}).expect_kernels({"tenon.slice.copy"});
  OpTester two(host_, "tenon.slice/1");
  two.input({2, 3}, x);
  numbers(two, {1, 0});
  numbers(two, {2, 2});
  two.expect({1, 2}, {4, 5}).expect_kernels({"tenon.slice.copy"});
  OpTester lengths(host_, "tenon.slice/1");
  lengths.input({2, 3}, x);
  numbers(lengths, {1});
  numbers(lengths, {2, 2});
  lengths.expect_invalid({"equal lengths", "1, 2, 1 and 1"});
  OpTester twice(host_, "tenon.slice/1");
  twice.attr("starts", std::vector<int64_t>{0}).input({2, 3}, x);
  numbers(twice, {1});
  numbers(twice, {2});
  twice.expect_invalid({"starts", "an input and an attribute"});
  OpTester(host_, "tenon.slice/1").input({2, 3}, x).expect_invalid({"starts"});
}

TEST_F(SliceTest, SeveralAxes) {
  slice(host_, {0, -2}, {2, 3}, {0, -1}, {1, 1})
      .input({2, 3}, {1, 2, 3, 4, 5, 6})
      .expect({2, 2}, {2, 3, 5, 6})
      .expect_kernels({"tenon.slice.copy"});
}

TEST_F(SliceTest, DtypesAndRanks) {
  slice(host_, {1}, {3}, {0}, {1})
      .input<int8_t>({4}, {1, 2, 3, 4})
      .expect({2}, {2, 3})
      .expect_kernels({"tenon.slice.copy"});
  slice(host_, {3}, {0}, {0}, {-2})
      .input<uint16_t>({4}, {1, 2, 3, 4})
      .expect({2}, {4, 2})
      .expect_kernels({"tenon.slice.copy"});
  slice(host_, {1}, {3}, {0}, {1})
      .input<int64_t>({4}, {1, 2, 3, 4})
      .expect({2}, {2, 3})
      .expect_kernels({"tenon.slice.copy"});
  slice(host_, {}, {}, {}, {}).input<double>({}, {7}).expect({}, {7}).expect_kernels({"tenon.slice.copy"});
  slice(host_, {1}, {2}, {-1}, {1}).input({0, 3}, std::vector<float>{}).expect({0, 1}, {}).expect_kernels();
  slice(host_, {0, 1, 2}, {2, 0, 3}, {0, 2, 7}, {1, -1, 1})
      .random_input({2, 1, 2, 3, 1, 2, 2, 4})
      .expect_kernels({"tenon.slice.copy"});
}

TEST_F(SliceTest, ImageFormats) {
  slice(host_, {16}, {32}, {1}, {1}).random_input({2, 48, 3, 5}).expect_kernels({"tenon.slice.copy"});
  slice(host_, {3, 1}, {20, 4}, {1, 3}, {2, 1}).random_input({1, 24, 3, 5}).expect_kernels({"tenon.slice.copy"});
}

TEST_F(SliceTest, Errors) {
  slice(host_, {0}, {1}, {0}, {0}).random_input({4}).expect_invalid({"steps", "0"});
  slice(host_, {0, 0}, {1, 1}, {0, 0}, {1, 1}).random_input({4, 4}).expect_invalid({"axes", "twice"});
  slice(host_, {0}, {1, 2}, {0}, {1}).random_input({4}).expect_invalid({"lengths"});
}

}  // namespace
}  // namespace tenon::testing
