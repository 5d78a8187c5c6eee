// Depthwise convolution for one instruction set. Sums run over r, then s, in every path, so paths agree to the bit but
// where taps outside the image are skipped instead of multiplied by 0.
#include "kernels/cpu/internal/conv2d_depthwise_isa.h"

#include "kernels/cpu/internal/tile.h"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// The output columns whose windows lie within the row: [begin, end).
struct Interior {
  int64_t begin, end;
};

TENON_CPU_INLINE Interior interior_columns(const Conv2dGeometry& g) {
  const int64_t begin = min_of(ceil_div(g.pad_left, g.stride_w), g.ow);
  const int64_t last_start = g.w - 1 - (g.s - 1) * g.dilation_w + g.pad_left;
  const int64_t end = last_start < 0 ? 0 : min_of(last_start / g.stride_w + 1, g.ow);
  return {begin, max_of(begin, end)};
}

struct PixelRow {
  const float* input;  // row and column of the tap (0, 0) of output column 0, which may lie outside the image
  const float* weights;
  int64_t r_begin, r_end;
  int64_t row_stride;  // from tap row to tap row
  int64_t pitch;
  int64_t weights_pitch;
};

// kPixels outputs of one vector of channels; taps outside [s_begin, s_end) are skipped. With kTaps and kStride known,
// each input vector is loaded once for all the outputs that use it.
template <int kPixels, int kTaps, int kStride>
TENON_CPU_INLINE void pixel_sums(const Conv2dGeometry& g, const PixelRow& row, int64_t channel, int64_t lanes,
                                 int64_t ow, int64_t s_begin, int64_t s_end, Vec (&acc)[kPixels]) {
  const float* from = row.input + ow * g.stride_w * row.pitch + channel;
  for (int64_t r = row.r_begin; r < row.r_end; ++r) {
    const float* x = from + r * row.row_stride;
    const float* w = row.weights + r * g.s * row.weights_pitch + channel;
    if constexpr (kTaps != 0) {
      Vec wv[kTaps];
#pragma GCC unroll 5
      for (int s = 0; s < kTaps; ++s) wv[s] = load_first(w + s * row.weights_pitch, lanes);
#pragma GCC unroll 16
      for (int i = 0; i < (kPixels - 1) * kStride + kTaps; ++i) {
        const Vec xv = load_first(x + i * row.pitch, lanes);
#pragma GCC unroll 4
        for (int p = 0; p < kPixels; ++p) {
          if (i - p * kStride >= 0 && i - p * kStride < kTaps) acc[p] = fma(xv, wv[i - p * kStride], acc[p]);
        }
      }
    } else {
      for (int64_t s = s_begin; s < s_end; ++s) {
        const Vec wv = load_first(w + s * row.weights_pitch, lanes);
#pragma GCC unroll 4
        for (int p = 0; p < kPixels; ++p) {
          const Vec xv = load_first(x + (p * g.stride_w + s * g.dilation_w) * row.pitch, lanes);
          acc[p] = fma(xv, wv, acc[p]);
        }
      }
    }
  }
}

struct PixelOutput {
  const float* bias;
  const float* residual;
  float* output;  // column 0 of the row
  int64_t pitch;
  int64_t valid;
  TileOutput activation;
};

template <int kPixels>
TENON_CPU_INLINE void store_pixels(const PixelOutput& out, int64_t channel, int64_t lanes, int64_t ow,
                                   const Vec (&acc)[kPixels]) {
  const Vec bias = out.bias == nullptr ? zero() : load_first(out.bias + channel, min_of(lanes, out.valid - channel));
#pragma GCC unroll 4
  for (int p = 0; p < kPixels; ++p) {
    const int64_t offset = (ow + p) * out.pitch + channel;
    Vec x = out.bias == nullptr ? acc[p] : add(acc[p], bias);
    if (out.residual != nullptr) x = add(x, load_first(out.residual + offset, lanes));
    x = activate(x, out.activation.kind, out.activation.alpha, out.activation.lo, out.activation.hi);
    const int64_t valid = out.valid - channel;
    if (valid < lanes) {
      store_first(out.output + offset, zero(), lanes);
      store_first(out.output + offset, x, valid);
    } else {
      store_first(out.output + offset, x, lanes);
    }
  }
}

