#include "kernels/cuda/quantize.h"

#include "kernels/cuda/common.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

// Which channel an element has.
template <class Index>
struct Channels {
  Divider<Index> inner, channels;
  bool one;

  explicit Channels(const QuantizeShape& s) : inner(s.inner), channels(s.channels), one(s.channels == 1) {}
  __device__ __forceinline__ int64_t of(int64_t i) const {
    if (one) return 0;
    Index channel = inner.quotient(static_cast<Index>(i));
    channels.split(&channel);
    return static_cast<int64_t>(channel);
  }
};

// Threads stride over the elements. Bound: memory.
template <class T, class Index>
__global__ void __launch_bounds__(kThreads)
    quantize_kernel(Channels<Index> channels, int64_t count, float low, float high, const float* x, const float* scales,
                    const T* zero_points, T* y) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    const int64_t channel = channels.of(i);
    const float zero = zero_points == nullptr ? 0.0f : static_cast<float>(zero_points[channel]);
    const float value = rintf(x[i] / scales[channel]) + zero;
    y[i] = static_cast<T>(static_cast<int>(value > low ? fminf(value, high) : low));  // NaN: low
  }
}

template <class T, class Index>
__global__ void __launch_bounds__(kThreads) dequantize_kernel(Channels<Index> channels, int64_t count, const T* x,
                                                              const float* scales, const T* zero_points, float* y) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    const int64_t channel = channels.of(i);
    const int64_t zero = zero_points == nullptr ? 0 : zero_points[channel];
    y[i] = static_cast<float>(x[i] - zero) * scales[channel];
  }
}

// Calls function(count, Channels) unless there is nothing to do.
template <class Function>
void with_channels(const QuantizeShape& s, const Function& function) {
  if (s.outer <= 0 || s.channels <= 0 || s.inner <= 0) return;
  const int64_t count = s.outer * s.channels * s.inner;
  with_index(count, [&](auto index) { function(count, Channels<decltype(index)>(s)); });
}

template <class T>
void dequantize_as(const QuantizeShape& shape, const void* x, const float* scales, const void* zero_points, float* y,
                   cudaStream_t stream) {
  with_channels(shape, [&](int64_t count, auto channels) {
    dequantize_kernel<<<grid_for(count, kThreads), kThreads, 0, stream>>>(
        channels, count, static_cast<const T*>(x), scales, static_cast<const T*>(zero_points), y);
  });
}

}  // namespace

cudaError_t quantize(ElementType to, const QuantizeShape& shape, const float* x, const float* scales,
                     const void* zero_points, void* y, cudaStream_t stream) noexcept {
  if (to != ElementType::kU8 && to != ElementType::kI8) return cudaErrorInvalidValue;
  with_channels(shape, [&](int64_t count, auto channels) {
    const unsigned grid = grid_for(count, kThreads);
    if (to == ElementType::kU8) {
      quantize_kernel<<<grid, kThreads, 0, stream>>>(
          channels, count, 0.0f, 255.0f, x, scales, static_cast<const uint8_t*>(zero_points), static_cast<uint8_t*>(y));
    } else {
      quantize_kernel<<<grid, kThreads, 0, stream>>>(channels, count, -128.0f, 127.0f, x, scales,
                                                     static_cast<const int8_t*>(zero_points), static_cast<int8_t*>(y));
    }
  });
  return cudaGetLastError();
}

cudaError_t dequantize(ElementType from, const QuantizeShape& shape, const void* x, const float* scales,
                       const void* zero_points, float* y, cudaStream_t stream) noexcept {
  if (from == ElementType::kU8) {
    dequantize_as<uint8_t>(shape, x, scales, zero_points, y, stream);
  } else if (from == ElementType::kI8) {
    dequantize_as<int8_t>(shape, x, scales, zero_points, y, stream);
  } else if (from == ElementType::kI32) {
    dequantize_as<int32_t>(shape, x, scales, zero_points, y, stream);
  } else {
    return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

}  // namespace tenon::cuda
