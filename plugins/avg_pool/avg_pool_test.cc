// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

using Ints = std::vector<int64_t>;

class AvgPoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.load("avg_pool"));
    onednn_ = host_.load("avg_pool_onednn");
  }
  OpTester pool(const Ints& kernel, const Ints& strides, const Ints& pads, const std::string& rounding,
                int64_t include) {
    OpTester tester(host_, "tenon.avg_pool/1");
    tester.attr("kernel", kernel).attr("strides", strides).attr("pads", pads).attr("rounding", rounding);
    tester.attr("count_include_pad", include);
    return tester;
  }
  std::vector<std::string> kernels() const {
    if (onednn_) return {"tenon.avg_pool.vector.f32", "tenon.avg_pool.onednn.f32"};
    return {"tenon.avg_pool.vector.f32"};
  }
  TestHost host_;
  bool onednn_ = false;
};

TEST_F(AvgPoolTest, Values) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  pool({2, 2}, {1, 1}, {0, 0, 0, 0}, "floor", 0)
      .input({1, 1, 3, 3}, x)
      .expect({1, 1, 2, 2}, {3, 4, 6, 7})
      .expect_kernels(kernels());
  pool({2, 2}, {2, 2}, {1, 1, 0, 0}, "floor", 0)
      .input({1, 1, 3, 3}, x)
      .expect({1, 1, 2, 2}, {1, 2.5, 5.5, 7})
      .expect_kernels(kernels());
  pool({2, 2}, {2, 2}, {1, 1, 0, 0}, "floor", 1)
      .input({1, 1, 3, 3}, x)
      .expect({1, 1, 2, 2}, {0.25, 1.25, 2.75, 7})
      .expect_kernels(kernels());
}

TEST_F(AvgPoolTest, CeilCountsPadsButNotWhatLiesBehindThem) {
  const std::vector<float> x = {2, 4, 6, 8};
  // Windows [pad,2,4], [4,6,8]... of 3 with stride 2 and one pad cell on each side: the last one is [8, pad].
  pool({1, 3}, {1, 3}, {0, 1, 0, 1}, "ceil", 1)
      .input({1, 1, 1, 4}, x)
      .expect({1, 1, 1, 2}, {2, 14.0 / 3})
      .expect_kernels({"tenon.avg_pool.vector.f32"});
  pool({1, 3}, {1, 2}, {0, 0, 0, 0}, "ceil", 1)
      .input({1, 1, 1, 4}, x)
      .expect({1, 1, 1, 2}, {4, 7})
      .expect_kernels({"tenon.avg_pool.vector.f32"});
  pool({1, 3}, {1, 2}, {0, 0, 0, 0}, "ceil", 0)
      .input({1, 1, 1, 4}, x)
      .expect({1, 1, 1, 2}, {4, 7})
      .expect_kernels(kernels());
}

TEST_F(AvgPoolTest, KernelsAgree) {
  for (const Dims& dims : {Dims{1, 16, 13, 13}, Dims{2, 21, 9, 6}}) {
    for (int64_t include = 0; include < 2; ++include) {
      pool({3, 3}, {2, 2}, {1, 1, 1, 1}, "floor", include).random_input(dims).expect_kernels(kernels());
      pool({2, 2}, {2, 2}, {0, 0, 0, 0}, "floor", include).random_input(dims).expect_kernels(kernels());
      pool({3, 2}, {1, 2}, {2, 0, 1, 1}, "ceil", include)
          .random_input(dims)
          .expect_kernels({"tenon.avg_pool.vector.f32"});
    }
    // One cell a channel: every format gives rows, too.
    pool({dims[2], dims[3]}, {1, 1}, {0, 0, 0, 0}, "floor", 0).random_input(dims).expect_kernels(kernels());
  }
}

}  // namespace
}  // namespace tenon::testing
