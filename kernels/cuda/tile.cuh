// The tiled product shared by gemm and conv2d, on the general-purpose cores.
//
// A block computes Tile::kRows x Tile::kColumns sums, kDepth steps of k at a time. Both operands lie in shared memory
// as [kDepth][rows or columns], in two copies: while one is computed with, the loaders fetch the next into registers.
// A thread owns kRowsPerThread x kColumnsPerThread sums, in groups of 4 x 4 spread over the tile so that 8 x 4 threads
// of a warp read 16-byte words without bank conflicts. Bound: compute, once the tile is large.
//
// A loader has fetch() (the next kDepth steps to registers, 0 beyond the edges) and commit(shared). Operands in half
// precision are widened by the loader, results rounded by the store.
#ifndef TENON_KERNELS_CUDA_TILE_CUH_
#define TENON_KERNELS_CUDA_TILE_CUH_

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/epilogue.cuh"

namespace tenon::cuda {

template <int kRowsOf, int kColumnsOf, int kDepthOf, int kRowsEach, int kColumnsEach>
struct Tile {
  static constexpr int kRows = kRowsOf;
  static constexpr int kColumns = kColumnsOf;
  static constexpr int kDepth = kDepthOf;
  static constexpr int kRowsPerThread = kRowsEach;
  static constexpr int kColumnsPerThread = kColumnsEach;
  static constexpr int kThreads = (kRows / kRowsEach) * (kColumns / kColumnsEach);
  static constexpr int kMinBlocks = 512 / kThreads;  // leaves 128 registers a thread
  static constexpr int kRowGroups = kRowsEach / 4;
  static constexpr int kColumnGroups = kColumnsEach / 4;
  static constexpr int kRowPitch = kRows + 4;  // keeps 16-byte alignment, spreads transposed stores over the banks
  static constexpr int kColumnPitch = kColumns + 4;
  static_assert(kRowsEach % 4 == 0 && kColumnsEach % 4 == 0, "groups of four");
  static_assert(kColumns / kColumnsEach % 8 == 0 && kRows / kRowsEach % 4 == 0, "warps of 4 x 8 threads");

  struct Shared {
    alignas(16) float a[2][kDepth * kRowPitch];
    alignas(16) float b[2][kDepth * kColumnPitch];
  };
  struct Sums {
    float v[kRowsEach][kColumnsEach];
  };

