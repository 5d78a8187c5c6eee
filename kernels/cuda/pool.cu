#include "kernels/cuda/pool.h"

#include "kernels/cuda/common.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

// One axis of the windows.
struct Axis {
  int size, kernel, stride, pad_before, pad_after, dilation;

  // Taps of the window from `start` on that lie in [low, high): [begin, end).
  __device__ __forceinline__ void taps(int start, int low, int high, int* begin, int* end) const {
    *begin = 0;
    *end = kernel;
    if (start >= low && start + (kernel - 1) * dilation < high) return;  // the usual case, without divisions
    if (start < low) *begin = min((low - start + dilation - 1) / dilation, kernel);
    *end = start >= high ? *begin : min((high - start + dilation - 1) / dilation, kernel);
    *end = max(*begin, *end);
  }
  __device__ __forceinline__ int padded_taps(int start) const {
    int begin;
    int end;
    taps(start, -pad_before, size + pad_after, &begin, &end);
    return end - begin;
  }
};

// Threads stride over the outputs. Windows overlap in the caches. Bound: memory.
template <class T, bool kMax, bool kNhwc, class Index>
__global__ void __launch_bounds__(kThreads)
    pool_kernel(Axis down, Axis across, bool include_pad, int64_t count, Divider<Index> channels, Divider<Index> oh,
                Divider<Index> ow, int64_t channel_count, const T* input, T* output) {
  const int64_t column_stride = kNhwc ? channel_count : 1;
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    Index x = static_cast<Index>(i);
    Index channel = 0;
    if (kNhwc) {
      channel = x;
      x = channels.split(&channel);
    }
    Index y = ow.split(&x);
    const Index image = oh.split(&y);  // in NCHW: the plane
    const int top = static_cast<int>(y) * down.stride - down.pad_before;
    const int left = static_cast<int>(x) * across.stride - across.pad_before;
    int row, row_end, first, column_end;
    down.taps(top, 0, down.size, &row, &row_end);
    across.taps(left, 0, across.size, &first, &column_end);
    int cells = (row_end - row) * (column_end - first);
    if (include_pad) cells = down.padded_taps(top) * across.padded_taps(left);
    const T* from = input + image * (static_cast<int64_t>(down.size) * across.size * column_stride) + channel;
    float result = kMax ? -INFINITY : 0.0f;
    for (; row < row_end; ++row) {
      const int64_t line = static_cast<int64_t>(top + row * down.dilation) * across.size;
      for (int column = first; column < column_end; ++column) {
        const float v = to_float(from[(line + left + column * across.dilation) * column_stride]);
        if (kMax) {
          result = v > result || isnan(v) ? v : result;
        } else {
          result += v;
        }
      }
    }
    if (!kMax) result = cells > 0 ? result / static_cast<float>(cells) : 0.0f;
    output[i] = from_float<T>(result);
  }
}

// NCHW: a warp for each plane. Bound: memory.
template <class T>
__global__ void __launch_bounds__(kThreads) mean_planes(int64_t planes, int64_t cells, const T* input, T* output) {
  const int lane = threadIdx.x % 32;
  for (int64_t plane = global_thread() / 32; plane < planes; plane += global_threads() / 32) {
    const T* x = input + plane * cells;
    float sum = 0.0f;
    for (int64_t i = lane; i < cells; i += 32) sum += to_float(x[i]);
    sum = warp_sum(sum);
    if (lane == 0) output[plane] = from_float<T>(sum / static_cast<float>(cells));
  }
}

// NHWC: 32 channels a block, the cells dealt to 8 slices. Bound: memory.
template <class T>
__global__ void __launch_bounds__(kThreads)
    mean_channels(int64_t blocks, int64_t channel_blocks, int64_t channels, int64_t cells, const T* input, T* output) {
  constexpr int kSlices = kThreads / 32;
  __shared__ float shared[kSlices][32];
  const int lane = threadIdx.x % 32;
  const int slice = threadIdx.x / 32;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t image = block / channel_blocks;
    const int64_t channel = (block - image * channel_blocks) * 32 + lane;
    const T* x = input + image * cells * channels + channel;
    float sum = 0.0f;
    if (channel < channels) {
      for (int64_t i = slice; i < cells; i += kSlices) sum += to_float(x[i * channels]);
    }
    shared[slice][lane] = sum;
    __syncthreads();
    if (slice == 0 && channel < channels) {
      for (int i = 1; i < kSlices; ++i) sum += shared[i][lane];
      output[image * channels + channel] = from_float<T>(sum / static_cast<float>(cells));
    }
    __syncthreads();
  }
}

