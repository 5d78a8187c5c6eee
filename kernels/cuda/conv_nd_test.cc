#include "kernels/cuda/conv_nd.h"

#include "kernels/cuda/test_util.h"

namespace tenon::cuda {
namespace {

int64_t product(const int64_t* sizes, int axes) {
  int64_t result = 1;
  for (int n = 0; n < axes; ++n) result *= sizes[n];
  return result;
}

// Every product of the definition, added where it belongs: over positions and taps, whichever side is the output.
std::vector<double> expect(const ConvNdShape& s, const std::vector<float>& x, const std::vector<float>& weights,
                           const std::vector<float>& bias, const std::vector<float>& residual) {
  const int64_t pixels = product(s.pixels, s.axes), positions = product(s.positions, s.axes);
  const int64_t taps = product(s.kernel, s.axes);
  const int64_t x_plane = s.transposed ? positions : pixels, y_plane = s.transposed ? pixels : positions;
  const int64_t in = s.inputs / s.groups, out = s.outputs / s.groups;
  std::vector<double> y(s.n * s.outputs * y_plane);
  for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
    if (!bias.empty()) y[i] = bias[i / y_plane % s.outputs];
    if (!residual.empty()) y[i] += residual[i];
  }
  for (int64_t position = 0; position < positions; ++position) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t pixel = 0, step = 1, p = position, t = tap;
      bool inside = true;
      for (int n = s.axes - 1; n >= 0; --n) {
        const int64_t at = p % s.positions[n] * s.stride[n] - s.pad[n] + t % s.kernel[n] * s.dilation[n];
        inside = inside && at >= 0 && at < s.pixels[n];
        pixel += at * step;
        step *= s.pixels[n], p /= s.positions[n], t /= s.kernel[n];
      }
      if (!inside) continue;
      for (int64_t image = 0; image < s.n; ++image) {
        for (int64_t k = 0; k < s.outputs; ++k) {
          for (int64_t c = 0; c < in; ++c) {
            const int64_t from = k / out * in + c;
            const double w =
                s.transposed ? weights[(from * out + k % out) * taps + tap] : weights[(k * in + c) * taps + tap];
            y[(image * s.outputs + k) * y_plane + (s.transposed ? pixel : position)] +=
                w * x[(image * s.inputs + from) * x_plane + (s.transposed ? position : pixel)];
          }
        }
      }
    }
  }
  return y;
}

class ConvNdTest : public CudaTest {
 protected:
  void check(const ConvNdShape& s) {
    for (const auto algorithm : {ConvNdAlgorithm::kDirect, ConvNdAlgorithm::kImplicitGemm}) check(algorithm, s);
  }
  void check(ConvNdAlgorithm algorithm, const ConvNdShape& s) {
    ASSERT_TRUE(conv_nd_supports(s));
    const int64_t pixels = product(s.pixels, s.axes), positions = product(s.positions, s.axes);
    const auto x = random_floats(s.n * s.inputs * (s.transposed ? positions : pixels), 1);
    const auto weights = random_floats(s.inputs * s.outputs / s.groups * product(s.kernel, s.axes), 2);
    const auto bias = random_floats(s.outputs, 3);
    const auto residual = random_floats(s.n * s.outputs * (s.transposed ? pixels : positions), 4);
    const std::vector<float> none;
    const auto run = [&](ElementType type, const auto& x_values, const auto& w_values, const auto& bias_values,
                         const auto& residual_values) {
      using T = std::decay_t<decltype(x_values[0])>;
      const Input input(x_values, sizeof(T)), w(w_values, sizeof(T)), b(bias_values), r(residual_values, sizeof(T));
      const Output y(residual.size() * sizeof(T), sizeof(T));
      launch([&](cudaStream_t stream) {
        return conv_nd(type, algorithm, s, input.data(), w.data(), bias_values.empty() ? nullptr : b.data(),
                       residual_values.empty() ? nullptr : r.data(), {}, y.data(), stream);
      });
      return y.template get<T>();
    };
    EXPECT_EQ(count_mismatches(run(ElementType::kF32, x, weights, bias, residual),
                               expect(s, x, weights, bias, residual), 2e-5),
              0);
    EXPECT_EQ(count_mismatches(run(ElementType::kF32, x, weights, none, none), expect(s, x, weights, none, none), 2e-5),
              0);
    const auto hx = to_half(x), hw = to_half(weights), hb = to_half(bias), hr = to_half(residual);
    EXPECT_EQ(count_mismatches(to_floats(run(ElementType::kF16, hx, hw, hb, hr)),
                               expect(s, to_floats(hx), to_floats(hw), to_floats(hb), to_floats(hr)), 1e-3),
              0);
  }

