// conv2d for one instruction set: patch gathering and the direct convolution.
#include "kernels/cpu/internal/conv2d_isa.h"

#include "kernels/cpu/internal/conv2d_depthwise_isa.h"
#include "kernels/cpu/internal/tile.h"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// --- im2col

// A run of panel columns that lie in one output row.
struct Segment {
  int64_t ih, iw;     // input cell of the tap (0, 0) for the first column
  int64_t to, count;  // first panel column, columns
};

TENON_CPU_INLINE void gather(const float* row, int64_t width, int64_t iw, int64_t stride, int64_t count, float* to) {
  if (stride == 1) {
    if (iw >= 0 && iw + count <= width) {
      int64_t i = 0;
      for (; i + kWidth <= count; i += kWidth) store(to + i, load(row + iw + i));
      store_first(to + i, load_first(row + iw + i, count - i), count - i);
      return;
    }
    for (int64_t i = 0; i < count; ++i) to[i] = iw + i >= 0 && iw + i < width ? row[iw + i] : 0.0f;
    return;
  }
  for (int64_t i = 0; i < count; ++i, iw += stride) to[i] = iw >= 0 && iw < width ? row[iw] : 0.0f;
}

void im2col(const void* context, int64_t k_begin, int64_t k_end, int64_t n_begin, int64_t n_end, float* panel) {
  const Im2colSource& source = *static_cast<const Im2colSource*>(context);
  const Conv2dGeometry& g = source.geometry;
  Segment segments[kTileColumns];
  int count = 0;
  for (int64_t n = n_begin; n < n_end;) {
    const int64_t oh = n / g.ow;
    const int64_t ow = n - oh * g.ow;
    const int64_t run = min_of(g.ow - ow, n_end - n);
    segments[count++] = {oh * g.stride_h - g.pad_top, ow * g.stride_w - g.pad_left, n - n_begin, run};
    n += run;
  }
  int64_t s = k_begin % g.s;
  int64_t r = k_begin / g.s % g.r;
  const float* plane = source.input + k_begin / g.s / g.r * g.h * g.w;
  for (int64_t k = k_begin; k < k_end; ++k, panel += kTileColumns) {
    if (n_end - n_begin < kTileColumns) {
      for (int v = 0; v < kTileVecs; ++v) store(panel + v * kWidth, zero());
    }
    for (int i = 0; i < count; ++i) {
      const Segment& segment = segments[i];
      const int64_t ih = segment.ih + r * g.dilation_h;
      if (ih >= 0 && ih < g.h) {
        gather(plane + ih * g.w, g.w, segment.iw + s * g.dilation_w, g.stride_w, segment.count, panel + segment.to);
      } else {
        for (int64_t j = 0; j < segment.count; ++j) panel[segment.to + j] = 0.0f;
      }
    }
    if (++s == g.s) {
      s = 0;
      if (++r == g.r) {
        r = 0;
        plane += g.h * g.w;
      }
    }
  }
}

// --- direct

// The taps that one tile sums over: outer x r x s x inner products for each row, in this order.
struct Taps {
  const float* a;  // first tap of the tile's first pixel
  int64_t outer, outer_stride;
  int64_t r, r_stride;
  int64_t s, s_stride;
  int64_t inner;
  int64_t pixel_stride;  // from one output pixel's tap to the next one's
};

