// Expected values from ONNX's operator descriptions (ScatterND-18, ScatterElements-18, TensorScatter-24) and by hand.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class ScatterTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("scatter")); }
  OpTester nd(const std::string& reduction = "none") {
    return std::move(OpTester(host_, "tenon.scatter_nd/1").attr("reduction", reduction));
  }
  OpTester elements(int64_t axis, const std::string& reduction = "none") {
    return std::move(OpTester(host_, "tenon.scatter_elements/1").attr("axis", axis).attr("reduction", reduction));
  }
  OpTester cache(const std::string& mode, int64_t axis) {
    return std::move(OpTester(host_, "tenon.tensor_scatter/1").attr("mode", mode).attr("axis", axis));
  }
  TestHost host_;
};

TEST_F(ScatterTest, Nd) {
  nd().input({8}, {1, 2, 3, 4, 5, 6, 7, 8})
      .input<int64_t>({4, 1}, {4, 3, 1, 7})
      .input({4}, {9, 10, 11, 12})
      .expect({8}, {1, 11, 3, 10, 9, 6, 7, 12})
      .expect_kernels({"tenon.scatter_nd.ordered"});
  nd().input<int16_t>({3, 2}, {1, 2, 3, 4, 5, 6})
      .input<int32_t>({2, 1}, {-1, 0})
      .input<int16_t>({2, 2}, {7, 8, 9, 10})
      .expect({3, 2}, {9, 10, 3, 4, 7, 8})
      .expect_kernels({"tenon.scatter_nd.ordered"});
  nd().input<int8_t>({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({1, 2, 2}, {0, 1, 1, -2})
      .input<int8_t>({1, 2}, {7, 8})
      .expect({2, 2}, {1, 7, 8, 4})
      .expect_kernels({"tenon.scatter_nd.ordered"});
}

// Updates of one place take effect one after the other.
TEST_F(ScatterTest, NdDuplicates) {
  const auto expect = [&](const std::string& reduction, const std::vector<double>& y) {
    nd(reduction)
        .input({4}, {1, 2, 3, 4})
        .input<int64_t>({3, 1}, {1, 1, 3})
        .input({3}, {5, -6, 7})
        .expect({4}, y)
        .expect_kernels({"tenon.scatter_nd.ordered"});
    nd(reduction)
        .input<int64_t>({4}, {1, 2, 3, 4})
        .input<int64_t>({3, 1}, {1, 1, 3})
        .input<int64_t>({3}, {5, -6, 7})
        .expect({4}, y)
        .expect_kernels({"tenon.scatter_nd.ordered"});
  };
  expect("none", {1, -6, 3, 7});
  expect("add", {1, 1, 3, 11});
  expect("mul", {1, -60, 3, 28});
  expect("min", {1, -6, 3, 4});
  expect("max", {1, 5, 3, 7});
}

TEST_F(ScatterTest, IntegersWrapAround) {
  nd("add")
      .input<int8_t>({2}, {127, 1})
      .input<int64_t>({1, 1}, {0})
      .input<int8_t>({1}, {1})
      .expect({2}, {-128, 1})
      .expect_kernels();
  nd("mul")
      .input<uint16_t>({1}, {65535})
      .input<int64_t>({1, 1}, {0})
      .input<uint16_t>({1}, {65535})
      .expect({1}, {1})
      .expect_kernels();
}

TEST_F(ScatterTest, NanStays) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* reduction : {"min", "max"}) {
    nd(reduction)
        .input({2}, {nan, 1})
        .input<int64_t>({2, 1}, {0, 1})
        .input({2}, {2, nan})
        .expect({2}, {nan, nan})
        .expect_kernels();
  }
}

TEST_F(ScatterTest, ClampsAtRunTime) {
  nd().input({3}, {1, 2, 3})
      .input<int64_t>({2, 1}, {INT64_MIN, INT64_MAX})
      .input({2}, {7, 8})
      .expect({3}, {7, 2, 8})
      .expect_kernels();
}

TEST_F(ScatterTest, NdLarge) {
  std::vector<int64_t> rows, cells;
  for (int64_t n = 0; n < 400; ++n) rows.push_back((n * 37) % 50 - 25);
  for (int64_t n = 0; n < 40000; ++n) cells.push_back((n * 7919) % 1000);
  nd("add")
      .random_input({50, 300})
      .input<int64_t>({400, 1}, rows)
      .random_input({400, 300})
      .expect_kernels({"tenon.scatter_nd.ordered"});
  nd("none")
      .random_input({1000, 2})
      .input<int64_t>({40000, 1}, cells)
      .random_input({40000, 2})
      .expect_kernels({"tenon.scatter_nd.ordered"});
}