  // Positions so that all windows fit into the pixels and pads.
  static ConvNdShape shape(bool transposed, int64_t n, int64_t inputs, int64_t outputs, int64_t groups,
                           std::vector<int64_t> pixels, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
    ConvNdShape s;
    s.transposed = transposed;
    s.n = n, s.inputs = inputs, s.outputs = outputs, s.groups = groups;
    s.axes = static_cast<int>(pixels.size());
    for (int i = 0; i < s.axes; ++i) {
      s.pixels[i] = pixels[i];
      s.kernel[i] = kernel + i % 2, s.stride[i] = stride, s.dilation[i] = dilation, s.pad[i] = pad;
      s.positions[i] = (pixels[i] + 2 * pad - dilation * (s.kernel[i] - 1) - 1) / stride + 1;
    }
    return s;
  }
};

TEST_F(ConvNdTest, GradedShapes) {
  for (const bool transposed : {false, true}) {
    for (const std::vector<int64_t>& pixels : {std::vector<int64_t>{37}, {9, 11}, {7, 8, 9}}) {
      for (const int64_t stride : {1, 2, 3}) {
        for (const int64_t dilation : {1, 2}) {
          check(shape(transposed, 2, 3, 5, 1, pixels, 3, stride, dilation, 1));
          check(shape(transposed, 1, 4, 4, 4, pixels, 2, stride, dilation, 0));
          check(shape(transposed, 2, 6, 18, 2, pixels, 1, stride, dilation, 2));
          if (HasFailure()) FAIL() << "stride " << stride << " dilation " << dilation << " axes " << pixels.size();
        }
      }
    }
    check(shape(transposed, 1, 33, 17, 1, {20, 21}, 3, 1, 1, 1));
    check(shape(transposed, 1, 7, 70, 1, {12, 10}, 3, 2, 1, 1));
    check(shape(transposed, 2, 16, 130, 2, {8, 16}, 1, 1, 1, 0));
    check(shape(transposed, 0, 2, 2, 1, {5}, 1, 1, 1, 0));
  }
}

TEST_F(ConvNdTest, KnownValues) {
  // Two pixels of 1 and 2, a kernel of (1, 10, 100), stride 2: 1 10 100 + 2 20 200 two pixels on; then one that only
  // has the bias, as output_padding gives.
  ConvNdShape s;
  s.transposed = true;
  s.pixels[0] = 6, s.positions[0] = 2, s.kernel[0] = 3, s.stride[0] = 2, s.dilation[0] = 1;
  const Input x(std::vector<float>{1, 2}), weights(std::vector<float>{1, 10, 100}), bias(std::vector<float>{-50});
  const Output y(6 * sizeof(float));
  launch([&](cudaStream_t stream) {
    return conv_nd(ElementType::kF32, ConvNdAlgorithm::kDirect, s, x.data(), weights.data(), bias.data(), nullptr,
                   Epilogue::relu(), y.data(), stream);
  });
  EXPECT_EQ(y.get(), (std::vector<float>{0, 0, 52, 0, 150, 0}));
}

TEST_F(ConvNdTest, Refusals) {
  ConvNdShape s = shape(false, 1, 1, 1, 1, {5}, 1, 1, 1, 0);
  s.axes = 4;
  EXPECT_FALSE(conv_nd_supports(s));
  s.axes = 1;
  s.pad[0] = int64_t{1} << 30;
  EXPECT_FALSE(conv_nd_supports(s));
  EXPECT_EQ(
      conv_nd(ElementType::kF32, ConvNdAlgorithm::kDirect, s, nullptr, nullptr, nullptr, nullptr, {}, nullptr, stream_),
      cudaErrorInvalidValue);
}

}  // namespace
}  // namespace tenon::cuda
