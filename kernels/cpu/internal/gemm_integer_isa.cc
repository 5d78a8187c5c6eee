// Integer matrix product for one instruction set: tiles of kTileRows rows and one panel of columns in registers.
#include "kernels/cpu/internal/gemm_integer_isa.h"

#include "kernels/cpu/internal/simd.h"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int kVectors = static_cast<int>(kIntegerPanel) / kWidth;
constexpr int kTileRows = kWidth / 2;  // 8 accumulators in every instruction set

#if defined(__AVX512F__)
TENON_CPU_INLINE VecI load_i(const void* p) { return _mm512_loadu_si512(p); }
TENON_CPU_INLINE void store_i(void* p, VecI v) { _mm512_storeu_si512(p, v); }
TENON_CPU_INLINE VecI multiply_pairs(VecI a, VecI b) { return _mm512_madd_epi16(a, b); }
#elif defined(__AVX2__)
TENON_CPU_INLINE VecI load_i(const void* p) { return _mm256_loadu_si256(static_cast<const VecI*>(p)); }
TENON_CPU_INLINE void store_i(void* p, VecI v) { _mm256_storeu_si256(static_cast<VecI*>(p), v); }
TENON_CPU_INLINE VecI multiply_pairs(VecI a, VecI b) { return _mm256_madd_epi16(a, b); }
#else
TENON_CPU_INLINE VecI load_i(const void* p) { return _mm_loadu_si128(static_cast<const VecI*>(p)); }
TENON_CPU_INLINE void store_i(void* p, VecI v) { _mm_storeu_si128(static_cast<VecI*>(p), v); }
TENON_CPU_INLINE VecI multiply_pairs(VecI a, VecI b) { return _mm_madd_epi16(a, b); }
#endif

template <int kRows>
TENON_CPU_INLINE void tile(int64_t pairs, const int16_t* a, int64_t a_stride, const int16_t* panel, int32_t* c,
                           int64_t ldc) {
  VecI sums[kRows][kVectors];
  for (int row = 0; row < kRows; ++row) {
    for (int v = 0; v < kVectors; ++v) sums[row][v] = load_i(c + row * ldc + v * kWidth);
  }
  for (int64_t pair = 0; pair < pairs; ++pair) {
    VecI b[kVectors];
    for (int v = 0; v < kVectors; ++v) b[v] = load_i(panel + (pair * kIntegerPanel + v * kWidth) * 2);
    for (int row = 0; row < kRows; ++row) {
      int32_t factors;
      __builtin_memcpy(&factors, a + row * a_stride + pair * 2, sizeof factors);
      const VecI both = broadcast_i(factors);
      for (int v = 0; v < kVectors; ++v) sums[row][v] = add_i(sums[row][v], multiply_pairs(both, b[v]));
    }
  }
  for (int row = 0; row < kRows; ++row) {
    for (int v = 0; v < kVectors; ++v) store_i(c + row * ldc + v * kWidth, sums[row][v]);
  }
}

void whole_panel(int64_t rows, int64_t pairs, const int16_t* a, int64_t a_stride, const int16_t* panel, int32_t* c,
                 int64_t ldc) {
  int64_t row = 0;
  for (; row + kTileRows <= rows; row += kTileRows) {
    tile<kTileRows>(pairs, a + row * a_stride, a_stride, panel, c + row * ldc, ldc);
  }
  for (; row < rows; ++row) tile<1>(pairs, a + row * a_stride, a_stride, panel, c + row * ldc, ldc);
}

void panel(int64_t rows, int64_t columns, int64_t pairs, const int16_t* a, int64_t a_stride, const int16_t* b,
           int32_t* c, int64_t ldc) {
  if (columns == kIntegerPanel) return whole_panel(rows, pairs, a, a_stride, b, c, ldc);
  int32_t block[kTileRows * kIntegerPanel];
  for (int64_t row = 0; row < rows; row += kTileRows) {
    const int64_t count = min_of(kTileRows, rows - row);
    for (int64_t i = 0; i < count * kIntegerPanel; ++i) block[i] = 0;
    whole_panel(count, pairs, a + row * a_stride, a_stride, b, block, kIntegerPanel);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t n = 0; n < columns; ++n) {
        int32_t& sum = c[(row + i) * ldc + n];
        sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(block[i * kIntegerPanel + n]));
      }
    }
  }
}

}  // namespace

const IntegerGemmTable kIntegerGemmTable = {panel};

}  // namespace tenon::cpu::TENON_CPU_ISA
