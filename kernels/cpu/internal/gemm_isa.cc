// gemm for one instruction set: packing, the register-tile kernels, and the loop over the tiles of a block.
#include "kernels/cpu/internal/gemm_isa.h"

#include "kernels/cpu/internal/tile.h"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// How a tile kernel reads A.
enum class ARead { kPacked, kStrided };

// Rows r of A lie at a + r * a_row; kept as a pointer for every four rows so that the rest is an addressing mode.
template <int kRows, int kVecs, ARead kRead, bool kPartialB>
void tile(int64_t k, const float* a, int64_t a_row, int64_t a_k, const float* b, int64_t b_k, const TileOutput& out) {
  constexpr int kGroups = (kRows + 3) / 4;
  const int64_t b_tail = out.columns - (kVecs - 1) * kWidth;
  Vec acc[kRows][kVecs];
  begin_tile(out, acc);
  const float* rows[kGroups];
  for (int g = 0; g < kGroups; ++g) rows[g] = a + 4 * g * a_row;
  for (int64_t i = 0; i < k; ++i) {
    Vec bv[kVecs];
#pragma GCC unroll 2
    for (int v = 0; v < kVecs; ++v) {
      bv[v] = kPartialB && v == kVecs - 1 ? load_first(b + v * kWidth, b_tail) : load(b + v * kWidth);
    }
    if constexpr (kRead == ARead::kPacked) {
#pragma GCC unroll 14
      for (int r = 0; r < kRows; ++r) {
        const Vec av = broadcast(a[r]);
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) acc[r][v] = fma(av, bv[v], acc[r][v]);
      }
      a += kTileRows;
    } else {
#pragma GCC unroll 14
      for (int r = 0; r < kRows; ++r) {
        const Vec av = broadcast(rows[r / 4][(r % 4) * a_row]);
#pragma GCC unroll 2
        for (int v = 0; v < kVecs; ++v) acc[r][v] = fma(av, bv[v], acc[r][v]);
      }
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) {
        rows[g] += a_k;
        __asm__("" : "+r"(rows[g]));  // keeps the compiler from splitting the pointer into one for each row
      }
    }
    b += b_k;
  }
  end_tile(out, acc);
}

using TileFunction = void (*)(int64_t, const float*, int64_t, int64_t, const float*, int64_t, const TileOutput&);

template <int kRows>
struct RowTable {
  static TileFunction find(int rows, int vecs, ARead read, bool partial_b) {
    if (rows < kRows) {
      if constexpr (kRows > 1) return RowTable<kRows - 1>::find(rows, vecs, read, partial_b);
    }
    if (read == ARead::kPacked) {
      if (partial_b) return vecs == 1 ? tile<kRows, 1, ARead::kPacked, true> : tile<kRows, 2, ARead::kPacked, true>;
      return vecs == 1 ? tile<kRows, 1, ARead::kPacked, false> : tile<kRows, 2, ARead::kPacked, false>;
    }
    if (partial_b) return vecs == 1 ? tile<kRows, 1, ARead::kStrided, true> : tile<kRows, 2, ARead::kStrided, true>;
    return vecs == 1 ? tile<kRows, 1, ARead::kStrided, false> : tile<kRows, 2, ARead::kStrided, false>;
  }
};

// Writes `count` <= kTile strided lines of k elements as [k][kTile], filled up with 0.
template <int kTile>
TENON_CPU_INLINE void pack_panel(int64_t count, int64_t k, const float* source, int64_t line_stride, int64_t k_stride,
                                 float* packed) {
  if (line_stride == 1) {
    for (int64_t i = 0; i < k; ++i) {
      const float* from = source + i * k_stride;
      float* to = packed + i * kTile;
      if (count == kTile) {
        for (int j = 0; j < kTile; ++j) to[j] = from[j];
      } else {
        for (int64_t j = 0; j < count; ++j) to[j] = from[j];
        for (int64_t j = count; j < kTile; ++j) to[j] = 0.0f;
      }
    }
    return;
  }
  // Lines are read in chunks that keep the written part of the panel in the first-level cache.
  constexpr int64_t kChunk = 64;
  for (int64_t begin = 0; begin < k; begin += kChunk) {
    const int64_t end = min_of(begin + kChunk, k);
    for (int64_t j = 0; j < count; ++j) {
      const float* from = source + j * line_stride;
      for (int64_t i = begin; i < end; ++i) packed[i * kTile + j] = from[i * k_stride];
    }
    for (int64_t j = count; j < kTile; ++j) {
      for (int64_t i = begin; i < end; ++i) packed[i * kTile + j] = 0.0f;
    }
  }
}

