#include "kernels/cuda/conv_nd.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/epilogue.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kAxes = kConvNdMaxAxes;

struct Axis {
  int x_size, y_size, kernel, stride, dilation, pad;

  // Where tap t of output `at` lies in x; -1 if nowhere.
  template <bool kTransposed>
  __device__ __forceinline__ int place(int at, int tap) const {
    int x;
    if (kTransposed) {
      x = at + pad - tap * dilation;
      if (x < 0 || x % stride != 0) return -1;
      x /= stride;
    } else {
      x = at * stride - pad + tap * dilation;
    }
    return x >= 0 && x < x_size ? x : -1;
  }
};

struct Conv {
  Axis axes[kAxes];  // missing ones, of size 1, come first
  int64_t items;
  int64_t inputs, outputs, groups;
  int64_t in, out, chunks;  // of a group; chunks of kOutputs channels
  int64_t x_plane, y_plane;
  int64_t w_input, w_output;  // distances between weights of neighbouring channels
};

// A thread computes kOutputs channels of a pixel of y, so that each value of x is used as often; the threads of a warp
// are neighbours along the pixels and share their weights. Bound: loads from the first-level cache.
template <class T, bool kTransposed, int kOutputs>
__global__ void __launch_bounds__(kThreads)
    conv_kernel(Conv c, const T* x, const T* weights, const T* bias, const T* residual, DeviceEpilogue epilogue, T* y) {
  for (int64_t item = global_thread(); item < c.items; item += global_threads()) {
    const int64_t list = item / c.y_plane, pixel = item - list * c.y_plane;
    const int64_t chunk = list % c.chunks, image_group = list / c.chunks;
    const int64_t image = image_group / c.groups, group = image_group - image * c.groups;
    const int64_t first = group * c.out + chunk * kOutputs;  // channel of y
    const int count = static_cast<int>(min(static_cast<int64_t>(kOutputs), c.out - chunk * kOutputs));
    // Weights of the first channel; channels beyond `count` read those of the last one.
    const T* w =
        weights + (kTransposed ? group * c.in * c.w_input + chunk * kOutputs * c.w_output : first * c.w_output);
    int64_t w_offset[kOutputs];
    float sums[kOutputs];
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      w_offset[o] = min(o, count - 1) * c.w_output;
      sums[o] = 0.0f;
    }
    const int row = static_cast<int>(pixel / c.axes[2].y_size), at2 = static_cast<int>(pixel % c.axes[2].y_size);
    const int at0 = row / c.axes[1].y_size, at1 = row - at0 * c.axes[1].y_size;
    const T* planes = x + (image * c.inputs + group * c.in) * c.x_plane;
    for (int t0 = 0; t0 < c.axes[0].kernel; ++t0) {
      const int p0 = c.axes[0].place<kTransposed>(at0, t0);
      if (p0 < 0) continue;
      for (int t1 = 0; t1 < c.axes[1].kernel; ++t1) {
        const int p1 = c.axes[1].place<kTransposed>(at1, t1);
        if (p1 < 0) continue;
        for (int t2 = 0; t2 < c.axes[2].kernel; ++t2) {
          const int p2 = c.axes[2].place<kTransposed>(at2, t2);
          if (p2 < 0) continue;
          const T* from = planes + (static_cast<int64_t>(p0) * c.axes[1].x_size + p1) * c.axes[2].x_size + p2;
          const T* tap = w + (t0 * c.axes[1].kernel + t1) * c.axes[2].kernel + t2;
#pragma unroll 2
          for (int64_t channel = 0; channel < c.in; ++channel) {
            const float v = to_float(from[channel * c.x_plane]);
#pragma unroll
            for (int o = 0; o < kOutputs; ++o) {
              sums[o] = fmaf(v, to_float(tap[channel * c.w_input + w_offset[o]]), sums[o]);
            }
          }
        }
      }
    }
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      if (o >= count) continue;
      const int64_t at = (image * c.outputs + first + o) * c.y_plane + pixel;
      float v = sums[o];
      if (bias != nullptr) v += to_float(bias[first + o]);
      if (residual != nullptr) v += to_float(residual[at]);
      y[at] = from_float<T>(apply(epilogue, v));
    }
  }
}

}  // namespace

bool conv_nd_supports(const ConvNdShape& s) noexcept {
  constexpr int64_t kLimit = int64_t{1} << 30;
  if (s.axes < 1 || s.axes > kAxes) return false;
  int64_t taps = 1, plane = 1;
  for (int n = 0; n < s.axes; ++n) {
    if (s.pixels[n] >= kLimit || s.positions[n] >= kLimit || s.kernel[n] >= kLimit || s.stride[n] >= kLimit ||
        s.dilation[n] >= kLimit || s.pad[n] >= kLimit) {
      return false;
    }
    if (s.positions[n] * s.stride[n] >= kLimit || s.kernel[n] * s.dilation[n] >= kLimit ||
        s.pixels[n] + s.pad[n] >= kLimit) {
      return false;
    }
    taps *= s.kernel[n];
    plane *= s.transposed ? s.pixels[n] : s.positions[n];
    if (taps >= kLimit || plane >= kLimit) return false;
  }
  return true;
}

cudaError_t conv_nd(ElementType type, const ConvNdShape& s, const void* x, const void* weights, const void* bias,
                    const void* residual, const Epilogue& epilogue, void* y, cudaStream_t stream) noexcept {
  if (!conv_nd_supports(s)) return cudaErrorInvalidValue;
  Conv c = {};
  int64_t taps = 1;
  c.x_plane = c.y_plane = 1;
  for (int n = 0; n < kAxes; ++n) {
    const int from = n - (kAxes - s.axes);
    Axis& axis = c.axes[n];
    axis = {1, 1, 1, 1, 1, 0};
    if (from < 0) continue;
    const int pixels = static_cast<int>(s.pixels[from]), positions = static_cast<int>(s.positions[from]);
    axis = {s.transposed ? positions : pixels, s.transposed ? pixels : positions,  static_cast<int>(s.kernel[from]),
            static_cast<int>(s.stride[from]),  static_cast<int>(s.dilation[from]), static_cast<int>(s.pad[from])};
    taps *= axis.kernel;
    c.x_plane *= axis.x_size;
    c.y_plane *= axis.y_size;
  }
  if (s.n <= 0 || s.outputs <= 0 || c.y_plane <= 0) return cudaSuccess;
  c.inputs = s.inputs, c.outputs = s.outputs, c.groups = s.groups;
  c.in = s.inputs / s.groups, c.out = s.outputs / s.groups;
  c.w_input = s.transposed ? c.out * taps : taps;
  c.w_output = s.transposed ? taps : c.in * taps;
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    const auto launch = [&](auto kernel, int64_t outputs) {
      c.chunks = ceil_div(c.out, outputs);
      c.items = s.n * s.groups * c.chunks * c.y_plane;
      kernel<<<grid_for(c.items, kThreads), kThreads, 0, stream>>>(
          c, static_cast<const T*>(x), static_cast<const T*>(weights), static_cast<const T*>(bias),
          static_cast<const T*>(residual), epilogue, static_cast<T*>(y));
      error = cudaGetLastError();
    };
    if (c.out < 4) {
      launch(s.transposed ? conv_kernel<T, true, 1> : conv_kernel<T, false, 1>, 1);
    } else {
      launch(s.transposed ? conv_kernel<T, true, 8> : conv_kernel<T, false, 8>, 8);
    }
  });
  return error;
}

}  // namespace tenon::cuda
