// cast for one instruction set.
#include "kernels/cpu/internal/cast_isa.h"

#include <immintrin.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

int64_t f16_to_f32(int64_t count, const uint16_t* from, float* to) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
#else
  static_cast<void>(count), static_cast<void>(from), static_cast<void>(to);
#endif
  return i;
}

int64_t f32_to_f16(int64_t count, const float* from, uint16_t* to) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), half);
  }
#else
  static_cast<void>(count), static_cast<void>(from), static_cast<void>(to);
#endif
  return i;
}

}  // namespace

const CastTable kCastTable = {f16_to_f32, f32_to_f16};

}  // namespace tenon::cpu::TENON_CPU_ISA
