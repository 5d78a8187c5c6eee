#include "kernels/cuda/common.cuh"
#include "kernels/cuda/conv2d_internal.h"
#include "kernels/cuda/epilogue.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 128;

template <class Index>
struct Params {
  const float* x;
  const float* weights;
  const float* bias;
  const float* residual;
  float* y;
  int64_t count;  // threads' worth of work
  int h, w, oh, ow, r, s;
  int stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
  int64_t channels;
  Divider<Index> channel_count, row_groups, columns;
};

// A thread computes kRows outputs below each other, so that a loaded cell serves several windows; neighbouring threads
// take neighbouring columns (NCHW) or channels (NHWC). kR, kS and kStride fix the kernel's size and the stride (with
// dilation 1), or are 0: any. Bound: memory.
template <bool kNhwc, int kR, int kS, int kStride, class Index>
__global__ void __launch_bounds__(kThreads) depthwise_kernel(Params<Index> p, DeviceEpilogue epilogue) {
  constexpr bool kFixed = kR > 0;
  constexpr int kRows = kFixed ? 4 : 1;
  for (int64_t i = global_thread(); i < p.count; i += global_threads()) {
    Index column = static_cast<Index>(i);
    Index channel = 0;
    if (kNhwc) {
      channel = column;
      column = p.channel_count.split(&channel);
    }
    Index group = p.columns.split(&column);
    Index image = p.row_groups.split(&group);
    const int64_t plane = image;  // NCHW: of all images
    if (!kNhwc) {
      channel = image;
      image = p.channel_count.split(&channel);
    }
    const int64_t pitch = kNhwc ? p.channels : 1;
    const int64_t size = static_cast<int64_t>(p.h) * p.w * pitch;
    const float* x = p.x + plane * size + (kNhwc ? channel : 0);
    const int taps = kFixed ? kR * kS : p.r * p.s;
    const float* weights = p.weights + (kNhwc ? channel : static_cast<int64_t>(channel) * taps);
    const int64_t tap_stride = kNhwc ? p.channels : 1;
    const int first_row = static_cast<int>(group) * kRows;
    const int top = first_row * (kFixed ? kStride : p.stride_h) - p.pad_top;
    const int left = static_cast<int>(column) * (kFixed ? kStride : p.stride_w) - p.pad_left;
    float sums[kRows] = {};
    if constexpr (kFixed) {
      float w[kR * kS];
#pragma unroll
      for (int t = 0; t < kR * kS; ++t) w[t] = weights[t * tap_stride];
#pragma unroll
      for (int j = 0; j < (kRows - 1) * kStride + kR; ++j) {
        const int row = top + j;
        const bool row_inside = row >= 0 && row < p.h;
        const int64_t line = static_cast<int64_t>(row) * p.w;
#pragma unroll
        for (int s = 0; s < kS; ++s) {
          const int at = left + s;
          const float v = row_inside && at >= 0 && at < p.w ? x[(line + at) * pitch] : 0.0f;
#pragma unroll
          for (int o = 0; o < kRows; ++o) {
            const int r = j - o * kStride;
            if (r >= 0 && r < kR) sums[o] = fmaf(v, w[r * kS + s], sums[o]);
          }
        }
      }
    } else {
      for (int r = 0; r < p.r; ++r) {
        const int row = top + r * p.dilation_h;
        if (row < 0 || row >= p.h) continue;
        for (int s = 0; s < p.s; ++s) {
          const int at = left + s * p.dilation_w;
          if (at < 0 || at >= p.w) continue;
          const float v = x[(static_cast<int64_t>(row) * p.w + at) * pitch];
          sums[0] = fmaf(v, weights[(r * p.s + s) * tap_stride], sums[0]);
        }
      }
    }
    const float bias = p.bias != nullptr ? p.bias[channel] : 0.0f;
#pragma unroll
    for (int o = 0; o < kRows; ++o) {
      if (first_row + o >= p.oh) break;
      const int64_t at =
          ((plane * p.oh + first_row + o) * static_cast<int64_t>(p.ow) + column) * pitch + (kNhwc ? channel : 0);
      const float add = p.residual != nullptr ? p.residual[at] : 0.0f;
      p.y[at] = apply(epilogue, sums[o] + bias + add);
    }
  }
}

template <bool kNhwc, int kR, int kS, int kStride>
cudaError_t launch(const Conv2dGeometry& g, const Conv2dBuffers& buffers, const Epilogue& epilogue,
                   cudaStream_t stream) {
  const int64_t row_groups = ceil_div(g.oh, kR > 0 ? 4 : 1);
  const int64_t count = g.n * g.c * row_groups * g.ow;
  with_index(count, [&](auto index) {
    using Index = decltype(index);
    Params<Index> p = {};
    p.x = static_cast<const float*>(buffers.input);
    p.weights = static_cast<const float*>(buffers.packed_weights);
    p.bias = static_cast<const float*>(buffers.bias);
    p.residual = static_cast<const float*>(buffers.residual);
    p.y = static_cast<float*>(buffers.output);
    p.count = count;
    p.h = static_cast<int>(g.h);
    p.w = static_cast<int>(g.w);
    p.oh = static_cast<int>(g.oh);
    p.ow = static_cast<int>(g.ow);
    p.r = static_cast<int>(g.r);
    p.s = static_cast<int>(g.s);
    p.stride_h = static_cast<int>(g.stride_h);
    p.stride_w = static_cast<int>(g.stride_w);
    p.pad_top = static_cast<int>(g.pad_top);
    p.pad_left = static_cast<int>(g.pad_left);
    p.dilation_h = static_cast<int>(g.dilation_h);
    p.dilation_w = static_cast<int>(g.dilation_w);
    p.channels = g.c;
    p.channel_count = Divider<Index>(g.c);
    p.row_groups = Divider<Index>(row_groups);
    p.columns = Divider<Index>(g.ow);
    depthwise_kernel<kNhwc, kR, kS, kStride, Index><<<grid_for(count, kThreads), kThreads, 0, stream>>>(p, epilogue);
  });
  return cudaGetLastError();
}

template <bool kNhwc>
cudaError_t dispatch(const Conv2dGeometry& g, const Conv2dBuffers& buffers, const Epilogue& epilogue,
                     cudaStream_t stream) {
  if (g.dilation_h == 1 && g.dilation_w == 1 && g.stride_h == g.stride_w && g.r == g.s && g.stride_h <= 2) {
    if (g.r == 3 && g.stride_h == 1) return launch<kNhwc, 3, 3, 1>(g, buffers, epilogue, stream);
    if (g.r == 3 && g.stride_h == 2) return launch<kNhwc, 3, 3, 2>(g, buffers, epilogue, stream);
    if (g.r == 5 && g.stride_h == 1) return launch<kNhwc, 5, 5, 1>(g, buffers, epilogue, stream);
    if (g.r == 5 && g.stride_h == 2) return launch<kNhwc, 5, 5, 2>(g, buffers, epilogue, stream);
  }
  return launch<kNhwc, 0, 0, 0>(g, buffers, epilogue, stream);
}

}  // namespace

cudaError_t conv2d_depthwise(const Conv2dGeometry& g, Layout layout, const Conv2dBuffers& buffers,
                             const Epilogue& epilogue, cudaStream_t stream) noexcept {
  const auto function = layout == Layout::kNhwc ? dispatch<true> : dispatch<false>;
  return function(g, buffers, epilogue, stream);
}

}  // namespace tenon::cuda
