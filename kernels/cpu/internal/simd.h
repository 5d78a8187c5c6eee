// One vector type for the three instruction sets. A file that includes this header is compiled once per set, with
// TENON_CPU_ISA = baseline, avx2 or avx512 naming the namespace of everything in it. Such files must not use
// functions of the standard library that may be emitted out of line.
#ifndef TENON_KERNELS_CPU_INTERNAL_SIMD_H_
#define TENON_KERNELS_CPU_INTERNAL_SIMD_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/inline.h"

#ifndef TENON_CPU_ISA
#error "TENON_CPU_ISA must name the instruction set: baseline, avx2 or avx512"
#endif

namespace tenon::cpu::TENON_CPU_ISA {

TENON_CPU_INLINE int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
TENON_CPU_INLINE int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
TENON_CPU_INLINE int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
TENON_CPU_INLINE int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

#if defined(__AVX512F__)

constexpr int kWidth = 16;
using Vec = __m512;
using VecI = __m512i;
using Mask = __mmask16;

TENON_CPU_INLINE Vec zero() { return _mm512_setzero_ps(); }
TENON_CPU_INLINE Vec broadcast(float x) { return _mm512_set1_ps(x); }
TENON_CPU_INLINE Vec load(const float* p) { return _mm512_loadu_ps(p); }
TENON_CPU_INLINE void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
TENON_CPU_INLINE float first_float(Vec v) { return _mm512_cvtss_f32(v); }
TENON_CPU_INLINE Mask first_lanes(int64_t n) {
  return n >= 16 ? static_cast<Mask>(0xffff) : n <= 0 ? static_cast<Mask>(0) : static_cast<Mask>((1u << n) - 1);
}
// The first n lanes; the others are 0 and their memory is not touched. n may be any number.
TENON_CPU_INLINE Vec load_first(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
TENON_CPU_INLINE void store_first(float* p, Vec v, int64_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), v); }
TENON_CPU_INLINE Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
TENON_CPU_INLINE Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
TENON_CPU_INLINE Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
TENON_CPU_INLINE Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
TENON_CPU_INLINE Vec sqrt(Vec a) { return _mm512_sqrt_ps(a); }
// a * b + c
TENON_CPU_INLINE Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
// c - a * b
TENON_CPU_INLINE Vec fnma(Vec a, Vec b, Vec c) { return _mm512_fnmadd_ps(a, b, c); }
// As SSE defines them: b if either is NaN.
TENON_CPU_INLINE Vec min_second(Vec a, Vec b) { return _mm512_min_ps(a, b); }
TENON_CPU_INLINE Vec max_second(Vec a, Vec b) { return _mm512_max_ps(a, b); }
TENON_CPU_INLINE Mask less(Vec a, Vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
TENON_CPU_INLINE Mask is_nan(Vec a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
// mask ? a : b
TENON_CPU_INLINE Vec select(Mask mask, Vec a, Vec b) { return _mm512_mask_blend_ps(mask, b, a); }
TENON_CPU_INLINE VecI bits(Vec a) { return _mm512_castps_si512(a); }
TENON_CPU_INLINE Vec from_bits(VecI a) { return _mm512_castsi512_ps(a); }
TENON_CPU_INLINE VecI broadcast_i(int32_t x) { return _mm512_set1_epi32(x); }
TENON_CPU_INLINE VecI add_i(VecI a, VecI b) { return _mm512_add_epi32(a, b); }
TENON_CPU_INLINE VecI sub_i(VecI a, VecI b) { return _mm512_sub_epi32(a, b); }
TENON_CPU_INLINE VecI and_i(VecI a, VecI b) { return _mm512_and_si512(a, b); }
TENON_CPU_INLINE VecI or_i(VecI a, VecI b) { return _mm512_or_si512(a, b); }
TENON_CPU_INLINE VecI xor_i(VecI a, VecI b) { return _mm512_xor_si512(a, b); }
template <int kBits>
TENON_CPU_INLINE VecI shift_left(VecI a) {
  return _mm512_slli_epi32(a, kBits);
}
template <int kBits>
TENON_CPU_INLINE VecI shift_right(VecI a) {
  return _mm512_srai_epi32(a, kBits);
}
// Rounds to the nearest integer, ties to even.
TENON_CPU_INLINE VecI round_to_int(Vec a) { return _mm512_cvtps_epi32(a); }
TENON_CPU_INLINE Vec to_float(VecI a) { return _mm512_cvtepi32_ps(a); }
// Floats kShift to kShift + kWidth of the 2 * kWidth in a, b.
template <int kShift>
TENON_CPU_INLINE Vec shifted(Vec a, Vec b) {
  return from_bits(_mm512_alignr_epi32(bits(b), bits(a), kShift));
}
// The even and the odd floats of the 2 * kWidth in a, b.
TENON_CPU_INLINE void deinterleave(Vec a, Vec b, Vec* even, Vec* odd) {
  const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  *even = _mm512_permutex2var_ps(a, evens, b);
  *odd = _mm512_permutex2var_ps(a, _mm512_add_epi32(evens, _mm512_set1_epi32(1)), b);
}

#elif defined(__AVX2__)

constexpr int kWidth = 8;
using Vec = __m256;
using VecI = __m256i;
using Mask = __m256;

TENON_CPU_INLINE Vec zero() { return _mm256_setzero_ps(); }
TENON_CPU_INLINE Vec broadcast(float x) { return _mm256_set1_ps(x); }
TENON_CPU_INLINE Vec load(const float* p) { return _mm256_loadu_ps(p); }
TENON_CPU_INLINE void store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
TENON_CPU_INLINE float first_float(Vec v) { return _mm256_cvtss_f32(v); }
TENON_CPU_INLINE __m256i first_lanes(int64_t n) {
  const int count = n >= 8 ? 8 : n <= 0 ? 0 : static_cast<int>(n);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
TENON_CPU_INLINE Vec load_first(const float* p, int64_t n) {
  return n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, first_lanes(n));
}
TENON_CPU_INLINE void store_first(float* p, Vec v, int64_t n) {
  if (n >= 8) {
    _mm256_storeu_ps(p, v);
  } else {
    _mm256_maskstore_ps(p, first_lanes(n), v);
  }
}
TENON_CPU_INLINE Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
TENON_CPU_INLINE Vec sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
TENON_CPU_INLINE Vec mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
TENON_CPU_INLINE Vec div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
TENON_CPU_INLINE Vec sqrt(Vec a) { return _mm256_sqrt_ps(a); }
TENON_CPU_INLINE Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
TENON_CPU_INLINE Vec fnma(Vec a, Vec b, Vec c) { return _mm256_fnmadd_ps(a, b, c); }
TENON_CPU_INLINE Vec min_second(Vec a, Vec b) { return _mm256_min_ps(a, b); }
TENON_CPU_INLINE Vec max_second(Vec a, Vec b) { return _mm256_max_ps(a, b); }
TENON_CPU_INLINE Mask less(Vec a, Vec b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
TENON_CPU_INLINE Mask is_nan(Vec a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
TENON_CPU_INLINE Vec select(Mask mask, Vec a, Vec b) { return _mm256_blendv_ps(b, a, mask); }
TENON_CPU_INLINE VecI bits(Vec a) { return _mm256_castps_si256(a); }
TENON_CPU_INLINE Vec from_bits(VecI a) { return _mm256_castsi256_ps(a); }
TENON_CPU_INLINE VecI broadcast_i(int32_t x) { return _mm256_set1_epi32(x); }
TENON_CPU_INLINE VecI add_i(VecI a, VecI b) { return _mm256_add_epi32(a, b); }
TENON_CPU_INLINE VecI sub_i(VecI a, VecI b) { return _mm256_sub_epi32(a, b); }
TENON_CPU_INLINE VecI and_i(VecI a, VecI b) { return _mm256_and_si256(a, b); }
TENON_CPU_INLINE VecI or_i(VecI a, VecI b) { return _mm256_or_si256(a, b); }
TENON_CPU_INLINE VecI xor_i(VecI a, VecI b) { return _mm256_xor_si256(a, b); }
template <int kBits>
TENON_CPU_INLINE VecI shift_left(VecI a) {
  return _mm256_slli_epi32(a, kBits);
}
template <int kBits>
TENON_CPU_INLINE VecI shift_right(VecI a) {
  return _mm256_srai_epi32(a, kBits);
}
TENON_CPU_INLINE VecI round_to_int(Vec a) { return _mm256_cvtps_epi32(a); }
TENON_CPU_INLINE Vec to_float(VecI a) { return _mm256_cvtepi32_ps(a); }
template <int kShift>
TENON_CPU_INLINE Vec shifted(Vec a, Vec b) {
  const __m256i middle = _mm256_permute2x128_si256(bits(a), bits(b), 0x21);
  if constexpr (kShift < 4) return from_bits(_mm256_alignr_epi8(middle, bits(a), 4 * kShift));
  return from_bits(_mm256_alignr_epi8(bits(b), middle, 4 * (kShift - 4)));
}
TENON_CPU_INLINE void deinterleave(Vec a, Vec b, Vec* even, Vec* odd) {
  const __m256 low = _mm256_permute2f128_ps(a, b, 0x20);
  const __m256 high = _mm256_permute2f128_ps(a, b, 0x31);
  *even = _mm256_shuffle_ps(low, high, 0x88);
  *odd = _mm256_shuffle_ps(low, high, 0xdd);
}

#else

constexpr int kWidth = 4;
using Vec = __m128;
using VecI = __m128i;
using Mask = __m128;

TENON_CPU_INLINE Vec zero() { return _mm_setzero_ps(); }
TENON_CPU_INLINE Vec broadcast(float x) { return _mm_set1_ps(x); }
TENON_CPU_INLINE Vec load(const float* p) { return _mm_loadu_ps(p); }
TENON_CPU_INLINE void store(float* p, Vec v) { _mm_storeu_ps(p, v); }
TENON_CPU_INLINE float first_float(Vec v) { return _mm_cvtss_f32(v); }
TENON_CPU_INLINE Vec load_first(const float* p, int64_t n) {
  if (n >= 4) return _mm_loadu_ps(p);
  if (n <= 0) return _mm_setzero_ps();
  if (n == 1) return _mm_load_ss(p);
  const __m128 pair = _mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  return n == 2 ? pair : _mm_movelh_ps(pair, _mm_load_ss(p + 2));
}
TENON_CPU_INLINE void store_first(float* p, Vec v, int64_t n) {
  if (n >= 4) {
    _mm_storeu_ps(p, v);
  } else if (n == 1) {
    _mm_store_ss(p, v);
  } else if (n >= 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), v);
    if (n == 3) _mm_store_ss(p + 2, _mm_movehl_ps(v, v));
  }
}
TENON_CPU_INLINE Vec add(Vec a, Vec b) { return _mm_add_ps(a, b); }
TENON_CPU_INLINE Vec sub(Vec a, Vec b) { return _mm_sub_ps(a, b); }
TENON_CPU_INLINE Vec mul(Vec a, Vec b) { return _mm_mul_ps(a, b); }
TENON_CPU_INLINE Vec div(Vec a, Vec b) { return _mm_div_ps(a, b); }
TENON_CPU_INLINE Vec sqrt(Vec a) { return _mm_sqrt_ps(a); }
TENON_CPU_INLINE Vec fma(Vec a, Vec b, Vec c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
TENON_CPU_INLINE Vec fnma(Vec a, Vec b, Vec c) { return _mm_sub_ps(c, _mm_mul_ps(a, b)); }
TENON_CPU_INLINE Vec min_second(Vec a, Vec b) { return _mm_min_ps(a, b); }
TENON_CPU_INLINE Vec max_second(Vec a, Vec b) { return _mm_max_ps(a, b); }
TENON_CPU_INLINE Mask less(Vec a, Vec b) { return _mm_cmplt_ps(a, b); }
TENON_CPU_INLINE Mask is_nan(Vec a) { return _mm_cmpunord_ps(a, a); }
TENON_CPU_INLINE Vec select(Mask mask, Vec a, Vec b) { return _mm_or_ps(_mm_and_ps(mask, a), _mm_andnot_ps(mask, b)); }
TENON_CPU_INLINE VecI bits(Vec a) { return _mm_castps_si128(a); }
TENON_CPU_INLINE Vec from_bits(VecI a) { return _mm_castsi128_ps(a); }
TENON_CPU_INLINE VecI broadcast_i(int32_t x) { return _mm_set1_epi32(x); }
TENON_CPU_INLINE VecI add_i(VecI a, VecI b) { return _mm_add_epi32(a, b); }
TENON_CPU_INLINE VecI sub_i(VecI a, VecI b) { return _mm_sub_epi32(a, b); }
TENON_CPU_INLINE VecI and_i(VecI a, VecI b) { return _mm_and_si128(a, b); }
TENON_CPU_INLINE VecI or_i(VecI a, VecI b) { return _mm_or_si128(a, b); }
TENON_CPU_INLINE VecI xor_i(VecI a, VecI b) { return _mm_xor_si128(a, b); }
template <int kBits>
TENON_CPU_INLINE VecI shift_left(VecI a) {
  return _mm_slli_epi32(a, kBits);
}
template <int kBits>
TENON_CPU_INLINE VecI shift_right(VecI a) {
  return _mm_srai_epi32(a, kBits);
}
TENON_CPU_INLINE VecI round_to_int(Vec a) { return _mm_cvtps_epi32(a); }
TENON_CPU_INLINE Vec to_float(VecI a) { return _mm_cvtepi32_ps(a); }
template <int kShift>
TENON_CPU_INLINE Vec shifted(Vec a, Vec b) {
  return from_bits(or_i(_mm_srli_si128(bits(a), 4 * kShift), _mm_slli_si128(bits(b), 16 - 4 * kShift)));
}
TENON_CPU_INLINE void deinterleave(Vec a, Vec b, Vec* even, Vec* odd) {
  *even = _mm_shuffle_ps(a, b, 0x88);
  *odd = _mm_shuffle_ps(a, b, 0xdd);
}

#endif

// NaN in x propagates through both; the bound must not be NaN.
TENON_CPU_INLINE Vec at_least(Vec bound, Vec x) { return max_second(bound, x); }
TENON_CPU_INLINE Vec at_most(Vec bound, Vec x) { return min_second(bound, x); }
// NaN if either is NaN.
TENON_CPU_INLINE Vec max_nan(Vec a, Vec b) { return select(is_nan(a), a, max_second(a, b)); }
TENON_CPU_INLINE Vec min_nan(Vec a, Vec b) { return select(is_nan(a), a, min_second(a, b)); }

}  // namespace tenon::cpu::TENON_CPU_ISA

#endif  // TENON_KERNELS_CPU_INTERNAL_SIMD_H_
