// pool for one instruction set.
#include "kernels/cpu/internal/pool_isa.h"

#include "kernels/cpu/internal/columns.h"
#include "kernels/cpu/internal/simd.h"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// The taps of a window that lie inside [0, size): [begin, end).
struct TapRange {
  int64_t begin, end;
};

TENON_CPU_INLINE TapRange taps_inside(int64_t start, int64_t taps, int64_t dilation, int64_t low, int64_t high) {
  if (start >= low && start + (taps - 1) * dilation < high) return {0, taps};  // the usual case, without divisions
  const int64_t begin = start >= low ? 0 : min_of(ceil_div(low - start, dilation), taps);
  const int64_t end = start >= high ? begin : min_of(ceil_div(high - start, dilation), taps);
  return {begin, max_of(begin, end)};
}

TENON_CPU_INLINE int64_t divisor_taps(PoolKind kind, int64_t start, int64_t taps, int64_t dilation, int64_t size,
                                      int64_t pad_before, int64_t pad_after) {
  const bool pads = kind == PoolKind::kAverageIncludePad;
  const TapRange range = taps_inside(start, taps, dilation, pads ? -pad_before : 0, pads ? size + pad_after : size);
  return range.end - range.begin;
}

template <bool kMax>
TENON_CPU_INLINE Vec join(Vec a, Vec b) {
  return kMax ? max_nan(a, b) : add(a, b);
}

template <bool kMax>
TENON_CPU_INLINE float identity() {
  return kMax ? -__builtin_inff() : 0.0f;
}

// Of `count` floats in a row.
template <bool kMax>
TENON_CPU_INLINE float reduce(int64_t count, const float* input) {
  Vec acc[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) acc[v] = broadcast(identity<kMax>());
  int64_t i = 0;
  for (; i + 4 * kWidth <= count; i += 4 * kWidth) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) acc[v] = join<kMax>(acc[v], load(input + i + v * kWidth));
  }
  for (; i + kWidth <= count; i += kWidth) acc[0] = join<kMax>(acc[0], load(input + i));
  // A maximum may take floats twice, a sum takes zeros.
  if (kMax && count >= kWidth) {
    acc[1] = join<kMax>(acc[1], load(input + count - kWidth));
  } else if (!kMax && i < count) {
    acc[1] = add(acc[1], load_first(input + i, count - i));
  } else {
    for (; i < count; ++i) acc[2] = join<kMax>(acc[2], broadcast(input[i]));
  }
  Vec x = join<kMax>(join<kMax>(acc[0], acc[1]), join<kMax>(acc[2], acc[3]));
  if constexpr (kWidth >= 16) x = join<kMax>(x, shifted<kWidth / 2>(x, x));
  if constexpr (kWidth >= 8) x = join<kMax>(x, shifted<4>(x, x));
  x = join<kMax>(x, shifted<2>(x, x));
  return first_float(join<kMax>(x, shifted<1>(x, x)));
}

TENON_CPU_INLINE bool one_window(const PoolGeometry& g) {
  return g.oh == 1 && g.ow == 1 && g.dilation_h == 1 && g.dilation_w == 1 && g.kernel_h - g.pad_top >= g.h &&
         g.kernel_w - g.pad_left >= g.w;
}