// kStride: the pixel stride if known when compiling, else 0.
template <int kRows, int kVecs, int kStride>
void conv_tile(const Taps& taps, const float* b, const TileOutput& out) {
  Vec acc[kRows][kVecs];
  begin_tile(out, acc);
  for (int64_t o = 0; o < taps.outer; ++o) {
    for (int64_t r = 0; r < taps.r; ++r) {
      for (int64_t s = 0; s < taps.s; ++s) {
        const float* a = taps.a + o * taps.outer_stride + r * taps.r_stride + s * taps.s_stride;
        if constexpr (kStride != 0) {
          for (int64_t i = 0; i < taps.inner; ++i) {
            Vec bv[kVecs];
#pragma GCC unroll 2
            for (int v = 0; v < kVecs; ++v) bv[v] = load(b + v * kWidth);
#pragma GCC unroll 14
            for (int row = 0; row < kRows; ++row) {
              const Vec av = broadcast(a[row * kStride]);
#pragma GCC unroll 2
              for (int v = 0; v < kVecs; ++v) acc[row][v] = fma(av, bv[v], acc[row][v]);
            }
            ++a;
            b += kTileColumns;
          }
        } else {
          constexpr int kGroups = (kRows + 3) / 4;
          const int64_t stride = taps.pixel_stride;
          const float* rows[kGroups];
          for (int g = 0; g < kGroups; ++g) rows[g] = a + 4 * g * stride;
          for (int64_t i = 0; i < taps.inner; ++i) {
            Vec bv[kVecs];
#pragma GCC unroll 2
            for (int v = 0; v < kVecs; ++v) bv[v] = load(b + v * kWidth);
#pragma GCC unroll 14
            for (int row = 0; row < kRows; ++row) {
              const Vec av = broadcast(rows[row / 4][(row % 4) * stride]);
#pragma GCC unroll 2
              for (int v = 0; v < kVecs; ++v) acc[row][v] = fma(av, bv[v], acc[row][v]);
            }
#pragma GCC unroll 4
            for (int g = 0; g < kGroups; ++g) {
              ++rows[g];
              __asm__("" : "+r"(rows[g]));  // keeps the compiler from splitting the pointer into one for each row
            }
            b += kTileColumns;
          }
        }
      }
    }
  }
  end_tile(out, acc);
}

using TileFunction = void (*)(const Taps&, const float*, const TileOutput&);

template <int kRows, int kVecs>
TileFunction find_stride(int64_t stride) {
  switch (stride) {
    case 1:
      return conv_tile<kRows, kVecs, 1>;
    case 2:
      return conv_tile<kRows, kVecs, 2>;
    case 8:
      if constexpr (kWidth < 16) return conv_tile<kRows, kVecs, 8>;  // kNchw8c never runs on AVX-512
      return conv_tile<kRows, kVecs, 0>;
    case 16:
      return conv_tile<kRows, kVecs, 16>;
    case 32:
      return conv_tile<kRows, kVecs, 32>;
    default:
      return conv_tile<kRows, kVecs, 0>;
  }
}

template <int kRows>
TileFunction find_tile(int64_t rows, int vecs, int64_t stride) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return find_tile<kRows - 1>(rows, vecs, stride);
  }
  return vecs == 1 ? find_stride<kRows, 1>(stride) : find_stride<kRows, 2>(stride);
}

// Copies the input cells of the task to [outer][height][width][inner], zeros outside the image.
void copy_padded(const DirectConv& conv, const DirectConvTask& task, int64_t height, int64_t width, float* to) {
  const Conv2dGeometry& g = conv.geometry;
  const int64_t top = task.oh_begin * g.stride_h - g.pad_top;
  const int64_t left = task.ow_begin * g.stride_w - g.pad_left;
  const int64_t first = min_of(max_of(-left, 0), width);
  const int64_t last = max_of(min_of(g.w - left, width), first);
  for (int64_t o = 0; o < conv.outer; ++o) {
    for (int64_t y = 0; y < height; ++y, to += width * conv.inner) {
      const int64_t ih = top + y;
      if (ih < 0 || ih >= g.h) {
        __builtin_memset(to, 0, width * conv.inner * sizeof(float));
        continue;
      }
      const float* from =
          task.input + o * conv.plane_stride + ih * conv.row_stride + (left + first) * conv.pixel_stride;
      __builtin_memset(to, 0, first * conv.inner * sizeof(float));
      float* row = to + first * conv.inner;
      if (conv.pixel_stride == conv.inner) {
        __builtin_memcpy(row, from, (last - first) * conv.inner * sizeof(float));
        row += (last - first) * conv.inner;
      } else {
        for (int64_t x = first; x < last; ++x, row += conv.inner, from += conv.pixel_stride) {
          __builtin_memcpy(row, from, conv.inner * sizeof(float));
        }
      }
      __builtin_memset(row, 0, (width - last) * conv.inner * sizeof(float));
    }
  }
}

TENON_CPU_INLINE int64_t channel_offset(const DirectConv& conv, int64_t channel) {
  return channel / conv.block * conv.out_block_stride + channel % conv.block;
}

