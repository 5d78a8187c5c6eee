// Expected values: by hand, and Darknet's geometry as published.
#include <gtest/gtest.h>

#include <limits>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

using Ints = std::vector<int64_t>;

class MaxPoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.load("max_pool"));
    onednn_ = host_.load("max_pool_onednn");
  }
  OpTester pool(const Ints& kernel, const Ints& strides, const Ints& pads, const std::string& rounding = "floor") {
    OpTester tester(host_, "tenon.max_pool/1");
    tester.attr("kernel", kernel).attr("strides", strides).attr("pads", pads).attr("rounding", rounding);
    return tester;
  }
  // As Darknet does it: the total padding is size - 1.
  OpTester darknet(int64_t size, int64_t stride) {
    const int64_t begin = (size - 1) / 2;
    const int64_t end = size - 1 - begin;
    return pool({size, size}, {stride, stride}, {begin, begin, end, end});
  }
  std::vector<std::string> kernels() const {
    if (onednn_) return {"tenon.max_pool.vector.f32", "tenon.max_pool.onednn.f32"};
    return {"tenon.max_pool.vector.f32"};
  }
  TestHost host_;
  bool onednn_ = false;
};

TEST_F(MaxPoolTest, DarknetGeometry) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  darknet(2, 1).input({1, 1, 3, 3}, x).expect({1, 1, 3, 3}, {5, 6, 6, 8, 9, 9, 8, 9, 9}).expect_kernels(kernels());
  darknet(2, 2).input({1, 1, 3, 3}, x).expect({1, 1, 2, 2}, {5, 6, 8, 9}).expect_kernels(kernels());
  darknet(3, 1).input({1, 1, 3, 3}, x).expect({1, 1, 3, 3}, {5, 6, 6, 8, 9, 9, 8, 9, 9}).expect_kernels(kernels());
  EXPECT_EQ(to_text(darknet(2, 1).random_input({1, 1, 13, 13}).reference().dims), "[1,1,13,13]");
  EXPECT_EQ(to_text(darknet(2, 2).random_input({1, 1, 135, 135}).reference().dims), "[1,1,68,68]");
}

TEST_F(MaxPoolTest, DarknetOf2017) {
  // padding p = (size - 1) / 2, out = (in + 2p) / stride, window from -p.
  const auto era = [&](int64_t size, int64_t stride) {
    const int64_t p = (size - 1) / 2;
    return pool({size, size}, {stride, stride}, {p, p, p + size - stride, p + size - stride});
  };
  EXPECT_EQ(to_text(era(2, 2).random_input({1, 1, 135, 135}).reference().dims), "[1,1,67,67]");
  EXPECT_EQ(to_text(era(2, 1).random_input({1, 1, 13, 13}).reference().dims), "[1,1,13,13]");
  EXPECT_EQ(to_text(era(3, 2).random_input({1, 1, 13, 13}).reference().dims), "[1,1,7,7]");
  EXPECT_EQ(to_text(era(1, 2).random_input({1, 1, 5, 5}).reference().dims), "[1,1,2,2]");
  era(1, 2).random_input({1, 3, 5, 5}).expect_kernels({"tenon.max_pool.vector.f32"});
  era(2, 2).random_input({1, 3, 15, 15}).expect_kernels(kernels());
}

TEST_F(MaxPoolTest, Rounding) {
  const std::vector<float> x = {1, 2, 3, 4, 5};
  pool({1, 2}, {1, 2}, {0, 0, 0, 0}).input({1, 1, 1, 5}, x).expect({1, 1, 1, 2}, {2, 4}).expect_kernels(kernels());
  pool({1, 2}, {1, 2}, {0, 0, 0, 0}, "ceil")
      .input({1, 1, 1, 5}, x)
      .expect({1, 1, 1, 3}, {2, 4, 5})
      .expect_kernels(kernels());
  // The third window would start at 4, behind the image: it is dropped.
  pool({1, 1}, {1, 2}, {0, 0, 0, 1}, "ceil")
      .input({1, 1, 1, 4}, {1, 2, 3, 4})
      .expect({1, 1, 1, 2}, {1, 3})
      .expect_kernels();
}

TEST_F(MaxPoolTest, NegativeValuesAndPads) {
  pool({3, 3}, {1, 1}, {1, 1, 1, 1}).input({1, 1, 1, 1}, {-7}).expect({1, 1, 1, 1}, {-7}).expect_kernels(kernels());
}

TEST_F(MaxPoolTest, KernelsAgree) {
  for (const Dims& dims : {Dims{1, 16, 13, 13}, Dims{2, 21, 9, 6}}) {
    pool({2, 2}, {2, 2}, {0, 0, 1, 1}).random_input(dims).expect_kernels(kernels());
    pool({3, 3}, {2, 2}, {1, 1, 1, 1}).random_input(dims).expect_kernels(kernels());
    pool({5, 3}, {1, 2}, {2, 0, 2, 1}).random_input(dims).expect_kernels(kernels());
    pool({2, 2}, {1, 1}, {0, 0, 0, 0})
        .attr("dilations", Ints{3, 2})
        .random_input(dims)
        .expect_kernels({"tenon.max_pool.vector.f32"});
  }
}

TEST_F(MaxPoolTest, Errors) {
  pool({2}, {1, 1}, {0, 0, 0, 0}).random_input({1, 1, 3, 3}).expect_invalid({"kernel", "2 integers", "1"});
  pool({2, 2}, {1, 0}, {0, 0, 0, 0}).random_input({1, 1, 3, 3}).expect_invalid({"strides", "at least 1", "0"});
  pool({2, 2}, {1, 1}, {-1, 0, 0, 0}).random_input({1, 1, 3, 3}).expect_invalid({"pads", "-1"});
  pool({2, 2}, {1, 1}, {0, 0, INT64_MAX, 0}).random_input({1, 1, 3, 3}).expect_invalid({"pads", "at most"});
  pool({INT64_MAX, 2}, {1, 1}, {0, 0, 0, 0}).random_input({1, 1, 3, 3}).expect_invalid({"kernel", "at most"});
  pool({5, 5}, {1, 1}, {0, 0, 0, 0}).random_input({1, 1, 3, 3}).expect_invalid({"height", "5", "3"});
  pool({2, 2}, {1, 1}, {0, 0, 0, 0}).random_input({3, 3}).expect_invalid({"rank 4", "[3,3]"});
  pool({2, 2}, {1, 1}, {0, 0, 0, 0}, "up")
      .random_input({1, 1, 3, 3})
      .expect_invalid({"rounding", "floor or ceil", "up"});
}

}  // namespace
}  // namespace tenon::testing