#if defined(__AVX2__)
// As the plane of the depthwise convolution: see conv2d_depthwise_rows_isa.cc.
template <bool kMax, int kTaps, int kStride, int kRows>
TENON_CPU_INLINE void window_rows(PoolKind kind, const PoolGeometry& g, const float* input, const float* outside,
                                  float* output, const Columns<kTaps, kStride>& columns, Vec divisors, int64_t oh,
                                  int64_t ow) {
  const int64_t top = oh * kStride - g.pad_top;
  const float* from = input + top * g.w + ow * kStride - g.pad_left;
  Vec acc[kRows];
#pragma GCC unroll 20
  for (int i = 0; i < (kRows - 1) * kStride + kTaps; ++i) {
    const bool inside = static_cast<uint64_t>(top + i) < static_cast<uint64_t>(g.h);
    Vec taps[kTaps];
    columns.template load_taps<kMax>(inside ? from + i * g.w : outside, broadcast(identity<kMax>()), taps);
    Vec row = taps[0];
#pragma GCC unroll 3
    for (int s = 1; s < kTaps; ++s) row = join<kMax>(row, taps[s]);
#pragma GCC unroll 8
    for (int p = 0; p < kRows; ++p) {
      const int r = i - p * kStride;
      if (r >= 0 && r < kTaps) acc[p] = r == 0 ? row : join<kMax>(acc[p], row);
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kRows; ++p) {
    const int64_t at = (oh + p) * g.ow + ow;
    if (!kMax) {
      const int64_t rows = divisor_taps(kind, top + p * kStride, kTaps, 1, g.h, g.pad_top, g.pad_bottom);
      const Vec divisor = mul(divisors, broadcast(static_cast<float>(rows)));
      acc[p] = select(less(zero(), divisor), div(acc[p], divisor), zero());
    }
    if (at + kWidth <= g.oh * g.ow) {
      store(output + at, acc[p]);
    } else {
      store_first(output + at, acc[p], g.ow - ow);
    }
  }
}

template <bool kMax, int kTaps, int kStride>
void plane_rows(PoolKind kind, const PoolGeometry& g, const float* input, float* output) {
  constexpr int kRows = 7;
  constexpr int64_t kChunkFloats = 4 * 1024;  // of the input, so that it stays in the first-level cache
  using Window = Columns<kTaps, kStride>;
  float outside[Window::kFloats], ones[Window::kFloats];
  for (float& value : outside) value = identity<kMax>();
  for (float& value : ones) value = 1.0f;
  const bool pads = kind == PoolKind::kAverageIncludePad;
  const int64_t chunk = max_of(kChunkFloats / (kStride * max_of(g.w, 1)), kRows) / kRows * kRows;
  for (int64_t begin = 0; begin < g.oh; begin += chunk) {
    const int64_t end = min_of(begin + chunk, g.oh);
    for (int64_t ow = (g.ow - 1) / kWidth * kWidth; ow >= 0; ow -= kWidth) {
      const int64_t left = ow * kStride - g.pad_left;
      Window columns;
      Vec divisors = zero();
      if (!kMax) {
        columns.set(left, pads ? -g.pad_left : 0, pads ? g.w + g.pad_right : g.w);
        Vec taps[kTaps];
        columns.template load_taps<false>(ones, zero(), taps);
        for (int s = 0; s < kTaps; ++s) divisors = add(divisors, taps[s]);
      }
      columns.set(left, 0, g.w);
      int64_t oh = begin;
      for (; oh + kRows <= end; oh += kRows) {
        window_rows<kMax, kTaps, kStride, kRows>(kind, g, input, outside, output, columns, divisors, oh, ow);
      }
      for (; oh + 2 <= end; oh += 2) {
        window_rows<kMax, kTaps, kStride, 2>(kind, g, input, outside, output, columns, divisors, oh, ow);
      }
      if (oh < end) {
        window_rows<kMax, kTaps, kStride, 1>(kind, g, input, outside, output, columns, divisors, oh, ow);
      }
    }
  }
}

// Whether it was one of these windows.
template <bool kMax>
bool small_windows(PoolKind kind, const PoolGeometry& g, const float* input, float* output) {
  if (g.kernel_h != g.kernel_w || g.stride_h != g.stride_w || g.dilation_h != 1 || g.dilation_w != 1) return false;
  const auto run = [&](auto function) __attribute__((always_inline)) {
    function(kind, g, input, output);
    return true;
  };
  if (g.kernel_w == 2 && g.stride_w == 1) return run(plane_rows<kMax, 2, 1>);
  if (g.kernel_w == 2 && g.stride_w == 2) return run(plane_rows<kMax, 2, 2>);
  if (g.kernel_w == 3 && g.stride_w == 1) return run(plane_rows<kMax, 3, 1>);
  if (g.kernel_w == 3 && g.stride_w == 2) return run(plane_rows<kMax, 3, 2>);
  return false;
}
#else
template <bool kMax>
bool small_windows(PoolKind, const PoolGeometry&, const float*, float*) {
  return false;
}
#endif

// First down the columns of the window rows, then along the row of results.
template <bool kMax>
void pool_plane(PoolKind kind, const PoolGeometry& g, const float* input, float* output, float* scratch) {
  if (one_window(g)) {
    const int64_t cells = divisor_taps(kind, -g.pad_top, g.kernel_h, 1, g.h, g.pad_top, g.pad_bottom) *
                          divisor_taps(kind, -g.pad_left, g.kernel_w, 1, g.w, g.pad_left, g.pad_right);
    const float value = reduce<kMax>(g.h * g.w, input);
    *output = kMax ? value : cells > 0 ? value / static_cast<float>(cells) : 0.0f;
    return;
  }
  if (small_windows<kMax>(kind, g, input, output)) return;
  const int64_t phase_floats = pool_phase_floats(g);
  const int64_t row_floats = g.stride_w * phase_floats;
  float* columns = scratch;
  float* phases = g.stride_w == 1 ? columns : columns + row_floats;
  float* divisors = phases + row_floats;
  if (!kMax) {
    for (int64_t ow = 0; ow < g.ow; ++ow) {
      divisors[ow] = static_cast<float>(
          divisor_taps(kind, ow * g.stride_w - g.pad_left, g.kernel_w, g.dilation_w, g.w, g.pad_left, g.pad_right));
    }
  }
  // Image columns [0, last) land at columns[pad_left...].
  const int64_t left = min_of(g.pad_left, row_floats);
  const int64_t last = min_of(g.w, row_floats - left);
  for (int64_t i = 0; i < left; ++i) columns[i] = identity<kMax>();
  for (int64_t i = left + last; i < row_floats; ++i) columns[i] = identity<kMax>();
  for (int64_t oh = 0; oh < g.oh; ++oh) {
    const int64_t top = oh * g.stride_h - g.pad_top;
    const TapRange rows = taps_inside(top, g.kernel_h, g.dilation_h, 0, g.h);
    for (int64_t x = 0; x < last; x += kWidth) {
      const int64_t lanes = last - x;
      Vec acc = broadcast(identity<kMax>());
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        const float* from = input + (top + r * g.dilation_h) * g.w + x;
        acc = join<kMax>(acc, lanes >= kWidth ? load(from) : load_first(from, lanes));
      }
      store_first(columns + left + x, acc, lanes);
    }
    if (g.stride_w == 2) {
      int64_t q = 0;
      for (; q + kWidth <= phase_floats; q += kWidth) {
        Vec even;
        Vec odd;
        deinterleave(load(columns + 2 * q), load(columns + 2 * q + kWidth), &even, &odd);
        store(phases + q, even);
        store(phases + phase_floats + q, odd);
      }
      for (; q < phase_floats; ++q) {
        phases[q] = columns[2 * q];
        phases[phase_floats + q] = columns[2 * q + 1];
      }
    } else if (g.stride_w > 2) {
      for (int64_t phase = 0; phase < g.stride_w; ++phase) {
        for (int64_t q = 0; q < phase_floats; ++q) phases[phase * phase_floats + q] = columns[q * g.stride_w + phase];
      }
    }
    const int64_t row_divisor =
        kMax ? 1 : divisor_taps(kind, top, g.kernel_h, g.dilation_h, g.h, g.pad_top, g.pad_bottom);
    for (int64_t ow = 0; ow < g.ow; ow += kWidth) {
      const int64_t lanes = g.ow - ow;
      Vec acc = broadcast(identity<kMax>());
      int64_t phase = 0;
      const float* from = phases + ow;
      for (int64_t s = 0; s < g.kernel_w; ++s) {
        acc = join<kMax>(acc, load_first(from + phase * phase_floats, lanes));
        for (phase += g.dilation_w; phase >= g.stride_w; phase -= g.stride_w) ++from;
      }
      if (!kMax) {
        const Vec divisor = mul(load_first(divisors + ow, lanes), broadcast(static_cast<float>(row_divisor)));
        acc = select(less(zero(), divisor), div(acc, divisor), zero());
      }
      store_first(output + oh * g.ow + ow, acc, lanes);
    }
  }
}

