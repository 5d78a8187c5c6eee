#include "kernels/cpu/conv_integer.h"

#include <algorithm>

#include "kernels/cpu/gemm_integer.h"

namespace tenon::cpu {
namespace {

// The image of one group: B of the product has a row for every (channel, r, s) and a column for every output pixel.
template <class T>
struct Pixels {
  const IntegerConvGeometry* geometry;
  const T* x;
  int32_t zero;
};

template <class T>
void pack_pixels(const void* context, int64_t n, int64_t columns, int64_t begin, int64_t end, int16_t* panel) {
  const auto& pixels = *static_cast<const Pixels<T>*>(context);
  const IntegerConvGeometry& g = *pixels.geometry;
  int64_t top[kIntegerPanel], left[kIntegerPanel];
  for (int64_t i = 0; i < columns; ++i) {
    top[i] = (n + i) / g.ow * g.stride_h - g.pad_top;
    left[i] = (n + i) % g.ow * g.stride_w - g.pad_left;
  }
  const int64_t last = std::min(2 * end, g.k());
  const T* rows[kIntegerPanel];  // null: outside the image
  for (int64_t k = 2 * begin; k < last; ++k) {
    const int64_t s = k % g.s;
    if (s == 0 || k == 2 * begin) {
      const int64_t r = k / g.s % g.r;
      const T* plane = pixels.x + k / (g.s * g.r) * g.h * g.w;
      for (int64_t i = 0; i < columns; ++i) {
        const int64_t row = top[i] + r * g.dilation_h;
        rows[i] = row < 0 || row >= g.h ? nullptr : plane + row * g.w;
      }
    }
    int16_t* out = panel + (k / 2 - begin) * 2 * kIntegerPanel + k % 2;
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t column = left[i] + s * g.dilation_w;
      const bool inside = rows[i] != nullptr && column >= 0 && column < g.w;
      out[2 * i] = inside ? static_cast<int16_t>(rows[i][column] - pixels.zero) : int16_t{0};
    }
  }
  if (last % 2 != 0) {
    int16_t* out = panel + (last / 2 - begin) * 2 * kIntegerPanel + 1;
    for (int64_t i = 0; i < columns; ++i) out[2 * i] = 0;
  }
}

// Output positions whose tap at `offset` (its place for output 0) lies inside [0, size).
Range inside(int64_t outputs, int64_t stride, int64_t offset, int64_t size) {
  const int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t end = offset >= size ? 0 : (size - 1 - offset) / stride + 1;
  return {std::min(begin, outputs), std::min(std::max(end, begin), outputs)};
}

template <class T>
void depthwise_plane(const IntegerConvGeometry& g, const T* x, int32_t zero, const int16_t* weights, int32_t* y) {
  for (int64_t r = 0; r < g.r; ++r) {
    const int64_t top = r * g.dilation_h - g.pad_top;
    const Range rows = inside(g.oh, g.stride_h, top, g.h);
    for (int64_t s = 0; s < g.s; ++s) {
      const int64_t left = s * g.dilation_w - g.pad_left;
      const Range columns = inside(g.ow, g.stride_w, left, g.w);
      const uint32_t weight = static_cast<uint32_t>(int32_t{weights[r * g.s + s]});
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const T* from = x + (row * g.stride_h + top) * g.w + left;
        int32_t* to = y + row * g.ow;
        for (int64_t i = columns.begin; i < columns.end; ++i) {
          const auto factor = static_cast<uint32_t>(int32_t{from[i * g.stride_w]} - zero);
          to[i] = static_cast<int32_t>(static_cast<uint32_t>(to[i]) + weight * factor);
        }
      }
    }
  }
}

}  // namespace

int64_t conv_integer_weights(const IntegerConvGeometry& geometry) noexcept {
  return geometry.m * 2 * integer_pairs(geometry.k());
}

template <class T>
void conv_integer_pack(const IntegerConvGeometry& geometry, const T* weights, const T* zero_points,
                       int64_t num_zero_points, int16_t* packed) {
  IntegerMatrix<T> matrix;
  matrix.data = weights;
  matrix.rows = geometry.m;
  matrix.row_stride = geometry.k();
  matrix.column_stride = 1;
  matrix.zero_points = num_zero_points > 0 ? zero_points : nullptr;
  matrix.zero_row_stride = num_zero_points > 1 ? 1 : 0;
  pack_integer_rows(matrix, geometry.k(), 0, geometry.m, packed);
}

int64_t conv_integer_scratch(int64_t threads) noexcept { return gemm_integer_scratch(threads); }

template <class T>
void conv_integer(const IntegerConvGeometry& g, const T* x, int32_t x_zero, const int16_t* weights, const int32_t* bias,
                  int32_t* y, void* scratch, const Parallel& parallel, Isa isa) noexcept {
  const int64_t pixels = g.oh * g.ow, group_in = g.c / g.groups, group_out = g.m / g.groups;
  const int64_t row = 2 * integer_pairs(g.k());
  const bool depthwise = group_in == 1 && group_out == 1;
  parallel_ranges(parallel, g.n * g.m, std::max<int64_t>(1, 4096 / std::max<int64_t>(pixels, 1)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t plane = begin; plane < end; ++plane) {
                      const int64_t channel = plane % g.m;
                      int32_t* to = y + plane * pixels;
                      std::fill_n(to, pixels, bias != nullptr ? bias[channel] : 0);
                      if (depthwise) depthwise_plane(g, x + plane * g.h * g.w, x_zero, weights + channel * row, to);
                    }
                  });
  if (depthwise) return;
  // A 1x1 convolution without stride reads the image as it lies.
  const bool plain = g.r == 1 && g.s == 1 && g.stride_h == 1 && g.stride_w == 1 && g.pad_top == 0 && g.pad_left == 0 &&
                     g.oh == g.h && g.ow == g.w;
  const T zero = static_cast<T>(x_zero);
  for (int64_t image = 0; image < g.n; ++image) {
    for (int64_t group = 0; group < g.groups; ++group) {
      const T* from = x + (image * g.c + group * group_in) * g.h * g.w;
      const Pixels<T> gathered = {&g, from, x_zero};
      IntegerMatrix<T> matrix;
      matrix.data = from;
      matrix.rows = g.k();
      matrix.row_stride = pixels;
      matrix.column_stride = 1;
      matrix.zero_points = &zero;
      IntegerGemm job;
      job.m = group_out;
      job.n = pixels;
      job.k = g.k();
      job.a = weights + group * group_out * row;
      job.pack_b = plain ? pack_integer_panel<T> : pack_pixels<T>;
      job.context = plain ? static_cast<const void*>(&matrix) : &gathered;
      job.c = y + (image * g.m + group * group_out) * pixels;
      job.ldc = pixels;
      gemm_integer(job, scratch, parallel, isa);
    }
  }
}

template void conv_integer_pack<uint8_t>(const IntegerConvGeometry&, const uint8_t*, const uint8_t*, int64_t, int16_t*);
template void conv_integer_pack<int8_t>(const IntegerConvGeometry&, const int8_t*, const int8_t*, int64_t, int16_t*);
template void conv_integer<uint8_t>(const IntegerConvGeometry&, const uint8_t*, int32_t, const int16_t*, const int32_t*,
                                    int32_t*, void*, const Parallel&, Isa) noexcept;
template void conv_integer<int8_t>(const IntegerConvGeometry&, const int8_t*, int32_t, const int16_t*, const int32_t*,
                                   int32_t*, void*, const Parallel&, Isa) noexcept;

}  // namespace tenon::cpu
