// Expected values from the examples of ONNX's operator descriptions (Gather-13, GatherND-13, GatherElements-13) and by
// hand.
#include <gtest/gtest.h>

#include <cstdint>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class GatherTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("gather")); }
  OpTester gather(int64_t axis) { return std::move(OpTester(host_, "tenon.gather/1").attr("axis", axis)); }
  OpTester nd(int64_t batch_dims) {
    return std::move(OpTester(host_, "tenon.gather_nd/1").attr("batch_dims", batch_dims));
  }
  OpTester elements(int64_t axis) { return std::move(OpTester(host_, "tenon.gather_elements/1").attr("axis", axis)); }
  TestHost host_;
};

TEST_F(GatherTest, Gather) {
  gather(0)
      .input({3, 2}, {1.0, 1.2f, 2.3f, 3.4f, 4.5f, 5.7f})
      .input<int64_t>({2, 2}, {0, 1, 1, 2})
      .expect({2, 2, 2}, {1.0, 1.2, 2.3, 3.4, 2.3, 3.4, 4.5, 5.7})
      .expect_kernels({"tenon.gather.copy"});
  gather(-1)
      .input<int8_t>({3, 3}, {10, 12, 19, 23, 34, 39, 45, 57, 59})
      .input<int32_t>({1, 2}, {0, -1})
      .expect({3, 1, 2}, {10, 19, 23, 39, 45, 59})
      .expect_kernels({"tenon.gather.copy"});
  gather(0)
      .input<double>({3}, {5, 6, 7})
      .input<int64_t>({}, {-2})
      .expect({}, {6})
      .expect_kernels({"tenon.gather.copy"});
  gather(0).input<int16_t>({3}, {5, 6, 7}).input<int64_t>({0}, {}).expect({0}, {}).expect_kernels();
}

// Out of range at run time: the nearest position.
TEST_F(GatherTest, ClampsAtRunTime) {
  gather(0)
      .input({3}, {5, 6, 7})
      .input<int64_t>({4}, {3, -4, INT64_MAX, INT64_MIN})
      .expect({4}, {7, 5, 7, 5})
      .expect_kernels({"tenon.gather.copy"});
}

TEST_F(GatherTest, Large) {
  std::vector<int64_t> indices;
  for (int64_t n = 0; n < 300; ++n) indices.push_back((n * 7919) % 80 - 40);
  gather(1).random_input({5, 40, 30}).input<int64_t>({300}, indices).expect_kernels({"tenon.gather.copy"});
  gather(2).random_input({5, 40, 40}).input<int64_t>({300}, indices).expect_kernels({"tenon.gather.copy"});
}

TEST_F(GatherTest, GatherErrors) {
  gather(2).random_input({3, 2}).input<int64_t>({1}, {0}).expect_invalid({"axis", "2"});
  gather(0).random_input({3, 2}).input<int64_t>({1}, {3}).constant().expect_invalid({"indices", "-3 to 2", "3"});
  gather(0).random_input({3, 2}).input<int64_t>({1}, {-4}).constant().expect_invalid({"indices", "-4"});
  gather(0).input({0, 2}, {}).input<int64_t>({1}, {0}).expect_invalid({"indices", "size 0"});
  gather(0).random_input({3, 2}).random_input({1}).expect_invalid({"indices", "f32"});
  gather(0).random_input({1, 1, 1, 1, 1}).input<int64_t>({1, 1, 1, 1, 1}, {0}).expect_invalid({"at most 8"});
}

TEST_F(GatherTest, GatherNd) {
  nd(0)
      .input({2, 2}, {0, 1, 2, 3})
      .input<int64_t>({2, 2}, {0, 0, 1, 1})
      .expect({2}, {0, 3})
      .expect_kernels({"tenon.gather_nd.copy"});
  nd(0)
      .input({2, 2}, {0, 1, 2, 3})
      .input<int64_t>({2, 1}, {1, 0})
      .expect({2, 2}, {2, 3, 0, 1})
      .expect_kernels({"tenon.gather_nd.copy"});
  nd(0)
      .input<int64_t>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})
      .input<int64_t>({2, 1, 2}, {0, 1, 1, 0})
      .expect({2, 1, 2}, {2, 3, 4, 5})
      .expect_kernels({"tenon.gather_nd.copy"});
  nd(1)
      .input<uint8_t>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})
      .input<int32_t>({2, 1}, {-1, 0})
      .expect({2, 2}, {2, 3, 4, 5})
      .expect_kernels({"tenon.gather_nd.copy"});
}

TEST_F(GatherTest, GatherNdErrors) {
  nd(0).random_input({2, 2}).input<int64_t>({1, 3}, {0, 0, 0}).expect_invalid({"tuple", "1 to 2", "3"});
  nd(0).random_input({2, 2}).input<int64_t>({1, 0}, {}).expect_invalid({"tuple", "0"});
  nd(2).random_input({2, 2}).input<int64_t>({1, 1}, {0}).expect_invalid({"batch_dims", "2"});
  nd(1).random_input({2, 2}).input<int64_t>({3, 1}, {0, 0, 0}).expect_invalid({"batch", "[2,2]", "[3,1]"});
  nd(0).random_input({2, 3}).input<int64_t>({1, 2}, {1, 3}).constant().expect_invalid({"indices", "3"});
  nd(0).random_input({2}).input<int64_t>({}, {1}).expect_invalid({"rank"});
}

TEST_F(GatherTest, GatherElements) {
  elements(1)
      .input({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({2, 2}, {0, 0, 1, 0})
      .expect({2, 2}, {1, 1, 4, 3})
      .expect_kernels({"tenon.gather_elements.copy"});
  elements(0)
      .input({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})
      .input<int32_t>({2, 3}, {1, 2, 0, 2, 0, 0})
      .expect({2, 3}, {4, 8, 3, 7, 2, 3})
      .expect_kernels({"tenon.gather_elements.copy"});
  // Fewer rows than the input, and more columns along the axis.
  elements(-1)
      .input<int16_t>({2, 2}, {1, 2, 3, 4})
      .input<int64_t>({1, 4}, {-1, -2, 0, 1})
      .expect({1, 4}, {2, 1, 1, 2})
      .expect_kernels({"tenon.gather_elements.copy"});
  std::vector<int64_t> indices;
  for (int64_t n = 0; n < 3 * 9 * 70; ++n) indices.push_back((n * 31) % 5);
  elements(1)
      .random_input({3, 5, 70})
      .input<int64_t>({3, 9, 70}, indices)
      .expect_kernels({"tenon.gather_elements.copy"});
}

TEST_F(GatherTest, GatherElementsErrors) {
  elements(0).random_input({2, 2}).input<int64_t>({1, 3}, {0, 0, 0}).expect_invalid({"indices", "[2,2]", "[1,3]"});
  elements(0).random_input({2, 2}).input<int64_t>({1}, {0}).expect_invalid({"indices", "[2,2]", "[1]"});
  elements(0).random_input({2, 2}).input<int64_t>({1, 1}, {2}).constant().expect_invalid({"indices", "2"});
  elements(0).random_input({}).input<int64_t>({}, {0}).expect_invalid({"axis"});
}

}  // namespace
}  // namespace tenon::testing
