#include "kernels/cpu/internal/conv2d_winograd_isa.h"

#include "kernels/cpu/internal/tile.h"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

TENON_CPU_INLINE int64_t tiles_across(const Conv2dGeometry& g) { return ceil_div(g.ow, 2); }

// Rows of B^T d.
TENON_CPU_INLINE void input_points(Vec d0, Vec d1, Vec d2, Vec d3, Vec* out, int stride) {
  out[0] = sub(d0, d2);
  out[stride] = add(d1, d2);
  out[2 * stride] = sub(d2, d1);
  out[3 * stride] = sub(d1, d3);
}

void input(const WinogradImage& image, int64_t begin, int64_t end, int64_t pitch, float* points) {
  const Conv2dGeometry& g = image.geometry;
  const int64_t channels = round_up(g.c, image.block);
  const int64_t point_stride = (end - begin) * pitch;
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t top = tile / tiles_across(g) * 2 - g.pad_top;
    const int64_t left = tile % tiles_across(g) * 2 - g.pad_left;
    const bool inside = top >= 0 && top + 4 <= g.h && left >= 0 && left + 4 <= g.w;
    for (int64_t channel = 0; channel < channels; channel += kWidth) {
      const float* plane = image.input + channel / image.block * g.h * g.w * image.block + channel % image.block;
      Vec d[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        const int64_t y = top + i / 4;
        const int64_t x = left + i % 4;
        const bool exists = inside || (y >= 0 && y < g.h && x >= 0 && x < g.w);
        d[i] = exists ? load(plane + (y * g.w + x) * image.block) : zero();
      }
      Vec half[16];
#pragma GCC unroll 4
      for (int x = 0; x < 4; ++x) input_points(d[x], d[4 + x], d[8 + x], d[12 + x], half + x, 4);
#pragma GCC unroll 4
      for (int y = 0; y < 4; ++y) {
        Vec row[4];
        input_points(half[4 * y], half[4 * y + 1], half[4 * y + 2], half[4 * y + 3], row, 1);
#pragma GCC unroll 4
        for (int x = 0; x < 4; ++x) {
          store(points + (4 * y + x) * point_stride + (tile - begin) * pitch + channel, row[x]);
        }
      }
    }
  }
}

void output(const WinogradImage& image, int64_t begin, int64_t end, int64_t channel, int64_t columns, int64_t pitch,
            const float* sums) {
  const Conv2dGeometry& g = image.geometry;
  const int64_t point_stride = (end - begin) * pitch;
  TileOutput activation;
  set_epilogue(image.epilogue, &activation);
  for (int64_t column = 0; column < columns; column += kWidth) {
    const int64_t k = channel + column;
    const int64_t valid = g.k - k;
    const Vec bias = image.bias == nullptr ? zero() : load_first(image.bias + k, valid);
    const int64_t plane = k / image.block * g.oh * g.ow * image.block + k % image.block;
    for (int64_t tile = begin; tile < end; ++tile) {
      const float* m = sums + (tile - begin) * pitch + column;
      Vec half[8];
#pragma GCC unroll 4
      for (int x = 0; x < 4; ++x) {
        const Vec m0 = load(m + x * point_stride);
        const Vec m1 = load(m + (4 + x) * point_stride);
        const Vec m2 = load(m + (8 + x) * point_stride);
        const Vec m3 = load(m + (12 + x) * point_stride);
        half[x] = add(add(m0, m1), m2);
        half[4 + x] = sub(sub(m1, m2), m3);
      }
      const int64_t top = tile / tiles_across(g) * 2;
      const int64_t left = tile % tiles_across(g) * 2;
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const Vec* h = half + i / 2 * 4;
        Vec y = i % 2 == 0 ? add(add(h[0], h[1]), h[2]) : sub(sub(h[1], h[2]), h[3]);
        if (top + i / 2 >= g.oh || left + i % 2 >= g.ow) continue;
        const int64_t at = plane + ((top + i / 2) * g.ow + left + i % 2) * image.block;
        y = add(y, bias);
        if (image.residual != nullptr) y = add(y, load(image.residual + at));
        y = activate(y, activation.kind, activation.alpha, activation.lo, activation.hi);
        if (valid >= kWidth) {
          store(image.output + at, y);
        } else {
          store(image.output + at, zero());
          store_first(image.output + at, y, valid);
        }
      }
    }
  }
}

}  // namespace

const WinogradTable kWinogradTable = {input, output};

}  // namespace tenon::cpu::TENON_CPU_ISA
