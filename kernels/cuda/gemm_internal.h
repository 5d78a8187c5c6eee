// What the files of gemm and conv2d share on the host's side.
#ifndef TENON_KERNELS_CUDA_GEMM_INTERNAL_H_
#define TENON_KERNELS_CUDA_GEMM_INTERNAL_H_

#include "kernels/cuda/gemm.h"

namespace tenon::cuda {

constexpr int kMostParts = 64;  // of split_k

// Blocks of a cluster that every GPU with clusters can run, and the most that some can (CUDA C++ Programming Guide).
constexpr int kPortableCluster = 8;
constexpr int kMostCluster = 16;

// Part of k for each of `parts`, a whole number of the tile's steps.
constexpr int64_t part_of_k(int64_t k, int parts, int depth) {
  return ((k + parts - 1) / parts + depth - 1) / depth * depth;
}

// Rows and columns of a tile; 0 for kSkinny.
constexpr int tile_rows(GemmTile tile) {
  return tile == GemmTile::k128x128 || tile == GemmTile::k128x64 ? 128
         : tile == GemmTile::k64x128 || tile == GemmTile::k64x64 ? 64
         : tile == GemmTile::k32x32                              ? 32
                                                                 : 0;
}
constexpr int tile_columns(GemmTile tile) {
  return tile == GemmTile::k128x128 || tile == GemmTile::k64x128 ? 128
         : tile == GemmTile::k128x64 || tile == GemmTile::k64x64 ? 64
         : tile == GemmTile::k32x32                              ? 32
                                                                 : 0;
}

// The tile (and split) that fills the GPU best without timing.
GemmTactic default_tile(int64_t rows, int64_t columns, int64_t k, int64_t batches) noexcept;

// Whether the parts are written to a workspace and added by a second kernel.
constexpr bool needs_add_parts(const GemmTactic& tactic) { return tactic.split_k > 1 && !tactic.cluster; }

// Every tile but kSkinny. `parts` is not null where needs_add_parts: [split_k][batches][m][n], raw sums.
cudaError_t gemm_tiled(const GemmShape& shape, const void* a, const void* b, const GemmOutput& output,
                       const GemmTactic& tactic, float* parts, cudaStream_t stream) noexcept;

// kF32 only.
cudaError_t gemm_skinny(const GemmShape& shape, const float* a, const float* b, const GemmOutput& output,
                        cudaStream_t stream) noexcept;

// output = act(parts[0] + parts[1] + ... + bias + residual), each part [batches][rows][columns] dense; the output's
// rows are ldc apart, its batches c_stride. kF32 only.
cudaError_t add_parts(const float* parts, int count, int64_t batches, int64_t rows, int64_t columns, int64_t ldc,
                      int64_t c_stride, const GemmOutput& output, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_GEMM_INTERNAL_H_
