// Expected values by hand.
#include <gtest/gtest.h>

#include "plugins/common/testing/op_tester.h"

namespace tenon::testing {
namespace {

class MatmulTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(host_.load("matmul"));
    onednn_ = host_.load("matmul_onednn");
  }
  OpTester matmul(int64_t transpose_a, int64_t transpose_b) {
    OpTester tester(host_, "tenon.matmul/1");
    tester.attr("transpose_a", transpose_a).attr("transpose_b", transpose_b);
    return tester;
  }
  std::vector<std::string> kernels(std::vector<std::string> names) const {
    if (onednn_) names.push_back("tenon.matmul.onednn.f32");
    return names;
  }
  TestHost host_;
  bool onednn_ = false;
};

TEST_F(MatmulTest, Values) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<float> b = {7, 8, 9, 10, 11, 12};
  const std::vector<double> y = {58, 64, 139, 154};
  matmul(0, 0).input({2, 3}, a).input({3, 2}, b).expect({2, 2}, y).expect_kernels();
  matmul(1, 0).input({3, 2}, {1, 4, 2, 5, 3, 6}).input({3, 2}, b).expect({2, 2}, y).expect_kernels();
  matmul(0, 1).input({2, 3}, a).input({2, 3}, {7, 9, 11, 8, 10, 12}).expect({2, 2}, y).expect_kernels();
  matmul(1, 1)
      .input({3, 2}, {1, 4, 2, 5, 3, 6})
      .input({2, 3}, {7, 9, 11, 8, 10, 12})
      .expect({2, 2}, y)
      .expect_kernels();
  matmul(0, 0)
      .input({1, 2}, std::vector<int64_t>{3, int64_t{1} << 40})
      .input({2, 1}, std::vector<int64_t>{1, 2})
      .expect({1, 1}, {2199023255555.0});
}

TEST_F(MatmulTest, Batches) {
  matmul(0, 0)
      .input({2, 1, 1, 2}, {1, 2, 3, 4})
      .input({3, 2, 1}, {1, 1, 2, 0, 0, 3})
      .expect({2, 3, 1, 1}, {3, 2, 6, 7, 6, 12})
      .expect_kernels();
  matmul(0, 0).random_input({2, 3, 17, 9}).random_input({3, 9, 21}).expect_kernels(kernels({"tenon.matmul.tiled.f32"}));
  matmul(0, 0).random_input({4, 5, 9}).random_input({9, 21}).constant().expect_kernels(
      {"tenon.matmul.tiled.f32", "tenon.matmul.direct.f32", "tenon.matmul.prepacked.f32"});
}

TEST_F(MatmulTest, Errors) {
  matmul(0, 0).random_input({2, 3}).random_input({2, 3}).expect_invalid({"[2,3]", "inner", "3", "2"});
  matmul(0, 0).random_input({3}).random_input({3, 1}).expect_invalid({"rank", "[3]"});
}

TEST_F(MatmulTest, KernelsAgree) {
  const int64_t sizes[][3] = {{1, 1, 1}, {128, 128, 128}, {1, 1000, 513}, {37, 5, 300}, {200, 65, 31}};
  for (const auto& [m, n, k] : sizes) {
    for (int64_t ta = 0; ta < 2; ++ta) {
      for (int64_t tb = 0; tb < 2; ++tb) {
        for (bool constant : {false, true}) {
          OpTester tester = matmul(ta, tb);
          tester.random_input(ta ? Dims{k, m} : Dims{m, k}).random_input(tb ? Dims{n, k} : Dims{k, n});
          std::vector<std::string> names = {"tenon.matmul.tiled.f32"};
          if (constant) {
            tester.constant();
            names.push_back("tenon.matmul.prepacked.f32");
          }
          if (!tb) names.push_back("tenon.matmul.direct.f32");
          tester.expect_kernels(kernels(names));
          EXPECT_GE(tester.tactics_run().size(), onednn_ ? 3u : 2u) << "several tactics to choose from";
        }
      }
    }
  }
}

TEST_F(MatmulTest, Epilogues) {
  for (const Activation& activation : {Activation{ActivationKind::kRelu, 0, 0},
                                       {ActivationKind::kLeaky, 0.1, 0},
                                       {ActivationKind::kClip, 0, 6},
                                       {ActivationKind::kSwish, 0, 0}}) {
    matmul(0, 0)
        .random_input({33, 40})
        .random_input({40, 50})
        .epilogue(activation)
        .expect_kernels(kernels({"tenon.matmul.tiled.f32", "tenon.matmul.direct.f32"}));
  }
  for (const ActivationKind kind : {ActivationKind::kClip, ActivationKind::kLeaky, ActivationKind::kElu}) {
    matmul(0, 0)
        .random_input({33, 40})
        .random_input({40, 50})
        .epilogue({kind, -1, 3})
        .epilogue({kind, -0.5, 2})
        .expect_kernels();
  }
  for (ActivationKind kind : {ActivationKind::kLogistic, ActivationKind::kTanh, ActivationKind::kSwish,
                              ActivationKind::kMish, ActivationKind::kHardSwish}) {
    matmul(0, 0).random_input({33, 40}).random_input({40, 50}).epilogue({kind, 0, 0}).expect_kernels(kernels({}));
  }
}

TEST_F(MatmulTest, Empty) {
  matmul(0, 0)
      .input({2, 0}, std::vector<float>{})
      .input({0, 2}, std::vector<float>{})
      .expect({2, 2}, {0, 0, 0, 0})
      .expect_kernels();
  matmul(0, 0).input({0, 3}, std::vector<float>{}).random_input({3, 2}).expect({0, 2}, {}).expect_kernels();
}

}  // namespace
}  // namespace tenon::testing
