#include "kernels/cuda/attention.h"

#include "kernels/cuda/attention_range.cuh"
#include "kernels/cuda/attention_tiled.cuh"

namespace tenon::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr int kKeys = 32;          // of a tile: one for each lane
constexpr int64_t kFullGpu = 256;  // blocks that keep a GPU busy

// Rows [first, first + kRows) of `count` rows that are `stride` apart, as floats with zeros behind the rows and up to
// kStride - 4 columns; a warp for each row.
template <int kRows, int kStride, class T>
__device__ __forceinline__ void load_rows(const T* rows, int64_t stride, int64_t first, int64_t count, int size,
                                          int columns, float scale, float* to) {
  for (int row = threadIdx.x / 32; row < kRows; row += kWarps) {
    const bool inside = first + row < count;
    for (int at = threadIdx.x % 32; at < columns; at += 32) {
      to[row * kStride + at] = inside && at < size ? scale * to_float(rows[(first + row) * stride + at]) : 0.0f;
    }
  }
}

// A block for kWarps * kRows queries of a head, a warp for kRows of them; the softmax is kept up to date while tiles of
// kKeys keys pass by (Milakov, Gimelshein 2018). A lane has one key of the tile, then the columns lane + 32 * i of y.
// Shared memory: the queries; the tile of keys, then that of values; the weights. Rows are 4 floats longer than kSize,
// so that lanes read their keys as float4 without bank conflicts. Bound: loads from shared memory.
template <class T, int kSize, int kRows>
__global__ void __launch_bounds__(kThreads)
    attention_kernel(AttentionShape s, AttentionBuffers b, int64_t query_blocks, int64_t blocks) {
  constexpr int kStride = kSize + 4, kQueries = kWarps * kRows, kColumns = kSize / 32;
  __shared__ __align__(16) float queries[kQueries * kStride];
  __shared__ __align__(16) float tile[kKeys * kStride];
  __shared__ float weights[kQueries][kKeys];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int size = static_cast<int>(s.size), value_size = static_cast<int>(s.value_size);
  const int quads = (size + 3) / 4;
  for (int64_t number = blockIdx.x; number < blocks; number += gridDim.x) {
    const QueryBlock<T> block(s, b, number, query_blocks, kQueries);

    load_rows<kQueries, kStride>(block.q, s.q.row, block.first, s.queries, size, quads * 4, s.scale, queries);
    Range seen[kRows];
    float most[kRows], total[kRows], sums[kRows][kColumns];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      seen[r] = block.range(s, warp * kRows + r);
      most[r] = -INFINITY;
      total[r] = 0.0f;
#pragma unroll
      for (int i = 0; i < kColumns; ++i) sums[r][i] = 0.0f;
    }
    for (int64_t start = block.begin; start < block.end; start += kKeys) {
      __syncthreads();  // the queries are there, and nobody reads the tile
      load_rows<kKeys, kStride>(block.k, s.k.row, start, block.end, size, quads * 4, 1.0f, tile);
      __syncthreads();
      float scores[kRows] = {};
      const float4* key = reinterpret_cast<const float4*>(tile + lane * kStride);
      for (int d = 0; d < quads; ++d) {
        const float4 y = key[d];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float4 x = reinterpret_cast<const float4*>(queries + (warp * kRows + r) * kStride)[d];
          scores[r] = fmaf(x.w, y.w, fmaf(x.z, y.z, fmaf(x.y, y.y, fmaf(x.x, y.x, scores[r]))));
        }
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float score = masked_score<T>(s, b, block.batch, block.head, block.first + warp * kRows + r, start + lane,
                                            seen[r], scores[r]);
        const float now = fmaxf(most[r], warp_max(score));
        const float weight = score == -INFINITY ? 0.0f : expf(score - now);
        const float shrink = most[r] == -INFINITY ? 0.0f : expf(most[r] - now);
        most[r] = now;
        total[r] = total[r] * shrink + warp_sum(weight);
        weights[warp * kRows + r][lane] = weight;
#pragma unroll
        for (int i = 0; i < kColumns; ++i) sums[r][i] *= shrink;
      }
      __syncthreads();  // the weights are there, and nobody reads the keys
      load_rows<kKeys, kStride>(block.v, s.v.row, start, block.end, value_size, value_size, 1.0f, tile);
      __syncthreads();
      for (int j = 0; j < kKeys; ++j) {
        float values[kColumns];
#pragma unroll
        for (int i = 0; i < kColumns; ++i) {
          values[i] = lane + 32 * i < value_size ? tile[j * kStride + lane + 32 * i] : 0.0f;
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float weight = weights[warp * kRows + r][j];
          if (weight == 0.0f) continue;  // a hidden value may be anything
#pragma unroll
          for (int i = 0; i < kColumns; ++i) sums[r][i] = fmaf(weight, values[i], sums[r][i]);
        }
      }
    }
    T* y =
        static_cast<T*>(b.y) + block.batch * s.y.batch + block.head * s.y.head + (block.first + warp * kRows) * s.y.row;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (block.first + warp * kRows + r > block.last) continue;
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        const int column = lane + 32 * i;
        if (column >= value_size) continue;
        y[r * s.y.row + column] = from_float<T>(total[r] == 0.0f ? 0.0f : sums[r][i] / total[r]);
      }
    }
    __syncthreads();  // nobody reads the queries
  }
}