  // Where this thread's group of four rows (columns) begins in the tile.
  static __device__ __forceinline__ int row_of_group(int group) {
    const int warp = threadIdx.x / 32 / (kColumns / kColumnsEach / 8);
    return group * (kRows / kRowGroups) + (warp * 4 + threadIdx.x % 32 / 8) * 4;
  }
  static __device__ __forceinline__ int column_of_group(int group) {
    const int warp = threadIdx.x / 32 % (kColumns / kColumnsEach / 8);
    return group * (kColumns / kColumnGroups) + (warp * 8 + threadIdx.x % 8) * 4;
  }
};

using Tile128x128 = Tile<128, 128, 8, 8, 8>;
using Tile128x64 = Tile<128, 64, 16, 8, 4>;
using Tile64x128 = Tile<64, 128, 16, 4, 8>;
using Tile64x64 = Tile<64, 64, 16, 4, 4>;
using Tile32x32 = Tile<32, 32, 16, 4, 4>;

// Four neighbours as one aligned word.
__device__ __forceinline__ float4 load_word(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ __forceinline__ float4 load_word(const __half* p) {
  const auto word = *reinterpret_cast<const Pack<__half, 4>*>(p);
  return make_float4(to_float(word.v[0]), to_float(word.v[1]), to_float(word.v[2]), to_float(word.v[3]));
}
__device__ __forceinline__ void store_word(float* p, const float4& v) { *reinterpret_cast<float4*>(p) = v; }
__device__ __forceinline__ void store_word(__half* p, const float4& v) {
  *reinterpret_cast<Pack<__half, 4>*>(p) = {from_float<__half>(v.x), from_float<__half>(v.y), from_float<__half>(v.z),
                                            from_float<__half>(v.w)};
}

template <class T>
__device__ __forceinline__ float4 load_four(const T* p, int valid, bool vector) {
  if (vector && valid >= 4) return load_word(p);
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (valid > 0) v.x = to_float(p[0]);
  if (valid > 1) v.y = to_float(p[1]);
  if (valid > 2) v.z = to_float(p[2]);
  if (valid > 3) v.w = to_float(p[3]);
  return v;
}

// Stores four steps of k of one row into the transposed tile.
__device__ __forceinline__ void store_transposed(float* shared, int pitch, const float4& v) {
  shared[0] = v.x;
  shared[pitch] = v.y;
  shared[2 * pitch] = v.z;
  shared[3 * pitch] = v.w;
}

// kRows rows of a matrix whose rows are contiguous along k (kAlongK), or which is stored as [k][ld].
template <bool kAlongK, int kRows, int kDepth, int kThreads, class T = float>
class MatrixLoader {
 public:
  static constexpr int kQuads = (kAlongK ? kDepth : kRows) / 4;
  static constexpr int kStep = kThreads / kQuads;  // rows, or steps of k, between this thread's loads
  static constexpr int kLoads = kRows * kDepth / 4 / kThreads;
  static constexpr int kPitch = kRows + 4;
  static_assert(kLoads >= 1 && kThreads % kQuads == 0, "every thread loads");

  // Rows [row, row + kRows) of `rows`, steps [begin, end) of k.
  __device__ __forceinline__ MatrixLoader(const T* matrix, int64_t ld, bool vector, int64_t row, int64_t rows,
                                          int begin, int end)
      : ld_(ld), vector_(vector), at_(begin), end_(end) {
    const int quad = threadIdx.x % kQuads * 4;
    const int first = threadIdx.x / kQuads;
    if (kAlongK) {
      at_ += quad;
      source_ = matrix + (row + first) * ld + at_;
      valid_ = static_cast<int>(min(rows - row - first, static_cast<int64_t>(kRows)));  // rows from here on
    } else {
      at_ += first;
      source_ = matrix + at_ * ld + row + quad;
      valid_ = static_cast<int>(min(rows - row - quad, static_cast<int64_t>(4)));
    }
  }

  __device__ __forceinline__ void fetch() {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int valid = kAlongK ? (i * kStep < valid_ ? end_ - at_ : 0) : (at_ + i * kStep < end_ ? valid_ : 0);
      values_[i] = load_four(source_ + i * kStep * ld_, valid, vector_);
    }
    at_ += kDepth;
    source_ += kAlongK ? kDepth : kDepth * ld_;
  }

  __device__ __forceinline__ void commit(float* shared) const {
    const int quad = threadIdx.x % kQuads * 4;
    const int first = threadIdx.x / kQuads;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (kAlongK) {
        store_transposed(shared + quad * kPitch + first + i * kStep, kPitch, values_[i]);
      } else {
        *reinterpret_cast<float4*>(shared + (first + i * kStep) * kPitch + quad) = values_[i];
      }
    }
  }

 private:
  const T* source_;
  int64_t ld_;
  bool vector_;
  int valid_;
  int at_;
  int end_;
  float4 values_[kLoads];
};

// Adds `steps` steps of kDepth to the sums. All threads of the block take part; it ends with a barrier.
template <class Tile, class LoaderA, class LoaderB>
__device__ __forceinline__ void tile_product(LoaderA& a, LoaderB& b, int steps, typename Tile::Shared& shared,
                                             typename Tile::Sums& sums) {
  if (steps <= 0) return;
  a.fetch();
  b.fetch();
  a.commit(shared.a[0]);
  b.commit(shared.b[0]);
  __syncthreads();
  for (int step = 0; step < steps; ++step) {
    const bool more = step + 1 < steps;
    if (more) {
      a.fetch();
      b.fetch();
    }
    const float* from_a = shared.a[step & 1];
    const float* from_b = shared.b[step & 1];
#pragma unroll
    for (int k = 0; k < Tile::kDepth; ++k) {
      float row[Tile::kRowsPerThread];
      float column[Tile::kColumnsPerThread];
#pragma unroll
      for (int g = 0; g < Tile::kRowGroups; ++g) {
        const float4 v = *reinterpret_cast<const float4*>(from_a + k * Tile::kRowPitch + Tile::row_of_group(g));
        row[g * 4] = v.x;
        row[g * 4 + 1] = v.y;
        row[g * 4 + 2] = v.z;
        row[g * 4 + 3] = v.w;
      }
#pragma unroll
      for (int g = 0; g < Tile::kColumnGroups; ++g) {
        const float4 v = *reinterpret_cast<const float4*>(from_b + k * Tile::kColumnPitch + Tile::column_of_group(g));
        column[g * 4] = v.x;
        column[g * 4 + 1] = v.y;
        column[g * 4 + 2] = v.z;
        column[g * 4 + 3] = v.w;
      }
#pragma unroll
      for (int i = 0; i < Tile::kRowsPerThread; ++i) {
#pragma unroll
        for (int j = 0; j < Tile::kColumnsPerThread; ++j) sums.v[i][j] = fmaf(row[i], column[j], sums.v[i][j]);
      }
    }
    if (more) {
      a.commit(shared.a[(step + 1) & 1]);
      b.commit(shared.b[(step + 1) & 1]);
    }
    __syncthreads();
  }
}

