// Convolution of 8-bit integers, less their zero points, with 32-bit sums: over the integer matrix product, and
// directly where every group has one input and one output channel.
#ifndef TENON_KERNELS_CPU_CONV_INTEGER_H_
#define TENON_KERNELS_CPU_CONV_INTEGER_H_

#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

// x [n][c][h][w], weights [m][c / groups][r][s], y [n][m][oh][ow]. An image of rank 1 has h = r = oh = 1.
struct IntegerConvGeometry {
  int64_t n = 1, c = 1, h = 1, w = 1;
  int64_t m = 1, r = 1, s = 1;
  int64_t groups = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t oh = 1, ow = 1;

  int64_t k() const { return c / groups * r * s; }
};

// Numbers of packed weights.
int64_t conv_integer_weights(const IntegerConvGeometry& geometry) noexcept;
// Weights less their zero points, of which there are num_zero_points: 0, 1 or m. T: uint8_t or int8_t.
template <class T>
void conv_integer_pack(const IntegerConvGeometry& geometry, const T* weights, const T* zero_points,
                       int64_t num_zero_points, int16_t* packed);

// Bytes of scratch memory for `threads` threads.
int64_t conv_integer_scratch(int64_t threads) noexcept;

// y = bias + the convolution; outside the image is x_zero, which counts as 0. bias may be null. T: uint8_t or int8_t.
// REQUIRES: scratch has conv_integer_scratch(parallel.threads) bytes, aligned to 64; isa <= detect_isa().
template <class T>
void conv_integer(const IntegerConvGeometry& geometry, const T* x, int32_t x_zero, const int16_t* weights,
                  const int32_t* bias, int32_t* y, void* scratch, const Parallel& parallel, Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_CONV_INTEGER_H_