template <class T, int kSize, int kRows>
cudaError_t launch(const AttentionShape& s, const AttentionBuffers& b, cudaStream_t stream) {
  const int64_t query_blocks = ceil_div(s.queries, kWarps * kRows), blocks = s.batch * s.heads * query_blocks;
  attention_kernel<T, kSize, kRows><<<grid_for(blocks, 1), kThreads, 0, stream>>>(s, b, query_blocks, blocks);
  return cudaGetLastError();
}

// A thread for each pair and each element that is copied. Bound: memory.
template <class T>
__global__ void __launch_bounds__(kThreads) rotary_kernel(RotaryShape s, int64_t items, const T* x, const T* cos,
                                                          const T* sin, const int64_t* positions, T* y) {
  const int64_t of_row = s.size - s.half;
  for (int64_t item = global_thread(); item < items; item += global_threads()) {
    const int64_t row = item / of_row, n = item - row * of_row;
    if (n >= s.half) {
      y[row * s.size + s.half + n] = x[row * s.size + s.half + n];
      continue;
    }
    const int64_t batch = row / (s.heads * s.steps);
    const int64_t step = s.heads_first ? row % s.steps : row / s.heads % s.steps;
    int64_t table = batch * s.steps + step;
    if (positions != nullptr) table = positions[table];
    const bool is_row = table >= 0 && table < s.table_rows;
    const float c = is_row ? to_float(cos[table * s.half + n]) : NAN;
    const float d = is_row ? to_float(sin[table * s.half + n]) : NAN;
    const int64_t first = row * s.size + (s.interleaved ? 2 * n : n), second = first + (s.interleaved ? 1 : s.half);
    const float a = to_float(x[first]), b = to_float(x[second]);
    y[first] = from_float<T>(c * a - d * b);
    y[second] = from_float<T>(d * a + c * b);
  }
}

}  // namespace

cudaError_t attention(ElementType type, const AttentionShape& s, const AttentionBuffers& b,
                      cudaStream_t stream) noexcept {
  if (s.size > kAttentionMaxSize || s.value_size > kAttentionMaxSize) return cudaErrorInvalidValue;
  if (s.batch <= 0 || s.heads <= 0 || s.queries <= 0 || s.value_size <= 0) return cudaSuccess;
  const int64_t size = std::max(s.size, s.value_size);
  if (type == ElementType::kF32 && takes_tiled(s, b)) {
    // Few queries of many blocks fill a GPU better; many of a block share the tiles.
    const bool few = s.batch * s.heads * ceil_div(s.queries, 32) < kFullGpu;
    if (size <= 64) return few ? launch_tiled<64, 4>(s, b, stream) : launch_tiled<64, 8>(s, b, stream);
    return few ? launch_tiled<128, 4>(s, b, stream) : launch_tiled<128, 8>(s, b, stream);
  }
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    error = size <= 64    ? launch<T, 64, 4>(s, b, stream)
            : size <= 128 ? launch<T, 128, 4>(s, b, stream)
                          : launch<T, 256, 1>(s, b, stream);
  });
  return error;
}

cudaError_t rotary_embedding(ElementType type, const RotaryShape& s, const void* x, const void* cos, const void* sin,
                             const int64_t* positions, void* y, cudaStream_t stream) noexcept {
  const int64_t items = s.batch * s.steps * s.heads * (s.size - s.half);
  if (items <= 0) return cudaSuccess;
  cudaError_t error = cudaErrorInvalidValue;
  with_float(type, [&](auto element) {
    using T = decltype(element);
    rotary_kernel<T><<<grid_for(items, kThreads), kThreads, 0, stream>>>(
        s, items, static_cast<const T*>(x), static_cast<const T*>(cos), static_cast<const T*>(sin), positions,
        static_cast<T*>(y));
    error = cudaGetLastError();
  });
  return error;
}

}  // namespace tenon::cuda
