// pool for one instruction set.
#include "kernels/cpu/internal/pool_isa.h"

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

// First down the columns of the window rows, then along the row of results.
template <bool kMax>
void pool_plane(PoolKind kind, const PoolGeometry& g, const float* input, float* output, float* scratch) {
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

template <bool kMax>
void pool_pixels(PoolKind kind, const PoolGeometry& g, int64_t channels, int64_t valid, const float* input,
                 float* output, int64_t oh_begin, int64_t oh_end) {
  const int64_t row_stride = g.dilation_h * g.w * channels;
  const int64_t column_stride = g.dilation_w * channels;
  for (int64_t oh = oh_begin; oh < oh_end; ++oh) {
    const int64_t top = oh * g.stride_h - g.pad_top;
    const TapRange rows = taps_inside(top, g.kernel_h, g.dilation_h, 0, g.h);
    const int64_t row_divisor =
        kMax ? 1 : divisor_taps(kind, top, g.kernel_h, g.dilation_h, g.h, g.pad_top, g.pad_bottom);
    for (int64_t ow = 0; ow < g.ow; ++ow) {
      const int64_t left = ow * g.stride_w - g.pad_left;
      const TapRange columns = taps_inside(left, g.kernel_w, g.dilation_w, 0, g.w);
      const int64_t cells =
          kMax ? 1 : row_divisor * divisor_taps(kind, left, g.kernel_w, g.dilation_w, g.w, g.pad_left, g.pad_right);
      const Vec divisor = broadcast(static_cast<float>(cells));
      const float* from = input + (top * g.w + left) * channels;
      float* to = output + (oh * g.ow + ow) * channels;
      int64_t c = 0;
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
    }
  }
}

void pixels(PoolKind kind, const PoolGeometry& g, int64_t channels, int64_t valid, const float* input, float* output,
            int64_t oh_begin, int64_t oh_end) {
  if (kind == PoolKind::kMax) {
    pool_pixels<true>(kind, g, channels, valid, input, output, oh_begin, oh_end);
  } else {
    pool_pixels<false>(kind, g, channels, valid, input, output, oh_begin, oh_end);
  }
}

float sum(int64_t count, const float* input) {
  Vec acc[4] = {zero(), zero(), zero(), zero()};
  int64_t i = 0;
  for (; i + 4 * kWidth <= count; i += 4 * kWidth) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) acc[v] = add(acc[v], load(input + i + v * kWidth));
  }
  for (; i < count; i += kWidth) acc[0] = add(acc[0], load_first(input + i, count - i));
  float lanes[kWidth];
  store(lanes, add(add(acc[0], acc[1]), add(acc[2], acc[3])));
  float total = 0.0f;
  for (int lane = 0; lane < kWidth; ++lane) total += lanes[lane];
  return total;
}

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
