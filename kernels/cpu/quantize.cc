#include "kernels/cpu/quantize.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace tenon::cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;  // elements of a task

// Adding and taking off 1.5 * 2^(fraction bits) leaves no room for bits below 1: the addition rounds to the nearest
// integer, ties to even. For numbers below 2^22 and 2^51.
float round_even(float x) { return x + 12582912.0f - 12582912.0f; }
double round_even(double x) { return x + 6755399441055744.0 - 6755399441055744.0; }

// NaN becomes the smallest number. The bounds are integers, so it makes no difference that rounding comes after.
template <class T, class F>
T saturate(F value, int32_t zero_point) {
  const F low = static_cast<F>(std::numeric_limits<T>::min() - zero_point);
  const F high = static_cast<F>(std::numeric_limits<T>::max() - zero_point);
  value = value > low ? value : low;
  value = value < high ? value : high;
  return static_cast<T>(static_cast<int32_t>(round_even(value)) + zero_point);
}

// Calls run(first, count, channel) on runs within one channel, or columns(first, count) on rows of one element for each
// channel.
template <class Run, class Columns>
void for_each_run(const QuantizeShape& shape, const Parallel& parallel, const Run& run, const Columns& columns) {
  if (shape.outer <= 0 || shape.channels <= 0 || shape.inner <= 0) return;
  if (shape.inner == 1 && shape.channels > 1) {
    parallel_ranges(parallel, shape.outer, std::max<int64_t>(1, kGrain / shape.channels),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) columns(row * shape.channels, shape.channels);
                    });
    return;
  }
  const int64_t pieces = (shape.inner + kGrain - 1) / kGrain;
  parallel_ranges(parallel, shape.outer * shape.channels * pieces, std::max<int64_t>(1, kGrain / shape.inner),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t task = begin; task < end; ++task) {
                      const int64_t block = task / pieces;
                      const int64_t first = task % pieces * kGrain;
                      run(block * shape.inner + first, std::min(kGrain, shape.inner - first), block % shape.channels);
                    }
                  });
}

}  // namespace

template <class T>
void quantize(const QuantizeShape& shape, const float* x, const float* scales, const T* zero_points, T* y,
              const Parallel& parallel) noexcept {
  for_each_run(
      shape, parallel,
      [=](int64_t first, int64_t count, int64_t channel) {
        const float scale = scales[channel];
        const int32_t zero = zero_points != nullptr ? zero_points[channel] : 0;
        for (int64_t i = first; i < first + count; ++i) y[i] = saturate<T>(x[i] / scale, zero);
      },
      [=](int64_t first, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          const int32_t zero = zero_points != nullptr ? zero_points[i] : 0;
          y[first + i] = saturate<T>(x[first + i] / scales[i], zero);
        }
      });
}

template <class T>
void dequantize(const QuantizeShape& shape, const T* x, const float* scales, const T* zero_points, float* y,
                const Parallel& parallel) noexcept {
  // 32-bit numbers may differ by more than 32 bits hold.
  using Wide = std::conditional_t<sizeof(T) == 4, int64_t, int32_t>;
  for_each_run(
      shape, parallel,
      [=](int64_t first, int64_t count, int64_t channel) {
        const float scale = scales[channel];
        const Wide zero = zero_points != nullptr ? zero_points[channel] : 0;
        for (int64_t i = first; i < first + count; ++i) y[i] = static_cast<float>(Wide{x[i]} - zero) * scale;
      },
      [=](int64_t first, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          const Wide zero = zero_points != nullptr ? zero_points[i] : 0;
          y[first + i] = static_cast<float>(Wide{x[first + i]} - zero) * scales[i];
        }
      });
}

template <class T>
void requantize(const QuantizeShape& shape, const int32_t* x, const float* multipliers, T zero_point, T* y,
                const Parallel& parallel) noexcept {
  for_each_run(
      shape, parallel,
      [=](int64_t first, int64_t count, int64_t channel) {
        const double multiplier = multipliers[channel];
        for (int64_t i = first; i < first + count; ++i) y[i] = saturate<T>(x[i] * multiplier, zero_point);
      },
      [=](int64_t first, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          y[first + i] = saturate<T>(x[first + i] * static_cast<double>(multipliers[i]), zero_point);
        }
      });
}

void value_range(int64_t count, const float* x, float* least, float* largest, const Parallel& parallel) noexcept {
  constexpr int64_t kMostParts = 64;
  float low[kMostParts] = {}, high[kMostParts] = {};
  const int64_t parts = std::clamp<int64_t>(count / kGrain, 1, kMostParts);
  parallel_for(parallel, parts, [&](int64_t part) {
    const Range range = split_range(count, parts, part);
    float smallest = 0.0f, greatest = 0.0f;
    for (int64_t i = range.begin; i < range.end; ++i) {
      smallest = x[i] < smallest ? x[i] : smallest;
      greatest = x[i] > greatest ? x[i] : greatest;
    }
    low[part] = smallest;
    high[part] = greatest;
  });
  *least = *std::min_element(low, low + parts);
  *largest = *std::max_element(high, high + parts);
}

#define TENON_QUANTIZE(T)                                                                                              \
  template void quantize<T>(const QuantizeShape&, const float*, const float*, const T*, T*, const Parallel&) noexcept; \
  template void dequantize<T>(const QuantizeShape&, const T*, const float*, const T*, float*, const Parallel&) noexcept;
TENON_QUANTIZE(uint8_t)
TENON_QUANTIZE(int8_t)
TENON_QUANTIZE(uint16_t)
TENON_QUANTIZE(int16_t)
#undef TENON_QUANTIZE
template void dequantize<int32_t>(const QuantizeShape&, const int32_t*, const float*, const int32_t*, float*,
                                  const Parallel&) noexcept;
template void requantize<uint8_t>(const QuantizeShape&, const int32_t*, const float*, uint8_t, uint8_t*,
                                  const Parallel&) noexcept;
template void requantize<int8_t>(const QuantizeShape&, const int32_t*, const float*, int8_t, int8_t*,
                                 const Parallel&) noexcept;

}  // namespace tenon::cpu
