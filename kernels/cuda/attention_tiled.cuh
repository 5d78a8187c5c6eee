// attention of float32 rows that begin at multiples of 16 bytes: whole tiles of keys and values arrive while the tiles
// before them are used.
#ifndef TENON_KERNELS_CUDA_ATTENTION_TILED_CUH_
#define TENON_KERNELS_CUDA_ATTENTION_TILED_CUH_

#include <cuda_pipeline.h>

#include "kernels/cuda/attention_range.cuh"

namespace tenon::cuda {

constexpr int kTiledKeys = 64;   // of a tile: two for each lane
constexpr int kTiledRows = 4;    // queries of a warp
constexpr int kTiledStages = 2;  // tiles in shared memory
constexpr int kTiledVector = 4;  // floats that are copied at once

template <int kSize, int kWarps>
constexpr size_t attention_tiled_bytes() {
  constexpr int kQueries = kWarps * kTiledRows, kStride = kSize + kTiledVector;
  return sizeof(float) * (kQueries * kSize + kQueries * kTiledKeys + kTiledStages * 2 * kTiledKeys * kStride);
}

// Begins to copy rows [first, first + kTiledKeys) of `end` rows that are `stride` apart; zeros for the rows behind.
template <int kThreads, int kStride>
__device__ __forceinline__ void copy_tile(const float* rows, int64_t stride, int64_t first, int64_t end, int quads,
                                          float* to) {
  for (int at = threadIdx.x; at < kTiledKeys * quads; at += kThreads) {
    const int row = at / quads, column = (at - row * quads) * kTiledVector;
    const bool inside = first + row < end;
    __pipeline_memcpy_async(to + row * kStride + column, rows + (inside ? (first + row) * stride : 0) + column,
                            kTiledVector * sizeof(float), inside ? 0 : kTiledVector * sizeof(float));
  }
}

// A block for kWarps * kTiledRows queries of a head, a warp for kTiledRows of them; the softmax is kept up to date
// while the tiles pass by (Milakov, Gimelshein 2018). A lane has the keys lane and lane + 32 of a tile, then kSize / 32
// neighbouring columns of y. Rows in shared memory are 4 floats longer than kSize, so that lanes read their keys as
// float4 without bank conflicts. REQUIRES: all rows begin at multiples of 16 bytes, sizes are multiples of 4.
template <int kSize, int kWarps>
__global__ void __launch_bounds__(kWarps * 32)
    attention_tiled_kernel(AttentionShape s, AttentionBuffers b, int64_t query_blocks, int64_t blocks) {
  constexpr int kThreads = kWarps * 32, kRows = kTiledRows, kQueries = kWarps * kRows;
  constexpr int kStride = kSize + kTiledVector, kColumns = kSize / 32;
  extern __shared__ __align__(16) float memory[];
  float* const queries = memory;
  float* const weights = queries + kQueries * kSize;
  float* const tiles = weights + kQueries * kTiledKeys;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int quads = static_cast<int>(s.size) / kTiledVector,
            value_quads = static_cast<int>(s.value_size) / kTiledVector;
  const float4* const own_queries = reinterpret_cast<const float4*>(queries + warp * kRows * kSize);
  float* const own_weights = weights + warp * kRows * kTiledKeys;
  for (int64_t number = blockIdx.x; number < blocks; number += gridDim.x) {
    const QueryBlock<float> block(s, b, number, query_blocks, kQueries);
    const int tiles_seen = static_cast<int>((max(block.end - block.begin, int64_t{0}) + kTiledKeys - 1) / kTiledKeys);

    const auto begin_tile = [&](int tile) {
      if (tile < tiles_seen) {
        float* const keys = tiles + tile % kTiledStages * 2 * kTiledKeys * kStride;
        const int64_t start = block.begin + int64_t{tile} * kTiledKeys;
        copy_tile<kThreads, kStride>(block.k, s.k.row, start, block.end, quads, keys);
        copy_tile<kThreads, kStride>(block.v, s.v.row, start, block.end, value_quads, keys + kTiledKeys * kStride);
      }
      __pipeline_commit();  // an empty one counts, too
    };
    begin_tile(0);
    for (int at = threadIdx.x; at < kQueries * quads; at += kThreads) {
      const int row = at / quads, column = at - row * quads;
      float4 x = {};
      if (block.first + row <= block.last) {
        x = reinterpret_cast<const float4*>(block.q + (block.first + row) * s.q.row)[column];
      }
      reinterpret_cast<float4*>(queries + row * kSize)[column] = {s.scale * x.x, s.scale * x.y, s.scale * x.z,
                                                                  s.scale * x.w};
    }
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
    for (int tile = 0; tile < tiles_seen; ++tile) {
      begin_tile(tile + 1);
      __pipeline_wait_prior(1);
      __syncthreads();  // the tile is there, and so are the queries
      const float* const keys = tiles + tile % kTiledStages * 2 * kTiledKeys * kStride;
      const float* const values = keys + kTiledKeys * kStride;
      const int64_t start = block.begin + int64_t{tile} * kTiledKeys;

      float scores[kRows][2] = {};
      const float4* const key0 = reinterpret_cast<const float4*>(keys + lane * kStride);
      const float4* const key1 = reinterpret_cast<const float4*>(keys + (lane + 32) * kStride);
#pragma unroll 4
      for (int d = 0; d < quads; ++d) {
        const float4 y0 = key0[d], y1 = key1[d];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float4 x = own_queries[r * (kSize / kTiledVector) + d];
          scores[r][0] = fmaf(x.w, y0.w, fmaf(x.z, y0.z, fmaf(x.y, y0.y, fmaf(x.x, y0.x, scores[r][0]))));
          scores[r][1] = fmaf(x.w, y1.w, fmaf(x.z, y1.z, fmaf(x.y, y1.y, fmaf(x.x, y1.x, scores[r][1]))));
        }
      }
      bool any_hidden = false;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          scores[r][i] = masked_score<float>(s, b, block.batch, block.head, block.first + warp * kRows + r,
                                             start + lane + 32 * i, seen[r], scores[r][i]);
        }
        const float now = fmaxf(most[r], warp_max(fmaxf(scores[r][0], scores[r][1])));
        const float shrink = most[r] == -INFINITY ? 0.0f : expf(most[r] - now);
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float weight = scores[r][i] == -INFINITY ? 0.0f : expf(scores[r][i] - now);
          own_weights[r * kTiledKeys + lane + 32 * i] = weight;
          any_hidden = any_hidden || weight == 0.0f;
          sum += weight;
        }
        most[r] = now;
        total[r] = total[r] * shrink + warp_sum(sum);
#pragma unroll
        for (int i = 0; i < kColumns; ++i) sums[r][i] *= shrink;
      }
      any_hidden = __any_sync(0xffffffffu, any_hidden);
      __syncwarp();
      // A hidden value may be anything, so it must not be multiplied.
      const auto add_values = [&](auto hides) {
#pragma unroll 2
        for (int j = 0; j < kTiledKeys; j += kTiledVector) {
          float4 w[kRows];
#pragma unroll
          for (int r = 0; r < kRows; ++r) w[r] = *reinterpret_cast<const float4*>(own_weights + r * kTiledKeys + j);
#pragma unroll
          for (int n = 0; n < kTiledVector; ++n) {
            float value[kColumns];
#pragma unroll
            for (int i = 0; i < kColumns; ++i) value[i] = values[(j + n) * kStride + lane * kColumns + i];
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
              const float weight = n == 0 ? w[r].x : n == 1 ? w[r].y : n == 2 ? w[r].z : w[r].w;
              if (decltype(hides)::value && weight == 0.0f) continue;
#pragma unroll
              for (int i = 0; i < kColumns; ++i) sums[r][i] = fmaf(weight, value[i], sums[r][i]);
            }
          }
        }
      };
      if (any_hidden) {
        add_values(std::true_type{});
      } else {
        add_values(std::false_type{});
      }
      __syncthreads();  // nobody reads the tile
    }
    float* y = static_cast<float*>(b.y) + block.batch * s.y.batch + block.head * s.y.head +
               (block.first + warp * kRows) * s.y.row;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (block.first + warp * kRows + r > block.last) continue;
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        const int column = lane * kColumns + i;
        if (column < s.value_size) y[r * s.y.row + column] = total[r] == 0.0f ? 0.0f : sums[r][i] / total[r];
      }
    }
    __pipeline_wait_prior(0);
    __syncthreads();  // nobody reads the queries
  }
}