void plane(PoolKind kind, const PoolGeometry& g, const float* input, float* output, float* scratch) {
  if (kind == PoolKind::kMax) {
    pool_plane<true>(kind, g, input, output, scratch);
  } else {
    pool_plane<false>(kind, g, input, output, scratch);
  }
}

template <bool kMax, int kVecs>
TENON_CPU_INLINE void pool_window(const TapRange& rows, const TapRange& columns, int64_t row_stride,
                                  int64_t column_stride, const float* from, int64_t lanes, Vec divisor, int64_t valid,
                                  float* to) {
  Vec acc[kVecs];
#pragma GCC unroll 4
  for (int v = 0; v < kVecs; ++v) acc[v] = broadcast(identity<kMax>());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t s = columns.begin; s < columns.end; ++s) {
      const float* x = from + r * row_stride + s * column_stride;
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) acc[v] = join<kMax>(acc[v], load_first(x + v * kWidth, lanes - v * kWidth));
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVecs; ++v) {
    if (!kMax) acc[v] = select(less(zero(), divisor), div(acc[v], divisor), zero());
    if (valid < lanes) store_first(to + v * kWidth, zero(), lanes - v * kWidth);
    store_first(to + v * kWidth, acc[v], min_of(lanes, valid) - v * kWidth);
  }
}