bool fits(int64_t size, int64_t kernel, int64_t stride, int64_t dilation, int64_t before, int64_t after, int64_t out) {
  constexpr int64_t kLimit = int64_t{1} << 30;
  if (size > kLimit || kernel > kLimit || stride > kLimit || dilation > kLimit || out > kLimit) return false;
  return before < kLimit && size + after < kLimit && out * stride + kernel * dilation < kLimit;
}

}  // namespace

bool pool_supports(const PoolGeometry& g, Layout layout) noexcept {
  return layout_block(layout) == 1 && g.kernel_h * g.kernel_w <= kInt32Max &&
         fits(g.h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top, g.pad_bottom, g.oh) &&
         fits(g.w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left, g.pad_right, g.ow);
}

cudaError_t pool(ElementType type, PoolKind kind, const PoolGeometry& g, Layout layout, const void* input, void* output,
                 cudaStream_t stream) noexcept {
  if (!pool_supports(g, layout)) return cudaErrorInvalidValue;
  const int64_t count = g.n * g.c * g.oh * g.ow;
  if (g.n <= 0 || g.c <= 0 || g.oh <= 0 || g.ow <= 0) return cudaSuccess;
  const auto axis = [](int64_t size, int64_t kernel, int64_t stride, int64_t before, int64_t after, int64_t dilation) {
    return Axis{static_cast<int>(size),   static_cast<int>(kernel), static_cast<int>(stride),
                static_cast<int>(before), static_cast<int>(after),  static_cast<int>(dilation)};
  };
  const Axis down = axis(g.h, g.kernel_h, g.stride_h, g.pad_top, g.pad_bottom, g.dilation_h);
  const Axis across = axis(g.w, g.kernel_w, g.stride_w, g.pad_left, g.pad_right, g.dilation_w);
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    with_index(count, [&](auto index) {
      using Index = decltype(index);
      const bool nhwc = layout == Layout::kNhwc;
      const auto kernel = kind == PoolKind::kMax
                              ? (nhwc ? pool_kernel<T, true, true, Index> : pool_kernel<T, true, false, Index>)
                              : (nhwc ? pool_kernel<T, false, true, Index> : pool_kernel<T, false, false, Index>);
      kernel<<<grid_for(count, kThreads), kThreads, 0, stream>>>(
          down, across, kind == PoolKind::kAverageIncludePad, count, Divider<Index>(g.c), Divider<Index>(g.oh),
          Divider<Index>(g.ow), g.c, static_cast<const T*>(input), static_cast<T*>(output));
    });
    error = cudaGetLastError();
  });
  return error;
}

cudaError_t pool_global_average(ElementType type, Layout layout, int64_t n, int64_t c, int64_t h, int64_t w,
                                const void* input, void* output, cudaStream_t stream) noexcept {
  if (layout_block(layout) != 1) return cudaErrorInvalidValue;
  const int64_t cells = h * w;
  if (n <= 0 || c <= 0 || cells <= 0) return cudaSuccess;
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    const T* x = static_cast<const T*>(input);
    T* y = static_cast<T*>(output);
    if (layout == Layout::kNchw) {
      mean_planes<T><<<grid_for(n * c, kThreads / 32), kThreads, 0, stream>>>(n * c, cells, x, y);
    } else {
      const int64_t channel_blocks = ceil_div(c, 32);
      mean_channels<T><<<grid_for(n * channel_blocks, 1), kThreads, 0, stream>>>(n * channel_blocks, channel_blocks, c,
                                                                                 cells, x, y);
    }
    error = cudaGetLastError();
  });
  return error;
}

}  // namespace tenon::cuda