void pack_a(int64_t m, int64_t k, const float* a, int64_t row_stride, int64_t k_stride, int64_t begin, int64_t end,
            float* packed) {
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t row = panel * kTileRows;
    pack_panel<kTileRows>(min_of(kTileRows, m - row), k, a + row * row_stride, row_stride, k_stride,
                          packed + panel * k * kTileRows);
  }
}

void pack_b(int64_t n, int64_t k, const float* b, int64_t k_stride, int64_t column_stride, int64_t begin, int64_t end,
            float* packed) {
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t column = panel * kTileColumns;
    pack_panel<kTileColumns>(min_of(kTileColumns, n - column), k, b + column * column_stride, column_stride, k_stride,
                             packed + panel * k * kTileColumns);
  }
}

// One step of kc: all tiles of the block, sums carried in C.
void block_step(const GemmJob& job, int64_t m_begin, int64_t m_end, int64_t n_begin, int64_t n_end, int64_t k_begin,
                int64_t k_end, float* scratch) {
  const int64_t k = k_end - k_begin;
  const float* a_blocks = nullptr;
  if (job.pack_a_blocks) {
    float* packed = scratch + (job.pack_b != nullptr ? job.kc * job.nc : 0);
    const int64_t rows = m_end - m_begin;
    pack_a(rows, k, job.a + m_begin * job.a_row_stride + k_begin * job.a_k_stride, job.a_row_stride, job.a_k_stride, 0,
           ceil_div(rows, kTileRows), packed);
    a_blocks = packed;
  }
  const ARead read = job.a_packed || job.pack_a_blocks ? ARead::kPacked : ARead::kStrided;
  // Rows read in place are dealt out evenly; packed rows come in whole tiles.
  const int64_t row_tiles = ceil_div(m_end - m_begin, kTileRows);
  const int64_t even_rows = ceil_div(m_end - m_begin, row_tiles);
  const int64_t row_step = read == ARead::kPacked ? kTileRows : even_rows;

  TileOutput out;
  out.row_stride = job.ldc;
  out.vec_stride = kWidth;
  out.resume = k_begin > 0;
  out.finish = k_end == job.k;
  set_epilogue(job.output.epilogue, &out);

  for (int64_t n = n_begin; n < n_end; n += kTileColumns) {
    const int64_t columns = min_of(kTileColumns, n_end - n);
    const int vecs = columns > kWidth ? 2 : 1;
    const float* b;
    int64_t b_stride = kTileColumns;
    bool partial_b = false;
    if (job.pack_b != nullptr) {
      float* panel = scratch + (n - n_begin) * job.kc;
      job.pack_b(job.pack_b_context, k_begin, k_end, n, n + columns, panel);
      b = panel;
    } else if (job.b_packed) {
      b = job.b + (n / kTileColumns * job.k + k_begin) * kTileColumns;
    } else {
      b = job.b + k_begin * job.ldb + n;
      b_stride = job.ldb;
      partial_b = columns != vecs * kWidth;
    }
    out.columns = columns;
    out.bias_columns = columns;
    out.column_bias = job.output.bias_axis == BiasAxis::kPerColumn ? job.output.bias + n : nullptr;
    for (int64_t m = m_begin; m < m_end; m += row_step) {
      const int64_t rows = min_of(row_step, m_end - m);
      const float* a;
      if (job.pack_a_blocks) {
        a = a_blocks + (m - m_begin) * k;
      } else if (job.a_packed) {
        a = job.a + m * job.k + k_begin * kTileRows;
      } else {
        a = job.a + m * job.a_row_stride + k_begin * job.a_k_stride;
      }
      const int64_t offset = m * job.ldc + n;
      out.c = job.output.c + offset;
      out.residual = job.output.residual == nullptr ? nullptr : job.output.residual + offset;
      out.row_bias = job.output.bias_axis == BiasAxis::kPerRow ? job.output.bias + m : nullptr;
      RowTable<kTileRows>::find(static_cast<int>(rows), vecs, read, partial_b)(k, a, job.a_row_stride, job.a_k_stride,
                                                                               b, b_stride, out);
    }
  }
}

void block(const GemmJob& job, int64_t m_begin, int64_t m_end, int64_t n_begin, int64_t n_end, float* scratch) {
  int64_t k = 0;
  do {
    const int64_t k_end = min_of(k + job.kc, job.k);
    block_step(job, m_begin, m_end, n_begin, n_end, k, k_end, scratch);
    k = k_end;
  } while (k < job.k);
}

}  // namespace

const GemmTable kGemmTable = {kTileRows, kTileColumns, pack_a, pack_b, block};

}  // namespace tenon::cpu::TENON_CPU_ISA