// kTile neighbouring outputs whose columns all lie inside the image: first down each column, then across.
constexpr int kTile = 4;
template <bool kMax, int kTaps, int kStride>
TENON_CPU_INLINE void pool_tile(const TapRange& rows, int64_t row_stride, int64_t pitch, const float* from,
                                int64_t lanes, Vec divisor, int64_t valid, float* to) {
  constexpr int kColumns = (kTile - 1) * kStride + kTaps;
  Vec columns[kColumns];
#pragma GCC unroll 9
  for (int i = 0; i < kColumns; ++i) columns[i] = broadcast(identity<kMax>());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
#pragma GCC unroll 9
    for (int i = 0; i < kColumns; ++i) {
      columns[i] = join<kMax>(columns[i], load_first(from + r * row_stride + i * pitch, lanes));
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kTile; ++p) {
    Vec acc = columns[p * kStride];
#pragma GCC unroll 2
    for (int s = 1; s < kTaps; ++s) acc = join<kMax>(acc, columns[p * kStride + s]);
    if (!kMax) acc = select(less(zero(), divisor), div(acc, divisor), zero());
    if (valid < lanes) store_first(to + p * pitch, zero(), lanes);
    store_first(to + p * pitch, acc, min_of(lanes, valid));
  }
}

// kTaps and kStride are those of a row if known when compiling, with dilation 1, else 0.
template <bool kMax, int kTaps, int kStride>
void pool_pixels(PoolKind kind, const PoolGeometry& g, int64_t channels, int64_t valid, const float* input,
                 float* output, int64_t oh_begin, int64_t oh_end) {
  const int64_t row_stride = g.dilation_h * g.w * channels;
  const int64_t column_stride = g.dilation_w * channels;
  const int64_t inside_begin = ceil_div(g.pad_left, g.stride_w);
  for (int64_t oh = oh_begin; oh < oh_end; ++oh) {
    const int64_t top = oh * g.stride_h - g.pad_top;
    const TapRange rows = taps_inside(top, g.kernel_h, g.dilation_h, 0, g.h);
    const int64_t row_divisor =
        kMax ? 1 : divisor_taps(kind, top, g.kernel_h, g.dilation_h, g.h, g.pad_top, g.pad_bottom);
    for (int64_t ow = 0; ow < g.ow;) {
      const int64_t left = ow * g.stride_w - g.pad_left;
      const float* from = input + (top * g.w + left) * channels;
      float* to = output + (oh * g.ow + ow) * channels;
      int64_t c = 0;
      if constexpr (kTaps != 0) {
        const int64_t last = left + (kTile - 1) * kStride + kTaps - 1;
        if (ow >= inside_begin && last < g.w && ow + kTile <= g.ow) {
          const Vec divisor = broadcast(static_cast<float>(row_divisor * kTaps));
          for (; c + kWidth <= channels; c += kWidth) {
            pool_tile<kMax, kTaps, kStride>(rows, row_stride, channels, from + c, kWidth, divisor, valid - c, to + c);
          }
          if (c < channels) {
            pool_tile<kMax, kTaps, kStride>(rows, row_stride, channels, from + c, channels - c, divisor, valid - c,
                                            to + c);
          }
          ow += kTile;
          continue;
        }
      }
      const TapRange columns = taps_inside(left, g.kernel_w, g.dilation_w, 0, g.w);
      const int64_t cells =
          kMax ? 1 : row_divisor * divisor_taps(kind, left, g.kernel_w, g.dilation_w, g.w, g.pad_left, g.pad_right);
      const Vec divisor = broadcast(static_cast<float>(cells));
      for (; c + 4 * kWidth <= channels; c += 4 * kWidth) {
        pool_window<kMax, 4>(rows, columns, row_stride, column_stride, from + c, 4 * kWidth, divisor, valid - c,
                             to + c);
      }
      for (; c + kWidth <= channels; c += kWidth) {
        pool_window<kMax, 1>(rows, columns, row_stride, column_stride, from + c, kWidth, divisor, valid - c, to + c);
      }
      if (c < channels) {
        pool_window<kMax, 1>(rows, columns, row_stride, column_stride, from + c, channels - c, divisor, valid - c,
                             to + c);
      }
      ++ow;
    }
  }
}

