// Integer matrix product on 16-bit factors: c[m][n] += sum over k of a[m][k] * b[k][n], modulo 2^32.
//
// Factors are 8-bit numbers with their zero points taken off, so they lie in [-255, 255] and sums of two products fit
// into 32 bits, which is what the instruction for it (pmaddwd) adds at once. Pairs of k therefore lie side by side, and
// an odd k is filled up with a 0.
#ifndef TENON_KERNELS_CPU_GEMM_INTEGER_H_
#define TENON_KERNELS_CPU_GEMM_INTEGER_H_

#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

constexpr int64_t kIntegerPanel = 16;  // columns of B that are packed together

constexpr int64_t integer_pairs(int64_t k) { return (k + 1) / 2; }

// Writes columns [n, n + columns) of B, columns <= kIntegerPanel, for pairs [begin, end) of k to
// panel[pair - begin][kIntegerPanel][2]. Columns that are not there may hold anything.
using IntegerPanelPacker = void (*)(const void* context, int64_t n, int64_t columns, int64_t begin, int64_t end,
                                    int16_t* panel);

struct IntegerGemm {
  int64_t m = 0, n = 0, k = 0;
  const int16_t* a = nullptr;  // [m][integer_pairs(k)][2], dense
  IntegerPanelPacker pack_b = nullptr;
  const void* context = nullptr;
  int32_t* c = nullptr;  // [m][ldc]
  int64_t ldc = 0;
};

// Bytes of scratch memory for `threads` threads; its contents are undefined before and after.
int64_t gemm_integer_scratch(int64_t threads) noexcept;

// Adds the product to c. REQUIRES: scratch has gemm_integer_scratch(parallel.threads) bytes, aligned to 64;
// isa <= detect_isa().
void gemm_integer(const IntegerGemm& job, void* scratch, const Parallel& parallel, Isa isa) noexcept;

// B in memory as 8-bit numbers with strides, less their zero points: the context of the packer below. A stride may be
// 0.
template <class T>
struct IntegerMatrix {
  const T* data = nullptr;
  int64_t rows = 0;
  int64_t row_stride = 0, column_stride = 0;
  const T* zero_points = nullptr;  // null: all 0
  int64_t zero_row_stride = 0, zero_column_stride = 0;

  int16_t at(int64_t row, int64_t column) const {
    const int value = data[row * row_stride + column * column_stride];
    if (zero_points == nullptr) return static_cast<int16_t>(value);
    return static_cast<int16_t>(value - zero_points[row * zero_row_stride + column * zero_column_stride]);
  }
};

// T: uint8_t or int8_t; `context` is an IntegerMatrix<T>.
template <class T>
void pack_integer_panel(const void* context, int64_t n, int64_t columns, int64_t begin, int64_t end, int16_t* panel);

// Rows [begin, end) of A = `matrix` with k columns to packed[row][integer_pairs(k)][2].
template <class T>
void pack_integer_rows(const IntegerMatrix<T>& matrix, int64_t k, int64_t begin, int64_t end, int16_t* packed);

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_GEMM_INTEGER_H_