template <int kTaps, int kStride>
TENON_CPU_INLINE void pixel_row(const Conv2dGeometry& g, const PixelRow& row, const PixelOutput& out, int64_t channels,
                                const Interior& interior) {
  constexpr int kPixels = 4;
  for (int64_t ow = 0; ow < g.ow;) {
    const bool inside = ow >= interior.begin && ow < interior.end;
    if (inside && ow + kPixels <= interior.end) {
      int64_t channel = 0;
      for (; channel + kWidth <= channels; channel += kWidth) {
        Vec acc[kPixels] = {zero(), zero(), zero(), zero()};
        pixel_sums<kPixels, kTaps, kStride>(g, row, channel, kWidth, ow, 0, g.s, acc);
        store_pixels(out, channel, kWidth, ow, acc);
      }
      if (channel < channels) {
        Vec acc[kPixels] = {zero(), zero(), zero(), zero()};
        pixel_sums<kPixels, 0, 0>(g, row, channel, channels - channel, ow, 0, g.s, acc);
        store_pixels(out, channel, channels - channel, ow, acc);
      }
      ow += kPixels;
      continue;
    }
    const int64_t left = g.pad_left - ow * g.stride_w;  // columns of the window before the image
    const int64_t s_begin = left > 0 ? min_of(ceil_div(left, g.dilation_w), g.s) : 0;
    const int64_t s_end = max_of(min_of(ceil_div(max_of(g.w + left, 0), g.dilation_w), g.s), s_begin);
    for (int64_t channel = 0; channel < channels; channel += kWidth) {
      const int64_t lanes = min_of(kWidth, channels - channel);
      Vec acc[1] = {zero()};
      pixel_sums<1, 0, 0>(g, row, channel, lanes, ow, s_begin, s_end, acc);
      store_pixels(out, channel, lanes, ow, acc);
    }
    ++ow;
  }
}

// Copies input row `ih` with zeros around it, split by column modulo the stride.
TENON_CPU_INLINE void copy_phases(const Conv2dGeometry& g, const float* input, int64_t ih, float* to) {
  const int64_t floats = depthwise_phase_floats(g);
  if (ih < 0 || ih >= g.h) {
    __builtin_memset(to, 0, g.stride_w * floats * sizeof(float));
    return;
  }
  const float* row = input + ih * g.w;
  if (g.stride_w == 2) {
    // Column q of phase p is input column 2 q + p - pad_left; both phases lie inside for q in [first, last).
    const int64_t first = min_of(ceil_div(g.pad_left, 2), floats);
    const int64_t last = max_of(min_of((g.w + g.pad_left) / 2, floats), first);
    const auto copy_checked = [&](int64_t q) __attribute__((always_inline)) {
      for (int64_t phase = 0; phase < 2; ++phase) {
        const int64_t iw = 2 * q + phase - g.pad_left;
        to[phase * floats + q] = iw >= 0 && iw < g.w ? row[iw] : 0.0f;
      }
    };
    for (int64_t q = 0; q < first; ++q) copy_checked(q);
    int64_t q = first;
    for (; q + kWidth <= last; q += kWidth) {
      const float* from = row + 2 * q - g.pad_left;
      Vec even;
      Vec odd;
      deinterleave(load(from), load(from + kWidth), &even, &odd);
      store(to + q, even);
      store(to + floats + q, odd);
    }
    for (; q < floats; ++q) copy_checked(q);
    return;
  }
  for (int64_t phase = 0; phase < g.stride_w; ++phase, to += floats) {
    // Column q of this phase is input column q * stride + phase - pad_left.
    const int64_t shift = phase - g.pad_left;
    const int64_t first = shift >= 0 ? 0 : min_of(ceil_div(-shift, g.stride_w), floats);
    const int64_t room = g.w - shift;
    const int64_t last = room <= 0 ? first : max_of(min_of(ceil_div(room, g.stride_w), floats), first);
    for (int64_t q = 0; q < first; ++q) to[q] = 0.0f;
    const float* from = row + shift;
    if (g.stride_w == 1) {
      int64_t q = first;
      for (; q + kWidth <= last; q += kWidth) store(to + q, load(from + q));
      store_first(to + q, load_first(from + q, last - q), last - q);
    } else {
      for (int64_t q = first; q < last; ++q) to[q] = from[g.stride_w * q];
    }
    for (int64_t q = last; q < floats; ++q) to[q] = 0.0f;
  }
}