// Whether rows of `stride` floats, the first at `data`, all begin at multiples of 16 bytes.
inline bool is_tiled(const void* data, const AttentionStrides& strides, int64_t size) {
  return is_aligned(data, 16) && strides.batch % kTiledVector == 0 && strides.head % kTiledVector == 0 &&
         strides.row % kTiledVector == 0 && size % kTiledVector == 0;
}

inline bool takes_tiled(const AttentionShape& s, const AttentionBuffers& b) {
  return std::max(s.size, s.value_size) <= 128 && is_tiled(b.q, s.q, s.size) && is_tiled(b.k, s.k, s.size) &&
         is_tiled(b.v, s.v, s.value_size);
}

template <int kSize, int kWarps>
cudaError_t launch_tiled(const AttentionShape& s, const AttentionBuffers& b, cudaStream_t stream) {
  constexpr size_t kBytes = attention_tiled_bytes<kSize, kWarps>();
  const auto kernel = attention_tiled_kernel<kSize, kWarps>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kBytes));
  if (error != cudaSuccess) return error;
  const int64_t query_blocks = ceil_div(s.queries, kWarps * kTiledRows), blocks = s.batch * s.heads * query_blocks;
  kernel<<<grid_for(blocks, 1), kWarps * 32, kBytes, stream>>>(s, b, query_blocks, blocks);
  return cudaGetLastError();
}

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_ATTENTION_TILED_CUH_
