// Moving bits: a type of each size, and the matrix transpose that transpose and reformat share. Not compiled per
// instruction set: memory speed bounds all of it.
#ifndef TENON_KERNELS_CPU_INTERNAL_MOVE_H_
#define TENON_KERNELS_CPU_INTERNAL_MOVE_H_

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tenon::cpu {

// Calls function(T{}) with the unsigned type of `size` bytes (1, 2, 4 or 8).
template <class Function>
void with_element(int size, const Function& function) {
  switch (size) {
    case 1:
      return function(uint8_t{});
    case 2:
      return function(uint16_t{});
    case 4:
      return function(uint32_t{});
    default:
      return function(uint64_t{});
  }
}

inline void transpose_4x4(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
  __m128i rows[4];
  for (int i = 0; i < 4; ++i) rows[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * from_stride));
  const __m128i a = _mm_unpacklo_epi32(rows[0], rows[1]);
  const __m128i b = _mm_unpackhi_epi32(rows[0], rows[1]);
  const __m128i c = _mm_unpacklo_epi32(rows[2], rows[3]);
  const __m128i d = _mm_unpackhi_epi32(rows[2], rows[3]);
  const auto put = [&](int i, __m128i row) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * to_stride), row); };
  put(0, _mm_unpacklo_epi64(a, c));
  put(1, _mm_unpackhi_epi64(a, c));
  put(2, _mm_unpacklo_epi64(b, d));
  put(3, _mm_unpackhi_epi64(b, d));
}

// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns; in tiles that use cache lines whole.
template <class T>
void transpose_matrix(int64_t rows, int64_t columns, const T* from, int64_t from_stride, T* to, int64_t to_stride) {
  constexpr int64_t kTile = 16;
  for (int64_t j0 = 0; j0 < columns; j0 += kTile) {
    const int64_t j1 = std::min(j0 + kTile, columns);
    for (int64_t i0 = 0; i0 < rows; i0 += kTile) {
      const int64_t i1 = std::min(i0 + kTile, rows);
      if constexpr (std::is_same_v<T, uint32_t>) {
        if ((i1 - i0) % 4 == 0 && (j1 - j0) % 4 == 0) {
          for (int64_t j = j0; j < j1; j += 4) {
            for (int64_t i = i0; i < i1; i += 4) {
              transpose_4x4(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
            }
          }
          continue;
        }
      }
      for (int64_t j = j0; j < j1; ++j) {
        for (int64_t i = i0; i < i1; ++i) to[j * to_stride + i] = from[i * from_stride + j];
      }
    }
  }
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_MOVE_H_