struct PlaneRow {
  const float* rows;  // scratch row of tap row 0
  const float* weights;
  float bias;
  const float* residual;
  float* output;
  TileOutput activation;
};

// kTaps and kStride are the kernel width and stride if known when compiling (dilation 1), else 0.
template <int kVecs, int kTaps, int kStride>
TENON_CPU_INLINE void plane_columns(const Conv2dGeometry& g, const PlaneRow& row, int64_t ow, int64_t count) {
  const int64_t phase_floats = depthwise_phase_floats(g);
  const int64_t row_floats = depthwise_row_floats(g);
  const int64_t tail = count - (kVecs - 1) * kWidth;
  Vec acc[kVecs];
#pragma GCC unroll 4
  for (int v = 0; v < kVecs; ++v) acc[v] = zero();
  const auto add_tap = [&](const float* x, float weight) __attribute__((always_inline)) {
    const Vec wv = broadcast(weight);
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      const Vec xv = v == kVecs - 1 ? load_first(x + v * kWidth, tail) : load(x + v * kWidth);
      acc[v] = fma(xv, wv, acc[v]);
    }
  };
  const float* w = row.weights;
  for (int64_t r = 0; r < g.r; ++r, w += g.s) {
    const float* line = row.rows + r * g.dilation_h * row_floats + ow;
    if constexpr (kTaps != 0) {
#pragma GCC unroll 5
      for (int s = 0; s < kTaps; ++s) add_tap(line + s % kStride * phase_floats + s / kStride, w[s]);
    } else {
      int64_t phase = 0;
      for (int64_t s = 0; s < g.s; ++s) {
        add_tap(line + phase * phase_floats, w[s]);
        for (phase += g.dilation_w; phase >= g.stride_w; phase -= g.stride_w) ++line;
      }
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVecs; ++v) {
    const int64_t lanes = v == kVecs - 1 ? tail : kWidth;
    const int64_t at = ow + v * kWidth;
    Vec x = add(acc[v], broadcast(row.bias));
    if (row.residual != nullptr) x = add(x, load_first(row.residual + at, lanes));
    x = activate(x, row.activation.kind, row.activation.alpha, row.activation.lo, row.activation.hi);
    store_first(row.output + at, x, lanes);
  }
}

template <int kTaps, int kStride>
void plane_row(const Conv2dGeometry& g, const PlaneRow& row) {
  int64_t ow = 0;
  for (; ow + 3 * kWidth < g.ow; ow += 4 * kWidth) {
    plane_columns<4, kTaps, kStride>(g, row, ow, min_of(4 * kWidth, g.ow - ow));
  }
  for (; ow + kWidth < g.ow; ow += 2 * kWidth) {
    plane_columns<2, kTaps, kStride>(g, row, ow, min_of(2 * kWidth, g.ow - ow));
  }
  if (ow < g.ow) plane_columns<1, kTaps, kStride>(g, row, ow, g.ow - ow);
}

