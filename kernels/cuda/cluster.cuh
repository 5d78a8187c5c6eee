// Thread block clusters (compute capability 9.0 and later): the parts of k of one tile of tile.cuh as one cluster,
// whose blocks add their sums through distributed shared memory and store the tile, in the launch that computed them.
#ifndef TENON_KERNELS_CUDA_CLUSTER_CUH_
#define TENON_KERNELS_CUDA_CLUSTER_CUH_

#include <cooperative_groups.h>

#include "kernels/cuda/gemm_internal.h"
#include "kernels/cuda/tile.cuh"

namespace tenon::cuda {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr bool kClusterCode = false;  // such a GPU has none: launch_cluster refuses
#else
constexpr bool kClusterCode = true;
#endif

// Every block of the cluster leaves its sums in its shared memory, as [row][column]; then block i of S adds the S parts
// of the i-th of S shares of the tile, in order, and stores them. All threads of all blocks take part; on return no
// block's shared memory is read any more. REQUIRES: nobody of the block uses `shared` any more; kClusterCode.
template <class Tile, class T>
__device__ __forceinline__ void store_cluster_tile(const typename Tile::Sums& sums, typename Tile::Shared& shared,
                                                   int64_t first_row, int64_t first_column, int64_t rows,
                                                   int64_t columns, const TileOutput<T>& to,
                                                   const DeviceEpilogue& epilogue) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int kAtOnce = 8;  // loads in flight
  constexpr int kQuads = Tile::kRows * Tile::kColumns / 4;
  static_assert(kQuads * sizeof(float4) <= sizeof(typename Tile::Shared), "the sums take the place of the operands");
  float4* const part = reinterpret_cast<float4*>(&shared);
#pragma unroll
  for (int i = 0; i < Tile::kRowsPerThread; ++i) {
#pragma unroll
    for (int h = 0; h < Tile::kColumnGroups; ++h) {
      part[((Tile::row_of_group(i / 4) + i % 4) * Tile::kColumns + Tile::column_of_group(h)) / 4] =
          make_float4(sums.v[i][h * 4], sums.v[i][h * 4 + 1], sums.v[i][h * 4 + 2], sums.v[i][h * 4 + 3]);
    }
  }
  const auto cluster = cooperative_groups::this_cluster();
  cluster.sync();
  const int parts = static_cast<int>(cluster.num_blocks());
  const int share = (kQuads + parts - 1) / parts;
  const int begin = static_cast<int>(cluster.block_rank()) * share;
  const int end = min(begin + share, kQuads);
  for (int quad = begin + static_cast<int>(threadIdx.x); quad < end; quad += Tile::kThreads) {
    const int64_t row = first_row + quad / (Tile::kColumns / 4);
    const int64_t column = first_column + quad % (Tile::kColumns / 4) * 4;
    if (row >= rows || column >= columns) continue;
    const QuadColumns<T> place(column, columns, to);
    float4 sum = {};
    for (int first = 0; first < parts; first += kAtOnce) {
      float4 v[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i < parts) v[i] = cluster.map_shared_rank(part, first + i)[quad];
      }
      if (first == 0) sum = v[0];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i == 0 || first + i >= parts) continue;
        sum = make_float4(sum.x + v[i].x, sum.y + v[i].y, sum.z + v[i].z, sum.w + v[i].w);
      }
    }
    store_quad(sum, row, place, to, epilogue);
  }
  // What a thread read is added by now, and no block reads what another stores: without the fence of cluster.sync(),
  // which would wait for the stores.
  asm volatile("barrier.cluster.arrive.relaxed;\n\tbarrier.cluster.wait;" ::: "memory");
#endif
}

inline cudaLaunchAttribute cluster_of(unsigned blocks) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 1;
  attribute.val.clusterDim.y = blocks;
  attribute.val.clusterDim.z = 1;
  return attribute;
}

// `attribute` must outlive the result.
inline cudaLaunchConfig_t cluster_config(dim3 grid, int threads, cudaStream_t stream, cudaLaunchAttribute* attribute) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  config.attrs = attribute;
  config.numAttrs = 1;
  return config;
}

// Launches with clusters of (1, grid.y, 1) blocks. cudaErrorNotSupported where gemm_cluster_limit is less.
template <class... Parameters>
cudaError_t launch_cluster(void (*kernel)(Parameters...), dim3 grid, int threads, cudaStream_t stream,
                           Parameters... parameters) {
  int ordinal = 0;
  cudaError_t error = cudaGetDevice(&ordinal);
  if (error != cudaSuccess) return error;
  if (static_cast<int>(grid.y) > gemm_cluster_limit(ordinal)) return cudaErrorNotSupported;
  if (grid.y > kPortableCluster) {
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != cudaSuccess) return error;
  }
  cudaLaunchAttribute attribute = cluster_of(grid.y);
  const cudaLaunchConfig_t config = cluster_config(grid, threads, stream, &attribute);
  error = cudaLaunchKernelEx(&config, kernel, parameters...);
  cudaGetLastError();  // reported once
  return error;
}

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_CLUSTER_CUH_
