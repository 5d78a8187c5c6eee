#include "kernels/cuda/conv_nd.h"

#include "kernels/cuda/conv_nd_internal.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

// A thread computes kOutputs channels of a pixel of y, so that each value of x is used as often; the threads of a warp
// are neighbours along the pixels and share their weights. Bound: loads from the first-level cache.
template <class T, bool kTransposed, int kOutputs>
__global__ void __launch_bounds__(kThreads)
    direct_kernel(ConvNd c, int64_t chunks, ConvNdBuffers<T> b, DeviceEpilogue epilogue) {
  const int64_t items = c.n * c.groups * chunks * c.y_plane;
  for (int64_t item = global_thread(); item < items; item += global_threads()) {
    const int64_t list = item / c.y_plane, pixel = item - list * c.y_plane;
    const int64_t chunk = list % chunks, image_group = list / chunks;
    const int64_t image = image_group / c.groups, group = image_group - image * c.groups;
    const int64_t first = group * c.out + chunk * kOutputs;  // channel of y
    const int count = static_cast<int>(min(static_cast<int64_t>(kOutputs), c.out - chunk * kOutputs));
    // Weights of the first channel; channels beyond `count` read those of the last one.
    const T* w =
        b.weights + (kTransposed ? group * c.in * c.w_input + chunk * kOutputs * c.w_output : first * c.w_output);
    int64_t w_offset[kOutputs];
    float sums[kOutputs];
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      w_offset[o] = min(o, count - 1) * c.w_output;
      sums[o] = 0.0f;
    }
    const int row = static_cast<int>(pixel / c.axes[2].y_size), at2 = static_cast<int>(pixel % c.axes[2].y_size);
    const int at0 = row / c.axes[1].y_size, at1 = row - at0 * c.axes[1].y_size;
    const T* planes = b.x + (image * c.inputs + group * c.in) * c.x_plane;
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
      if (b.bias != nullptr) v += to_float(b.bias[first + o]);
      if (b.residual != nullptr) v += to_float(b.residual[at]);
      b.y[at] = from_float<T>(apply(epilogue, v));
    }
  }
}

template <class T>
cudaError_t direct(bool transposed, const ConvNd& c, const ConvNdBuffers<T>& buffers, const Epilogue& epilogue,
                   cudaStream_t stream) {
  const int64_t outputs = c.out < 4 ? 1 : 8, chunks = ceil_div(c.out, outputs);
  const auto kernel = c.out < 4 ? (transposed ? direct_kernel<T, true, 1> : direct_kernel<T, false, 1>)
                                : (transposed ? direct_kernel<T, true, 8> : direct_kernel<T, false, 8>);
  kernel<<<grid_for(c.n * c.groups * chunks * c.y_plane, kThreads), kThreads, 0, stream>>>(c, chunks, buffers,
                                                                                           epilogue);
  return cudaGetLastError();
}

}  // namespace

bool conv_nd_supports(const ConvNdShape& s) noexcept {
  constexpr int64_t kLimit = int64_t{1} << 30;
  if (s.axes < 1 || s.axes > kConvNdMaxAxes) return false;
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
  return s.inputs / s.groups < kLimit / taps && s.outputs < kLimit;
}

ConvNd conv_nd_of(const ConvNdShape& s) noexcept {
  ConvNd c = {};
  c.taps = c.x_plane = c.y_plane = 1;
  for (int n = 0; n < kConvNdMaxAxes; ++n) {
    const int from = n - (kConvNdMaxAxes - s.axes);
    ConvAxis& axis = c.axes[n];
    axis = {1, 1, 1, 1, 1, 0};
    if (from < 0) continue;
    const int pixels = static_cast<int>(s.pixels[from]), positions = static_cast<int>(s.positions[from]);
    axis = {s.transposed ? positions : pixels, s.transposed ? pixels : positions,  static_cast<int>(s.kernel[from]),
            static_cast<int>(s.stride[from]),  static_cast<int>(s.dilation[from]), static_cast<int>(s.pad[from])};
    c.taps *= axis.kernel;
    c.x_plane *= axis.x_size;
    c.y_plane *= axis.y_size;
  }
  c.n = s.n, c.inputs = s.inputs, c.outputs = s.outputs, c.groups = s.groups;
  c.in = s.inputs / s.groups, c.out = s.outputs / s.groups;
  c.w_input = s.transposed ? c.out * c.taps : c.taps;
  c.w_output = s.transposed ? c.taps : c.in * c.taps;
  return c;
}

cudaError_t conv_nd(ElementType type, ConvNdAlgorithm algorithm, const ConvNdShape& s, const void* x,
                    const void* weights, const void* bias, const void* residual, const Epilogue& epilogue, void* y,
                    cudaStream_t stream) noexcept {
  if (!conv_nd_supports(s)) return cudaErrorInvalidValue;
  const ConvNd c = conv_nd_of(s);
  if (s.n <= 0 || s.outputs <= 0 || c.y_plane <= 0) return cudaSuccess;
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    const ConvNdBuffers<T> buffers = {static_cast<const T*>(x), static_cast<const T*>(weights),
                                      static_cast<const T*>(bias), static_cast<const T*>(residual), static_cast<T*>(y)};
    error = algorithm == ConvNdAlgorithm::kDirect ? direct<T>(s.transposed, c, buffers, epilogue, stream)
                                                  : conv_nd_implicit<T>(s.transposed, c, buffers, epilogue, stream);
  });
  return error;
}

}  // namespace tenon::cuda