using PlaneRowFunction = void (*)(const Conv2dGeometry&, const PlaneRow&);

PlaneRowFunction find_plane_row(const Conv2dGeometry& g) {
  if (g.dilation_w != 1) return plane_row<0, 0>;
  if (g.s == 3 && g.stride_w == 1) return plane_row<3, 1>;
  if (g.s == 3 && g.stride_w == 2) return plane_row<3, 2>;
  if (g.s == 5 && g.stride_w == 1) return plane_row<5, 1>;
  if (g.s == 5 && g.stride_w == 2) return plane_row<5, 2>;
  return plane_row<0, 0>;
}

}  // namespace

void depthwise_pixels(const DepthwiseConv& conv, int64_t channels, int64_t valid, int64_t pitch, int64_t weights_pitch,
                      const float* input, const float* weights, const float* bias, const float* residual, float* output,
                      int64_t oh_begin, int64_t oh_end) {
  const Conv2dGeometry& g = conv.geometry;
  const Interior interior = interior_columns(g);
  PixelRow row;
  row.weights = weights;
  row.row_stride = g.dilation_h * g.w * pitch;
  row.pitch = pitch;
  row.weights_pitch = weights_pitch;
  PixelOutput out;
  out.bias = bias;
  out.pitch = pitch;
  out.valid = valid;
  set_epilogue(conv.epilogue, &out.activation);
  const bool known = g.dilation_w == 1;
  for (int64_t oh = oh_begin; oh < oh_end; ++oh) {
    const int64_t top = oh * g.stride_h - g.pad_top;
    row.input = input + (top * g.w - g.pad_left) * pitch;
    row.r_begin = top >= 0 ? 0 : min_of(ceil_div(-top, g.dilation_h), g.r);
    row.r_end = top >= g.h ? row.r_begin : max_of(min_of(ceil_div(g.h - top, g.dilation_h), g.r), row.r_begin);
    out.output = output + oh * g.ow * pitch;
    out.residual = residual == nullptr ? nullptr : residual + oh * g.ow * pitch;
    if (known && g.s == 3 && g.stride_w == 1) {
      pixel_row<3, 1>(g, row, out, channels, interior);
    } else if (known && g.s == 3 && g.stride_w == 2) {
      pixel_row<3, 2>(g, row, out, channels, interior);
    } else if (known && g.s == 5 && g.stride_w == 1) {
      pixel_row<5, 1>(g, row, out, channels, interior);
    } else if (known && g.s == 5 && g.stride_w == 2) {
      pixel_row<5, 2>(g, row, out, channels, interior);
    } else {
      pixel_row<0, 0>(g, row, out, channels, interior);
    }
  }
}

void depthwise_plane(const DepthwiseConv& conv, const float* input, const float* weights, float bias,
                     const float* residual, float* output, float* scratch) {
  const Conv2dGeometry& g = conv.geometry;
  const int64_t block_rows = depthwise_plane_rows(g);
  const int64_t row_floats = depthwise_row_floats(g);
  const PlaneRowFunction columns = find_plane_row(g);
  PlaneRow row;
  row.weights = weights;
  row.bias = bias;
  set_epilogue(conv.epilogue, &row.activation);
  for (int64_t begin = 0; begin < g.oh; begin += block_rows) {
    const int64_t end = min_of(begin + block_rows, g.oh);
    const int64_t height = conv2d_padded_height(g, end - begin);
    for (int64_t y = 0; y < height; ++y) {
      copy_phases(g, input, begin * g.stride_h - g.pad_top + y, scratch + y * row_floats);
    }
    for (int64_t oh = begin; oh < end; ++oh) {
      row.rows = scratch + (oh - begin) * g.stride_h * row_floats;
      row.output = output + oh * g.ow;
      row.residual = residual == nullptr ? nullptr : residual + oh * g.ow;
      columns(g, row);
    }
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
