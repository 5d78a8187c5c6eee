// Between floats and integers with a scale and a zero point, and the same for 32-bit sums.
// Rounding is to the nearest integer, ties to even; NaN becomes the smallest number.
#ifndef TENON_KERNELS_CPU_QUANTIZE_H_
#define TENON_KERNELS_CPU_QUANTIZE_H_

#include <cstdint>

#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

// x as [outer][channels][inner] with a scale and a zero point for each channel; one for all: outer = channels = 1.
struct QuantizeShape {
  int64_t outer = 1, channels = 1, inner = 1;
};

// y = saturate(round(x / scale) + zero_point). zero_points may be null: 0. T: uint8_t, int8_t, uint16_t, int16_t.
template <class T>
void quantize(const QuantizeShape& shape, const float* x, const float* scales, const T* zero_points, T* y,
              const Parallel& parallel) noexcept;

// y = (x - zero_point) * scale. T: as above, or int32_t.
template <class T>
void dequantize(const QuantizeShape& shape, const T* x, const float* scales, const T* zero_points, float* y,
                const Parallel& parallel) noexcept;

// y = saturate(round(x * multiplier) + zero_point) with the product in double precision and one zero point for all.
// T: uint8_t or int8_t.
template <class T>
void requantize(const QuantizeShape& shape, const int32_t* x, const float* multipliers, T zero_point, T* y,
                const Parallel& parallel) noexcept;

// The smallest and the largest number of x and 0. NaN is passed over.
void value_range(int64_t count, const float* x, float* least, float* largest, const Parallel& parallel) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_QUANTIZE_H_