template <bool kMax>
TENON_CPU_INLINE auto find_pool_pixels(const PoolGeometry& g) {
  if (g.dilation_w == 1) {
    if (g.kernel_w == 2 && g.stride_w == 1) return pool_pixels<kMax, 2, 1>;
    if (g.kernel_w == 2 && g.stride_w == 2) return pool_pixels<kMax, 2, 2>;
    if (g.kernel_w == 3 && g.stride_w == 1) return pool_pixels<kMax, 3, 1>;
    if (g.kernel_w == 3 && g.stride_w == 2) return pool_pixels<kMax, 3, 2>;
  }
  return pool_pixels<kMax, 0, 0>;
}

void pixels(PoolKind kind, const PoolGeometry& g, int64_t channels, int64_t valid, const float* input, float* output,
            int64_t oh_begin, int64_t oh_end) {
  const auto function = kind == PoolKind::kMax ? find_pool_pixels<true>(g) : find_pool_pixels<false>(g);
  function(kind, g, channels, valid, input, output, oh_begin, oh_end);
}

float sum(int64_t count, const float* input) { return reduce<false>(count, input); }

void sum_pixels(int64_t count, int64_t lanes, int64_t pitch, float divisor, const float* input, float* output) {
  for (int64_t c = 0; c < lanes; c += kWidth) {
    Vec even = zero();
    Vec odd = zero();
    int64_t i = 0;
    for (; i + 2 <= count; i += 2) {
      even = add(even, load_first(input + i * pitch + c, lanes - c));
      odd = add(odd, load_first(input + (i + 1) * pitch + c, lanes - c));
    }
    if (i < count) even = add(even, load_first(input + i * pitch + c, lanes - c));
    store_first(output + c, div(add(even, odd), broadcast(divisor)), lanes - c);
  }
}

}  // namespace

const PoolTable kPoolTable = {plane, pixels, sum, sum_pixels};

}  // namespace tenon::cpu::TENON_CPU_ISA
