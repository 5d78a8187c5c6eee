#include "kernels/cuda/grid_sample.h"

#include "kernels/cuda/common.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kChannels = 8;  // of a thread, which share the taps of a point

// Mirrors a coordinate at low and high until it lies between them.
__device__ __forceinline__ double reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double there = fmod(fabs(x - low), 2 * range);
  return low + (there <= range ? there : 2 * range - there);
}

__device__ __forceinline__ int64_t clamp(int64_t at, int64_t size) { return at < 0 ? 0 : at >= size ? size - 1 : at; }

// One axis of a point: pixels and weights; a pixel of weight 0 is not read. In double, as a coordinate of a large image
// leaves few bits of a float for the weights.
template <int kTaps>
struct Taps {
  int64_t index[kTaps];
  float weight[kTaps];

  __device__ __forceinline__ Taps(const GridSampleShape& shape, int64_t pixels, double normalized) {
    const double size = static_cast<double>(pixels);
    const double low = shape.align_corners ? 0 : -0.5;
    const double high = shape.align_corners ? size - 1 : size - 0.5;
    double x = shape.align_corners ? (normalized + 1) / 2 * (size - 1) : ((normalized + 1) * size - 1) / 2;
    // Infinite and NaN coordinates lie somewhere far outside.
    if (!(fabs(x) < 1e9)) x = x > 0 ? 1e9 : -1e9;
    if (kTaps == 1) x = rint(x);
    if (x < low || x > high) {
      // Cubic filters see the border's pixels repeated and not the point moved to the border.
      if (shape.padding == SamplePadding::kBorder && kTaps != 4) x = fmin(fmax(x, 0.0), size - 1);
      if (shape.padding == SamplePadding::kReflection) x = reflect(x, low, high);
    }
    const double whole = floor(x);
    const float part = static_cast<float>(x - whole);
    if (kTaps == 1) {
      weight[0] = 1.0f;
    } else if (kTaps == 2) {
      weight[0] = 1.0f - part;
      weight[kTaps - 1] = part;
    } else {
      // Keys 1981, equation 4, with a = -0.75.
      constexpr float a = -0.75f;
#pragma unroll
      for (int t = 0; t < kTaps; ++t) {
        const float d = fabsf(static_cast<float>(t - 1) - part);
        weight[t] = d <= 1.0f ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
      }
    }
    const int64_t first = static_cast<int64_t>(whole) - (kTaps == 4 ? 1 : 0);
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
      const int64_t at = first + t;
      index[t] = clamp(at, pixels);
      if (at == index[t] || shape.padding == SamplePadding::kBorder) continue;
      if (shape.padding == SamplePadding::kZeros) {
        weight[t] = 0.0f;
      } else {
        index[t] = clamp(static_cast<int64_t>(reflect(static_cast<double>(at), low, high)), pixels);
      }
    }
  }
};

// Threads stride over points and groups of channels, the points of an image first. Bound: memory.
template <class T, int kDepthTaps, int kTaps, class Index>
__global__ void __launch_bounds__(kThreads)
    grid_sample_kernel(GridSampleShape shape, Divider<Index> points, Divider<Index> groups, int64_t count, const T* x,
                       const T* grid, T* y) {
  const int64_t height = shape.size[1];
  const int64_t width = shape.size[2];
  const int64_t pixels = shape.size[0] * height * width;
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    Index p = static_cast<Index>(i);
    Index group = points.split(&p);
    const int64_t n = static_cast<int64_t>(groups.split(&group));
    const int64_t point = static_cast<int64_t>(p);
    const T* at = grid + (n * shape.points + point) * shape.axes;
    const Taps<kTaps> columns(shape, width, to_float(at[0]));
    const Taps<kTaps> rows(shape, height, to_float(at[1]));
    const Taps<kDepthTaps> planes(shape, shape.size[0], shape.axes == 3 ? to_float(at[2]) : 0.0f);
    const int64_t begin = static_cast<int64_t>(group) * kChannels;
    const int64_t end = begin + kChannels < shape.c ? begin + kChannels : shape.c;
    for (int64_t c = begin; c < end; ++c) {
      const T* image = x + (n * shape.c + c) * pixels;
      float sum = 0.0f;
#pragma unroll
      for (int d = 0; d < kDepthTaps; ++d) {
#pragma unroll
        for (int r = 0; r < kTaps; ++r) {
          const T* line = image + (planes.index[d] * height + rows.index[r]) * width;
          const float weight = planes.weight[d] * rows.weight[r];
#pragma unroll
          for (int k = 0; k < kTaps; ++k) {
            const float w = weight * columns.weight[k];
            if (w != 0.0f) sum += w * to_float(line[columns.index[k]]);
          }
        }
      }
      y[(n * shape.c + c) * shape.points + point] = from_float<T>(sum);
    }
  }
}

template <class T, int kDepthTaps, int kTaps>
void launch(const GridSampleShape& shape, const void* x, const void* grid, void* y, cudaStream_t stream) {
  const int64_t groups = ceil_div(shape.c, kChannels);
  const int64_t count = shape.n * groups * shape.points;
  with_index(count, [&](auto index) {
    using Index = decltype(index);
    grid_sample_kernel<T, kDepthTaps, kTaps, Index><<<grid_for(count, kThreads), kThreads, 0, stream>>>(
        shape, Divider<Index>(shape.points), Divider<Index>(groups), count, static_cast<const T*>(x),
        static_cast<const T*>(grid), static_cast<T*>(y));
  });
}

}  // namespace

cudaError_t grid_sample(ElementType type, const GridSampleShape& shape, const void* x, const void* grid, void* y,
                        cudaStream_t stream) noexcept {
  const bool cubic = shape.mode == SampleMode::kCubic;
  if (shape.axes != 2 && (shape.axes != 3 || cubic)) return cudaErrorInvalidValue;
  if (shape.n * shape.c * shape.points <= 0) return cudaSuccess;
  const bool known = with_float(type, [&](auto element) {
    using T = decltype(element);
    if (cubic) return launch<T, 1, 4>(shape, x, grid, y, stream);
    if (shape.mode == SampleMode::kNearest) return launch<T, 1, 1>(shape, x, grid, y, stream);
    if (shape.axes == 3) return launch<T, 2, 2>(shape, x, grid, y, stream);
    return launch<T, 1, 2>(shape, x, grid, y, stream);
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

}  // namespace tenon::cuda