// Where sums go: element (row, column) is at row * row_stride + column / run * run_stride + column % run.
template <class T>
struct TileOutput {
  T* data;
  const T* residual;  // null, or addressed as data
  const T* row_bias;  // null or one for each row
  const T* column_bias;
  int64_t row_stride;
  int64_t run_stride;
  Divider<uint32_t> run;
  bool vector;  // four columns from a multiple of four on are one aligned word
};

// Where four neighbouring columns from `column` on go, and what they add. REQUIRES: column < columns.
template <class T>
struct QuadColumns {
  int valid;  // of them, the others lie beyond the last column
  int64_t place[4];
  float bias[4];

  __device__ __forceinline__ QuadColumns(int64_t column, int64_t columns, const TileOutput<T>& to)
      : valid(static_cast<int>(min(columns - column, static_cast<int64_t>(4)))) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      uint32_t rest = static_cast<uint32_t>(column) + j;
      const uint32_t run = to.run.split(&rest);
      place[j] = run * to.run_stride + rest;
      bias[j] = to.column_bias != nullptr && j < valid ? to_float(to.column_bias[column + j]) : 0.0f;
    }
  }
};

template <class T>
__device__ __forceinline__ void store_quad(float4 v, int64_t row, const QuadColumns<T>& columns,
                                           const TileOutput<T>& to, const DeviceEpilogue& epilogue) {
  const float row_bias = to.row_bias != nullptr ? to_float(to.row_bias[row]) : 0.0f;
  const int64_t base = row * to.row_stride;
  if (to.vector && columns.valid == 4) {
    float4 add = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (to.residual != nullptr) add = load_word(to.residual + base + columns.place[0]);
    v.x = apply(epilogue, v.x + (row_bias + columns.bias[0]) + add.x);
    v.y = apply(epilogue, v.y + (row_bias + columns.bias[1]) + add.y);
    v.z = apply(epilogue, v.z + (row_bias + columns.bias[2]) + add.z);
    v.w = apply(epilogue, v.w + (row_bias + columns.bias[3]) + add.w);
    store_word(to.data + base + columns.place[0], v);
    return;
  }
  const float sums[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (j >= columns.valid) continue;
    const int64_t at = base + columns.place[j];
    const float add = to.residual != nullptr ? to_float(to.residual[at]) : 0.0f;
    to.data[at] = from_float<T>(apply(epilogue, sums[j] + (row_bias + columns.bias[j]) + add));
  }
}

template <class Tile, class T>
__device__ __forceinline__ void store_tile(const typename Tile::Sums& sums, int64_t first_row, int64_t first_column,
                                           int64_t rows, int64_t columns, const TileOutput<T>& to,
                                           const DeviceEpilogue& epilogue) {
#pragma unroll
  for (int h = 0; h < Tile::kColumnGroups; ++h) {
    const int64_t column = first_column + Tile::column_of_group(h);
    if (column >= columns) continue;
    const QuadColumns<T> quad(column, columns, to);
#pragma unroll
    for (int i = 0; i < Tile::kRowsPerThread; ++i) {
      const int64_t row = first_row + Tile::row_of_group(i / 4) + i % 4;
      if (row >= rows) continue;
      store_quad(make_float4(sums.v[i][h * 4], sums.v[i][h * 4 + 1], sums.v[i][h * 4 + 2], sums.v[i][h * 4 + 3]), row,
                 quad, to, epilogue);
    }
  }
}

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_TILE_CUH_
