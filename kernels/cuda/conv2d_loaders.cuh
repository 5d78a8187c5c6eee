// Loaders (see tile.cuh) that gather patches of an image. Steps of k run through the window's taps and, within a tap,
// through the channels of the group; so most steps only move on to the next channels, and an image position is worked
// out once for each tap.
#ifndef TENON_KERNELS_CUDA_CONV2D_LOADERS_CUH_
#define TENON_KERNELS_CUDA_CONV2D_LOADERS_CUH_

#include "kernels/cuda/tile.cuh"

namespace tenon::cuda {

struct ConvInput {
  const void* data;
  int64_t image;     // elements of one image
  int64_t group;     // elements from one group's first channel to the next one's
  int64_t channels;  // of all groups
  int64_t pixels;    // output pixels of all images
  int h, w;
  int group_channels;  // at least 1
  int taps_across;     // s
  int stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
  Divider<uint32_t> oh, ow;
  bool vector;  // four channels from a multiple of four on are one aligned word
};

// Where in the window a step of k is.
struct Tap {
  int channel, r, s;

  __device__ __forceinline__ Tap(const ConvInput& in, int at) {
    const int tap = at / in.group_channels;
    channel = at - tap * in.group_channels;
    r = tap / in.taps_across;
    s = tap - r * in.taps_across;
  }
  // Returns whether the tap changed.
  __device__ __forceinline__ bool advance(const ConvInput& in, int steps) {
    channel += steps;
    if (channel < in.group_channels) return false;
    do {
      channel -= in.group_channels;
      if (++s == in.taps_across) {
        s = 0;
        ++r;
      }
    } while (channel >= in.group_channels);
    return true;
  }
};

// The window's first cell for an output pixel, and its image.
struct Window {
  int y, x;
  int64_t image;

  __device__ __forceinline__ Window(const ConvInput& in, uint32_t pixel) {
    uint32_t column = pixel;
    uint32_t row = in.ow.split(&column);
    image = in.oh.split(&row);
    y = static_cast<int>(row) * in.stride_h - in.pad_top;
    x = static_cast<int>(column) * in.stride_w - in.pad_left;
  }
};

__device__ __forceinline__ bool inside(const ConvInput& in, int y, int x) {
  return static_cast<unsigned>(y) < static_cast<unsigned>(in.h) &&
         static_cast<unsigned>(x) < static_cast<unsigned>(in.w);
}

// NCHW: tile columns are pixels. Threads along the pixels, which are neighbours in memory but for the stride.
template <int kColumns, int kDepth, int kThreads, class T>
class PlanarLoader {
 public:
  static constexpr int kStep = kThreads / kColumns;
  static constexpr int kLoads = kDepth / kStep;
  static constexpr int kPitch = kColumns + 4;
  static_assert(kThreads % kColumns == 0 && kDepth % kStep == 0, "every thread loads");

  __device__ __forceinline__ PlanarLoader(const ConvInput& in, int64_t group, int64_t column, int begin, int end)
      : in_(in), at_(begin + threadIdx.x / kColumns), end_(end), tap_(in, at_), window_(in, 0) {
    const int64_t pixel = column + threadIdx.x % kColumns;
    exists_ = pixel < in.pixels;
    if (exists_) window_ = Window(in, static_cast<uint32_t>(pixel));
    source_ = static_cast<const T*>(in.data) + window_.image * in.image + group * in.group;
    locate();
  }

  __device__ __forceinline__ void fetch() {
    const int64_t plane = static_cast<int64_t>(in_.h) * in_.w;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      values_[i] = inside_ && at_ < end_ ? to_float(source_[offset_]) : 0.0f;
      at_ += kStep;
      if (tap_.advance(in_, kStep)) {
        locate();
      } else {
        offset_ += kStep * plane;
      }
    }
  }

  __device__ __forceinline__ void commit(float* shared) const {
    float* to = shared + threadIdx.x / kColumns * kPitch + threadIdx.x % kColumns;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) to[i * kStep * kPitch] = values_[i];
  }

 private:
  __device__ __forceinline__ void locate() {
    const int y = window_.y + tap_.r * in_.dilation_h;
    const int x = window_.x + tap_.s * in_.dilation_w;
    inside_ = exists_ && inside(in_, y, x);
    offset_ = (static_cast<int64_t>(tap_.channel) * in_.h + y) * in_.w + x;
  }

  const ConvInput& in_;
  int at_;
  int end_;
  Tap tap_;
  Window window_;
  bool exists_;
  bool inside_;
  const T* source_;
  int64_t offset_;
  float values_[kLoads];
};

// NHWC: tile rows are pixels. Threads along the channels, four at a time.
template <int kRows, int kDepth, int kThreads, class T>
class InterleavedLoader {
 public:
  static constexpr int kQuads = kDepth / 4;
  static constexpr int kStep = kThreads / kQuads;
  static constexpr int kLoads = kRows * kDepth / 4 / kThreads;
  static constexpr int kPitch = kRows + 4;
  static_assert(kLoads >= 1 && kThreads % kQuads == 0, "every thread loads");

  __device__ __forceinline__ InterleavedLoader(const ConvInput& in, int64_t group, int64_t row, int begin, int end)
      : in_(in), at_(begin + static_cast<int>(threadIdx.x) % kQuads * 4), end_(end), tap_(in, at_) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int64_t pixel = row + threadIdx.x / kQuads + i * kStep;
      const bool exists = pixel < in.pixels;
      const Window window(in, exists ? static_cast<uint32_t>(pixel) : 0);
      y_[i] = exists ? window.y : -(1 << 30);  // above every image, whatever the tap
      x_[i] = window.x;
      source_[i] = static_cast<const T*>(in.data) + window.image * in.image + group * in.group;
    }
  }

  __device__ __forceinline__ void fetch() {
    if (in_.vector) {
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const int y = y_[i] + tap_.r * in_.dilation_h;
        const int x = x_[i] + tap_.s * in_.dilation_w;
        values_[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (at_ < end_ && inside(in_, y, x)) values_[i] = load_word(address(i, tap_, y, x));
      }
      tap_.advance(in_, kDepth);
    } else {
      Tap tap = tap_;
      float v[kLoads][4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
          const int y = y_[i] + tap.r * in_.dilation_h;
          const int x = x_[i] + tap.s * in_.dilation_w;
          v[i][j] = at_ + j < end_ && inside(in_, y, x) ? to_float(*address(i, tap, y, x)) : 0.0f;
        }
        tap.advance(in_, 1);
      }
#pragma unroll
      for (int i = 0; i < kLoads; ++i) values_[i] = make_float4(v[i][0], v[i][1], v[i][2], v[i][3]);
      tap_.advance(in_, kDepth);
    }
    at_ += kDepth;
  }

  __device__ __forceinline__ void commit(float* shared) const {
    float* to = shared + threadIdx.x % kQuads * 4 * kPitch + threadIdx.x / kQuads;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      to[i * kStep] = values_[i].x;
      to[i * kStep + kPitch] = values_[i].y;
      to[i * kStep + 2 * kPitch] = values_[i].z;
      to[i * kStep + 3 * kPitch] = values_[i].w;
    }
  }

 private:
  __device__ __forceinline__ const T* address(int i, const Tap& tap, int y, int x) const {
    return source_[i] + (static_cast<int64_t>(y) * in_.w + x) * in_.channels + tap.channel;
  }

  const ConvInput& in_;
  int at_;
  int end_;
  Tap tap_;
  int y_[kLoads];
  int x_[kLoads];
  const T* source_[kLoads];
  float4 values_[kLoads];
};

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_CONV2D_LOADERS_CUH_
