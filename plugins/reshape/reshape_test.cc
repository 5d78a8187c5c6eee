// The shapes with 0 and -1 are those that other engines got wrong.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class ReshapeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.load("reshape")); }
  TestHost host_;
};

OpTester reshape(TestHost& host, std::vector<int64_t> shape, int64_t allow_zero = 0) {
  OpTester tester(host, "tenon.reshape/1");
  tester.attr("shape", shape).attr("allow_zero", allow_zero);
  return tester;
}

TEST_F(ReshapeTest, ZeroAndMinusOne) {
  std::vector<float> x(24);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::vector<double> same(x.begin(), x.end());
  reshape(host_, {2, 0, 1, -1}).input({2, 3, 4}, x).expect({2, 3, 1, 4}, same).expect_kernels({"tenon.reshape.copy"});
  reshape(host_, {0, 0, -1}).input({2, 3, 4}, x).expect({2, 3, 4}, same).expect_kernels({"tenon.reshape.copy"});
  reshape(host_, {3, 4, 0}, 1)
      .input({0, 3, 4}, std::vector<float>{})
      .expect({3, 4, 0}, {})
      .expect_kernels({"tenon.reshape.copy"});
}

TEST_F(ReshapeTest, ShapeAsInput) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  OpTester(host_, "tenon.reshape/1")
      .input({2, 3}, x)
      .input<int64_t>({3}, {0, 1, -1})
      .constant()
      .expect({2, 1, 3}, {1, 2, 3, 4, 5, 6})
      .expect_kernels({"tenon.reshape.copy"});
  reshape(host_, {6}).input({2, 3}, x).input<int64_t>({1}, {6}).constant().expect_invalid({"both"});
  OpTester(host_, "tenon.reshape/1").input({2, 3}, x).expect_invalid({"shape"});
}

// As a flatten, a squeeze or an unsqueeze that holds for any batch.
TEST_F(ReshapeTest, CopiesOfOtherAxes) {
  std::vector<float> x(30);
  std::iota(x.begin(), x.end(), 0.0f);
  const std::vector<double> same(x.begin(), x.end());
  const auto copies = [&](std::vector<int64_t> shape, std::vector<int64_t> from) {
    OpTester tester = reshape(host_, std::move(shape));
    tester.attr("copies", std::move(from)).input({2, 3, 1, 5}, x);
    return tester;
  };
  copies({0, 1, 0, 0}, {0, -1, 1, 3}).expect({2, 1, 3, 5}, same);
  copies({0, 0, 0}, {0, 1, 3}).expect({2, 3, 5}, same);
  copies({-1, 0}, {-1, 3}).expect({6, 5}, same);
  copies({0, 0, 0}, {0, 1, 2}).expect_invalid({"30", "6"});
  copies({0, 0, 0}, {0, 1, 4}).expect_invalid({"axis 4", "[2,3,1,5]"});
  copies({0, 0, 0}, {0, 1, -2}).expect_invalid({"axis -2"});
  copies({0, 0, 0}, {0, 1}).expect_invalid({"copies", "expected 3", "found 2"});
}

TEST_F(ReshapeTest, DtypesAndRanks) {
  reshape(host_, {4})
      .input<int8_t>({2, 2}, {1, 2, 3, 4})
      .expect({4}, {1, 2, 3, 4})
      .expect_kernels({"tenon.reshape.copy"});
  reshape(host_, {4})
      .input<uint16_t>({2, 2}, {1, 2, 3, 4})
      .expect({4}, {1, 2, 3, 4})
      .expect_kernels({"tenon.reshape.copy"});
  reshape(host_, {4})
      .input<double>({2, 2}, {1, 2, 3, 4})
      .expect({4}, {1, 2, 3, 4})
      .expect_kernels({"tenon.reshape.copy"});
  reshape(host_, {}).input<int64_t>({1, 1}, {7}).expect({}, {7}).expect_kernels({"tenon.reshape.copy"});
  reshape(host_, {1, 1, 1, 1, 1, 1, 1, 1})
      .input<int64_t>({}, {7})
      .expect({1, 1, 1, 1, 1, 1, 1, 1}, {7})
      .expect_kernels({"tenon.reshape.copy"});
  reshape(host_, {-1, 3}).input({0, 3}, std::vector<float>{}).expect({0, 3}, {}).expect_kernels();
  reshape(host_, {1, 1, 1, 1, 1, 1, 1, 1, 1}).random_input({1}).expect_invalid({"at most 8", "9"});
}

TEST_F(ReshapeTest, Errors) {
  reshape(host_, {0, -1}, 1).input({0, 3}, std::vector<float>{}).expect_invalid({"allow_zero", "-1"});
  reshape(host_, {0, -1}, 1).random_input({2, 3}).expect_invalid({"allow_zero", "-1"});
  reshape(host_, {-1, -1}).random_input({2, 3}).expect_invalid({"at most one -1"});
  reshape(host_, {0, 1, -1}).input({0, 10}, std::vector<float>{}).expect_invalid({"-1 cannot be worked out"});
  reshape(host_, {4}).random_input({2, 3}).expect_invalid({"6", "4"});
  reshape(host_, {2, 3, 0}).random_input({2, 3}).expect_invalid({"axis 2"});
}

TEST_F(ReshapeTest, SizesOf64Bits) {
  const int64_t half = int64_t{1} << 32;  // the square of it is 0 in 64 bits
  reshape(host_, {half, half, -1}).random_input({2, 3}).expect_invalid({"shape", "64 bits"});
  reshape(host_, {half, half, 6}).random_input({2, 3}).expect_invalid({"shape", "64 bits"});
  reshape(host_, {INT64_MAX}).random_input({2, 3}).expect_invalid({"9223372036854775807"});
  reshape(host_, {INT64_MAX, -1}).random_input({2, 3}).expect_invalid({"-1 cannot be worked out"});
  reshape(host_, {INT64_MIN}).random_input({2, 3}).expect_invalid({"at least -1", "-9223372036854775808"});
  reshape(host_, {-2, -1}).random_input({2, 3}).expect_invalid({"at least -1", "-2"});
  reshape(host_, {half, half, 0}, 1).input({0, 3}, std::vector<float>{}).expect({half, half, 0}, {});
}

}  // namespace
}  // namespace tenon::testing
