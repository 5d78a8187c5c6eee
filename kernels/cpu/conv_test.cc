// Against plain loops over the definition.
#include "kernels/cpu/conv.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/cpu/test_util.h"

namespace tenon::cpu {
namespace {

std::vector<float> random_floats(int64_t count) {
  std::mt19937 generator(static_cast<unsigned>(count));
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

// Calls visit(image pixel, position, tap) for all that lie in the image.
template <class Visit>
void for_each_touch(const Windows& w, const Visit& visit) {
  for (int64_t position = 0; position < w.positions(); ++position) {
    for (int64_t tap = 0; tap < w.taps(); ++tap) {
      int64_t pixel = 0, step = 1, p = position, t = tap;
      bool inside = true;
      for (int axis = w.rank - 1; axis >= 0; --axis) {
        const int64_t at = p % w.count[axis] * w.stride[axis] - w.pad[axis] + t % w.kernel[axis] * w.dilation[axis];
        inside = inside && at >= 0 && at < w.image[axis];
        pixel += at * step;
        step *= w.image[axis];
        p /= w.count[axis];
        t /= w.kernel[axis];
      }
      if (inside) visit(pixel, position, tap);
    }
  }
}

void check(const ConvShape& s) {
  const Windows& w = s.windows;
  const int64_t in = s.inputs / s.groups, out = s.outputs / s.groups, taps = w.taps();
  for (const bool transposed : {false, true}) {
    const int64_t x_size = transposed ? w.positions() : w.pixels(), y_size = transposed ? w.pixels() : w.positions();
    const std::vector<float> x = random_floats(s.n * s.inputs * x_size), bias = random_floats(s.outputs);
    const std::vector<float> weights = random_floats(s.inputs * out * taps);
    std::vector<float> expected(static_cast<size_t>(s.n * s.outputs * y_size)), y(expected.size());
    for (int64_t n = 0; n < s.n; ++n) {
      for (int64_t k = 0; k < s.outputs; ++k) {
        float* plane = expected.data() + (n * s.outputs + k) * y_size;
        for (int64_t p = 0; p < y_size; ++p) plane[p] = bias[static_cast<size_t>(k)];
        for (int64_t c = k / out * in; c < (k / out + 1) * in; ++c) {
          const float* image = x.data() + (n * s.inputs + c) * x_size;
          for_each_touch(w, [&](int64_t pixel, int64_t position, int64_t tap) {
            const int64_t weight = transposed ? (c * out + k % out) * taps + tap : (k * in + c % in) * taps + tap;
            plane[transposed ? pixel : position] +=
                image[transposed ? position : pixel] * weights[static_cast<size_t>(weight)];
          });
        }
      }
    }
    for (const Isa isa : available_isas()) {
      for (const int threads : {1, 3}) {
        Buffer workspace(transposed ? conv_transpose_workspace_bytes(s, 4, isa) : conv_workspace_bytes(s, 4, isa));
        (transposed ? conv_transpose : conv)(s, x.data(), weights.data(), bias.data(), y.data(), workspace.data(),
                                             make_parallel(threads), isa);
        for (size_t n = 0; n < y.size(); ++n) ASSERT_NEAR(y[n], expected[n], 1e-3) << transposed << " at " << n;
      }
    }
  }
}

ConvShape cube(int64_t image, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad, int rank) {
  ConvShape shape;
  shape.windows.rank = rank;
  for (int axis = 0; axis < rank; ++axis) {
    shape.windows.image[axis] = image + axis;
    shape.windows.kernel[axis] = kernel;
    shape.windows.stride[axis] = stride;
    shape.windows.dilation[axis] = dilation;
    shape.windows.pad[axis] = pad;
    shape.windows.count[axis] = (image + axis + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  }
  return shape;
}

TEST(Conv, OneToFourAxes) {
  for (int rank = 1; rank <= 4; ++rank) {
    ConvShape shape = cube(5, 3, 2, 1, 1, rank);
    shape.n = 2, shape.inputs = 4, shape.outputs = 6, shape.groups = 2;
    check(shape);
    shape = cube(6, 2, 1, 3, 2, rank);
    shape.inputs = shape.outputs = shape.groups = 3;
    check(shape);
  }
}

// More than one block of columns.
TEST(Conv, LargeImages) {
  ConvShape shape = cube(150, 3, 1, 1, 1, 2);
  shape.inputs = 8, shape.outputs = 9;
  check(shape);
}

}  // namespace
}  // namespace tenon::cpu