void zero_filling_channels(const DirectConv& conv, const DirectConvTask& task, int64_t channels) {
  const int64_t filled = channels % conv.block;
  if (filled == 0) return;
  float* last_block = task.output + channels / conv.block * conv.out_block_stride;
  for (int64_t oh = task.oh_begin; oh < task.oh_end; ++oh) {
    for (int64_t ow = task.ow_begin; ow < task.ow_end; ++ow) {
      float* pixel = last_block + (oh * conv.geometry.ow + ow) * conv.out_pixel_stride;
      for (int64_t i = filled; i < conv.block; ++i) pixel[i] = 0.0f;
    }
  }
}

void direct(const DirectConv& conv, const Epilogue& epilogue, const DirectConvTask& task, float* scratch) {
  const Conv2dGeometry& g = conv.geometry;
  const int64_t channels = g.k / g.groups;
  const int64_t taps_outer = g.r * g.s * conv.inner;

  Taps taps;
  taps.r = g.r;
  taps.s = g.s;
  taps.inner = conv.inner;
  const float* input;
  int64_t row_stride;
  int64_t pixel_stride;
  if (conv.padded) {
    const int64_t height = conv2d_padded_height(g, task.oh_end - task.oh_begin);
    const int64_t width = conv2d_padded_width(g, task.ow_end - task.ow_begin);
    copy_padded(conv, task, height, width, scratch);
    input = scratch;
    pixel_stride = conv.inner;
    row_stride = width * conv.inner;
    taps.outer_stride = height * row_stride;
  } else {
    pixel_stride = conv.pixel_stride;
    row_stride = conv.row_stride;
    input = task.input + task.oh_begin * g.stride_h * row_stride + task.ow_begin * g.stride_w * pixel_stride;
    taps.outer_stride = conv.plane_stride;
  }
  taps.r_stride = g.dilation_h * row_stride;
  taps.s_stride = g.dilation_w * pixel_stride;
  taps.pixel_stride = g.stride_w * pixel_stride;

  TileOutput out;
  out.row_stride = conv.out_pixel_stride;
  out.row_bias = nullptr;
  set_epilogue(epilogue, &out);

  const int64_t width = task.ow_end - task.ow_begin;
  const int64_t tiles = ceil_div(width, kTileRows);
  // A chunk of a weight panel stays in the first- or second-level cache while all pixels of the task pass by.
  constexpr int64_t kChunkProducts = 512;
  const int64_t chunk = max_of(kChunkProducts / taps_outer, 1);
  int64_t o = 0;
  do {
    taps.outer = min_of(chunk, conv.outer - o);
    out.resume = o > 0;
    out.finish = o + taps.outer >= conv.outer;
    for (int64_t panel = task.panel_begin; panel < task.panel_end; ++panel) {
      const int64_t channel = panel * kTileColumns;
      const float* weights = task.weights + (panel * conv.outer + o) * taps_outer * kTileColumns;
      const int64_t left = min_of(channels - channel, kTileColumns);
      out.columns = min_of(round_up(left, conv.block), kTileColumns);
      out.bias_columns = left;
      out.column_bias = task.bias == nullptr ? nullptr : task.bias + channel;
      const int vecs = out.columns > kWidth ? 2 : 1;
      const int64_t offset = channel_offset(conv, channel);
      out.vec_stride = conv.block == 1 ? kWidth : channel_offset(conv, channel + kWidth) - offset;
      for (int64_t oh = task.oh_begin; oh < task.oh_end; ++oh) {
        for (int64_t tile = 0; tile < tiles; ++tile) {
          // Tiles of nearly equal width.
          const int64_t begin = tile * width / tiles;
          const int64_t rows = (tile + 1) * width / tiles - begin;
          taps.a = input + o * taps.outer_stride + (oh - task.oh_begin) * g.stride_h * row_stride +
                   begin * taps.pixel_stride;
          const int64_t position = offset + (oh * g.ow + task.ow_begin + begin) * conv.out_pixel_stride;
          out.c = task.output + position;
          out.residual = task.residual == nullptr ? nullptr : task.residual + position;
          find_tile<kTileRows>(rows, vecs, taps.pixel_stride)(taps, weights, out);
        }
      }
    }
    o += taps.outer;
  } while (o < conv.outer);
  if (task.panel_end * kTileColumns >= channels) zero_filling_channels(conv, task, channels);
}

}  // namespace

const Conv2dTable kConv2dTable = {kTileRows,        kTileColumns,    im2col,        direct,
                                  depthwise_pixels, depthwise_plane, depthwise_rows};

}  // namespace tenon::cpu::TENON_CPU_ISA
