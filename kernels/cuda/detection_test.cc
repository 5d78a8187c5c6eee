#include "kernels/cuda/detection.h"

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

class DetectionTest : public CudaTest {
 protected:
  // kind 0: region with softmax, 1: region with logistic, 2: yolo.
  void check(int kind, int64_t n, int64_t anchors, int64_t coords, int64_t classes, int64_t pixels, float scale) {
    SCOPED_TRACE(testing::Message() << "kind " << kind << " n " << n << " anchors " << anchors << " coords " << coords
                                    << " classes " << classes << " pixels " << pixels);
    const int64_t entries = coords + 1 + classes;
    const auto x = random_floats(n * anchors * entries * pixels, 7, -6, 6);
    std::vector<double> expected;
    for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
      const int64_t entry = i / pixels % entries;
      double value = logistic(x[i]);
      if (entry < 2 && kind == 2) value = value * scale - 0.5 * (static_cast<double>(scale) - 1);
      if (entry >= 2 && entry < coords) value = x[i];
      if (entry > coords && kind == 0) {
        const int64_t first = i - (entry - coords - 1) * pixels;
        double sum = 0;
        for (int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(x[first + c * pixels]));
        value = std::exp(static_cast<double>(x[i])) / sum;
      }
      expected.push_back(value);
    }
    const Input input(x, 4);
    const Output output(x.size() * sizeof(float), 4);
    const auto run = [&](float* to, cudaStream_t stream) {
      return kind == 2 ? yolo_head(n, anchors, classes, pixels, scale, input.data(), to, stream)
                       : region_head(n, anchors, coords, classes, pixels, kind == 0, input.data(), to, stream);
    };
    launch([&](cudaStream_t stream) { return run(output.data(), stream); });
    EXPECT_EQ(count_mismatches(output.get(), expected, 1e-6), 0);
    launch([&](cudaStream_t stream) { return run(input.data(), stream); });
    std::vector<float> in_place(x.size());
    ASSERT_EQ(cudaMemcpy(in_place.data(), input.data(), x.size() * sizeof(float), cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_TRUE(same_bits(in_place, output.get()));
  }
};

TEST_F(DetectionTest, Region) {
  for (const int kind : {0, 1}) {
    check(kind, 1, 5, 4, 20, 169, 1);
    check(kind, 2, 3, 2, 1, 5, 1);
    check(kind, 2, 2, 6, 80, 33, 1);
    check(kind, 0, 5, 4, 20, 169, 1);
    check(kind, 1, 5, 4, 20, 0, 1);
  }
}

TEST_F(DetectionTest, Yolo) {
  check(2, 1, 3, 4, 80, 169, 1.0f);
  check(2, 2, 3, 4, 7, 37, 1.05f);
  check(2, 2, 0, 4, 7, 37, 1.05f);
}

}  // namespace
}  // namespace tenon::cuda
