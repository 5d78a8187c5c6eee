// What windows of `kTaps` columns read in a row of an image, for one vector of outputs. Included by files that are
// compiled for one instruction set; there is none of it without masked loads.
#ifndef TENON_KERNELS_CPU_INTERNAL_COLUMNS_H_
#define TENON_KERNELS_CPU_INTERNAL_COLUMNS_H_

#include "kernels/cpu/internal/simd.h"

#if defined(__AVX2__)
namespace tenon::cpu::TENON_CPU_ISA {

// Which lanes of a vector exist.
#if defined(__AVX512F__)
using Lanes = __mmask16;
TENON_CPU_INLINE Lanes lanes_between(int64_t begin, int64_t end) {
  return static_cast<Lanes>(first_lanes(end) & ~first_lanes(begin));
}
// The others are 0 and their memory is not touched.
TENON_CPU_INLINE Vec load_lanes(const float* p, Lanes lanes) { return _mm512_maskz_loadu_ps(lanes, p); }
TENON_CPU_INLINE Vec fill_lanes(Vec x, Lanes lanes, Vec fill) { return _mm512_mask_blend_ps(lanes, fill, x); }
#else
using Lanes = __m256i;
TENON_CPU_INLINE Lanes lanes_between(int64_t begin, int64_t end) {
  return _mm256_andnot_si256(first_lanes(begin), first_lanes(end));
}
TENON_CPU_INLINE Vec load_lanes(const float* p, Lanes lanes) { return _mm256_maskload_ps(p, lanes); }
TENON_CPU_INLINE Vec fill_lanes(Vec x, Lanes lanes, Vec fill) {
  return _mm256_blendv_ps(fill, x, _mm256_castsi256_ps(lanes));
}
#endif

// For stride 1 there is one vector a tap; for stride 2 one pair of vectors for each even tap s, whose even columns are
// for tap s and odd ones for tap s + 1.
template <int kTaps, int kStride>
struct Columns {
  static_assert(kStride == 1 || kStride == 2);
  static constexpr int kVectors = kStride == 1 ? kTaps : (kTaps + 1) / 2 * 2;
  static constexpr int kFloats = (kStride == 1 ? kTaps - 1 : (kTaps - 1) / 2 * 2 + kWidth) + kWidth;  // from tap 0 on
  Lanes lanes[kVectors];

  TENON_CPU_INLINE static int64_t shift(int vector) {
    return kStride == 1 ? vector : vector / 2 * 2 + vector % 2 * kWidth;
  }
  // The columns [low, high) exist; `begin` is that of tap 0 of the first output.
  TENON_CPU_INLINE void set(int64_t begin, int64_t low, int64_t high) {
#pragma GCC unroll 6
    for (int v = 0; v < kVectors; ++v) lanes[v] = lanes_between(low - begin - shift(v), high - begin - shift(v));
  }
  // `from` is at column `begin` of a row. Columns that do not exist are `fill`, or 0 without kFill.
  template <bool kFill>
  TENON_CPU_INLINE void load_taps(const float* from, Vec fill, Vec (&taps)[kTaps]) const {
    const auto vector = [&](int v) __attribute__((always_inline)) {
      const Vec x = load_lanes(from + shift(v), lanes[v]);
      return kFill ? fill_lanes(x, lanes[v], fill) : x;
    };
    if constexpr (kStride == 1) {
#pragma GCC unroll 5
      for (int s = 0; s < kTaps; ++s) taps[s] = vector(s);
    } else {
#pragma GCC unroll 3
      for (int s = 0; s < kTaps; s += 2) {
        Vec odd;
        deinterleave(vector(s), vector(s + 1), &taps[s], &odd);
        if (s + 1 < kTaps) taps[s + 1] = odd;
      }
    }
  }
};

}  // namespace tenon::cpu::TENON_CPU_ISA
#endif

#endif  // TENON_KERNELS_CPU_INTERNAL_COLUMNS_H_
