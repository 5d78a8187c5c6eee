// The register tile under gemm and conv2d: kTileRows x kTileColumns sums held in vector registers. Sums start from 0 or
// from what an earlier call stored, and grow by one product at a time, so splitting the reduction changes no bit.
#ifndef TENON_KERNELS_CPU_INTERNAL_TILE_H_
#define TENON_KERNELS_CPU_INTERNAL_TILE_H_

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/internal/math.h"
#include "kernels/cpu/internal/simd.h"

namespace tenon::cpu::TENON_CPU_ISA {

// AVX-512 has 32 registers: 28 sums, 2 of B, 1 broadcast. The others have 16: 12 sums, 2 of B, 1 broadcast.
constexpr int kTileRows = kWidth == 16 ? 14 : 6;
constexpr int kTileVecs = 2;
constexpr int kTileColumns = kTileVecs * kWidth;

struct TileOutput {
  float* c;
  int64_t row_stride;
  int64_t vec_stride;        // from one vector of columns to the next
  int64_t columns;           // columns that exist in memory; the tile's other columns are neither read nor written
  bool resume;               // start from the sums in c
  bool finish;               // add bias and residual and apply the activation
  const float* row_bias;     // null, or a value a row
  const float* column_bias;  // null, or a value a column, `bias_columns` of them
  int64_t bias_columns;      // fewer than `columns` in the last block of a blocked layout
  const float* residual;     // null, or laid out as c
  Epilogue::Kind kind;
  float alpha;
  float lo;
  float hi;
};

TENON_CPU_INLINE Vec activate(Vec x, Epilogue::Kind kind, float alpha, float lo, float hi) {
  if (kind == Epilogue::Kind::kClip) return at_most(broadcast(hi), at_least(broadcast(lo), x));
  if (kind == Epilogue::Kind::kLeaky) return select(less(zero(), x), x, mul(broadcast(alpha), x));
  if (kind == Epilogue::Kind::kLogistic) return logistic(x);
  if (kind == Epilogue::Kind::kSwish) return swish(x);
  if (kind == Epilogue::Kind::kGelu) return gelu(x);
  if (kind == Epilogue::Kind::kGeluTanh) return gelu_tanh(x);
  return x;
}

// relu is written as a leaky slope of 0 by some callers; the product alpha * -inf would be NaN.
TENON_CPU_INLINE void set_epilogue(const Epilogue& epilogue, TileOutput* out) {
  const bool relu = epilogue.kind == Epilogue::Kind::kLeaky && epilogue.alpha == 0.0f;
  out->kind = relu ? Epilogue::Kind::kClip : epilogue.kind;
  out->alpha = epilogue.alpha;
  out->lo = relu ? 0.0f : epilogue.lo;
  out->hi = relu ? __builtin_inff() : epilogue.hi;
}

template <int kRows, int kVecs>
TENON_CPU_INLINE void begin_tile(const TileOutput& out, Vec (&acc)[kRows][kVecs]) {
  if (out.resume) {
#pragma GCC unroll 14
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) {
        const float* c = out.c + r * out.row_stride + v * out.vec_stride;
        acc[r][v] = v == kVecs - 1 ? load_first(c, out.columns - v * kWidth) : load(c);
      }
    }
  } else {
#pragma GCC unroll 14
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) acc[r][v] = zero();
    }
  }
}

template <int kRows, int kVecs>
TENON_CPU_INLINE void end_tile(const TileOutput& out, Vec (&acc)[kRows][kVecs]) {
  const int64_t tail = out.columns - (kVecs - 1) * kWidth;
  if (out.finish) {
    if (out.row_bias != nullptr) {
#pragma GCC unroll 14
      for (int r = 0; r < kRows; ++r) {
        const Vec bias = broadcast(out.row_bias[r]);
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) acc[r][v] = add(acc[r][v], bias);
      }
    }
    if (out.column_bias != nullptr) {
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) {
        const float* p = out.column_bias + v * kWidth;
        const Vec bias = load_first(p, out.bias_columns - v * kWidth);
#pragma GCC unroll 14
        for (int r = 0; r < kRows; ++r) acc[r][v] = add(acc[r][v], bias);
      }
    }
    if (out.residual != nullptr) {
#pragma GCC unroll 14
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) {
          const float* p = out.residual + r * out.row_stride + v * out.vec_stride;
          acc[r][v] = add(acc[r][v], v == kVecs - 1 ? load_first(p, tail) : load(p));
        }
      }
    }
    if (out.kind == Epilogue::Kind::kClip) {
      const Vec lo = broadcast(out.lo);
      const Vec hi = broadcast(out.hi);
#pragma GCC unroll 14
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) acc[r][v] = at_most(hi, at_least(lo, acc[r][v]));
      }
    } else if (out.kind == Epilogue::Kind::kLeaky) {
      const Vec alpha = broadcast(out.alpha);
#pragma GCC unroll 14
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) acc[r][v] = select(less(zero(), acc[r][v]), acc[r][v], mul(alpha, acc[r][v]));
      }
    } else if (out.kind != Epilogue::Kind::kNone) {
      // Through memory: exp needs registers, and its code is long.
      alignas(64) float sums[kRows * kVecs * kWidth];
#pragma GCC unroll 14
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) store(sums + (r * kVecs + v) * kWidth, acc[r][v]);
      }
#pragma GCC unroll 1
      for (int i = 0; i < kRows * kVecs * kWidth; i += kWidth) {
        store(sums + i, activate(load(sums + i), out.kind, 0.0f, 0.0f, 0.0f));
      }
#pragma GCC unroll 14
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) acc[r][v] = load(sums + (r * kVecs + v) * kWidth);
      }
    }
  }
  if (tail >= kWidth) {
#pragma GCC unroll 14
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVecs; ++v) store(out.c + r * out.row_stride + v * out.vec_stride, acc[r][v]);
    }
    return;
  }
#pragma GCC unroll 14
  for (int r = 0; r < kRows; ++r) {
    float* c = out.c + r * out.row_stride;
#pragma GCC unroll 2
    for (int v = 0; v < kVecs - 1; ++v) store(c + v * out.vec_stride, acc[r][v]);
    float* last = c + (kVecs - 1) * out.vec_stride;
    store_first(last, acc[r][kVecs - 1], tail);
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA

#endif  // TENON_KERNELS_CPU_INTERNAL_TILE_H_