TEST_F(ScatterTest, NdErrors) {
  nd().random_input({4}).input<int64_t>({1, 2}, {0, 0}).random_input({1}).expect_invalid({"tuple", "1", "2"});
  nd().random_input({4}).input<int64_t>({1, 1}, {0}).random_input({2}).expect_invalid({"updates", "[1]", "[2]"});
  nd().random_input({4}).input<int64_t>({1, 1}, {0}).input<double>({1}, {0}).expect_invalid({"updates", "f64"});
  nd().random_input({4}).input<int64_t>({1, 1}, {4}).constant().random_input({1}).expect_invalid({"indices", "4"});
  nd().input({0, 2}, {}).input<int64_t>({1, 1}, {0}).random_input({1, 2}).expect_invalid({"size 0"});
}

TEST_F(ScatterTest, Elements) {
  elements(0)
      .input({3, 3}, std::vector<float>(9, 0.0f))
      .input<int64_t>({2, 3}, {1, 0, 2, 0, 2, 1})
      .input({2, 3}, {1.0f, 1.1f, 1.2f, 2.0f, 2.1f, 2.2f})
      .expect({3, 3}, {2.0, 1.1, 0.0, 1.0, 0.0, 2.2, 0.0, 2.1, 1.2})
      .expect_kernels({"tenon.scatter_elements.ordered"});
  elements(1)
      .input({1, 5}, {1, 2, 3, 4, 5})
      .input<int32_t>({1, 2}, {1, -2})
      .input({1, 2}, {1.1f, 2.1f})
      .expect({1, 5}, {1.0, 1.1, 3.0, 2.1, 5.0})
      .expect_kernels({"tenon.scatter_elements.ordered"});
  const auto expect = [&](const std::string& reduction, const std::vector<double>& y) {
    elements(-1, reduction)
        .input<int32_t>({1, 5}, {1, 2, 3, 4, 5})
        .input<int64_t>({1, 3}, {1, 1, 0})
        .input<int32_t>({1, 3}, {-7, 3, 0})
        .expect({1, 5}, y)
        .expect_kernels({"tenon.scatter_elements.ordered"});
  };
  expect("none", {0, 3, 3, 4, 5});
  expect("add", {1, -2, 3, 4, 5});
  expect("mul", {0, -42, 3, 4, 5});
  expect("min", {0, -7, 3, 4, 5});
  expect("max", {1, 3, 3, 4, 5});
}

TEST_F(ScatterTest, ElementsLarge) {
  std::vector<int64_t> indices;
  for (int64_t n = 0; n < 7 * 90 * 40; ++n) indices.push_back((n * 31) % 100);
  elements(1, "add")
      .random_input({8, 100, 45})
      .input<int64_t>({7, 90, 40}, indices)
      .random_input({7, 90, 40})
      .expect_kernels({"tenon.scatter_elements.ordered"});
}

TEST_F(ScatterTest, ElementsErrors) {
  elements(2).random_input({2, 2}).input<int64_t>({1, 1}, {0}).random_input({1, 1}).expect_invalid({"axis", "2"});
  elements(0)
      .random_input({2, 2})
      .input<int64_t>({1, 3}, {0, 0, 0})
      .random_input({1, 3})
      .expect_invalid({"indices", "[2,2]", "[1,3]"});
  elements(0)
      .random_input({2, 2})
      .input<int64_t>({1, 1}, {0})
      .random_input({1, 2})
      .expect_invalid({"updates", "[1,1]", "[1,2]"});
}

TEST_F(ScatterTest, Cache) {
  cache("linear", 1)
      .input({2, 3, 1}, {1, 2, 3, 4, 5, 6})
      .input({2, 1, 1}, {7, 8})
      .input<int64_t>({2}, {1, 2})
      .expect({2, 3, 1}, {1, 7, 3, 4, 5, 8})
      .expect_kernels({"tenon.tensor_scatter.copy"});
  cache("circular", -2)
      .input<int16_t>({2, 3, 1}, {1, 2, 3, 4, 5, 6})
      .input<int16_t>({2, 2, 1}, {7, 8, 9, 10})
      .input<int64_t>({2}, {2, 4})
      .expect({2, 3, 1}, {8, 2, 7, 4, 9, 10})
      .expect_kernels({"tenon.tensor_scatter.copy"});
  cache("linear", -1)
      .input({1, 2, 3}, {1, 2, 3, 4, 5, 6})
      .input({1, 2, 2}, {7, 8, 9, 10})
      .expect({1, 2, 3}, {7, 8, 3, 9, 10, 6})
      .expect_kernels({"tenon.tensor_scatter.copy"});
}

TEST_F(ScatterTest, CacheErrors) {
  cache("linear", 1).random_input({2, 3}).random_input({2, 4}).expect_invalid({"update", "[2,4]"});
  cache("linear", 0).random_input({2, 3}).random_input({2, 3}).expect_invalid({"axis", "0"});
  cache("linear", 1)
      .random_input({2, 3})
      .random_input({2, 2})
      .input<int64_t>({2}, {0, 2})
      .constant()
      .expect_invalid({"write_indices", "0 to 1", "2"});
  cache("linear", 1)
      .random_input({2, 3})
      .random_input({2, 2})
      .input<int64_t>({1}, {0})
      .expect_invalid({"write_indices", "[2]", "[1]"});
}

}  // namespace
}  // namespace tenon::testing
