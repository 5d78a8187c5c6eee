#include "kernels/cuda/gemm.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gemm_internal.h"

namespace tenon::cuda {
namespace {

constexpr GemmTactic kTactics[] = {
    {GemmTile::k128x128, 1},      {GemmTile::k128x64, 1},      {GemmTile::k64x128, 1},
    {GemmTile::k64x64, 1},        {GemmTile::k32x32, 1},       {GemmTile::kSkinny, 1},
    {GemmTile::k64x64, 2, true},  {GemmTile::k64x64, 4, true}, {GemmTile::k64x64, 8, true},
    {GemmTile::k64x64, 16, true}, {GemmTile::k32x32, 4, true}, {GemmTile::k32x32, 8, true},
    {GemmTile::k32x32, 16, true}, {GemmTile::k64x64, 4},       {GemmTile::k32x32, 4},
    {GemmTile::k64x64, 16},       {GemmTile::k32x32, 16},      {GemmTile::k128x128, 4},
};

constexpr bool has_cluster(GemmTile tile) { return tile == GemmTile::k64x64 || tile == GemmTile::k32x32; }

}  // namespace

int gemm_tactic_count() noexcept { return sizeof(kTactics) / sizeof(kTactics[0]); }
GemmTactic gemm_tactic(int index) noexcept { return kTactics[index]; }

bool gemm_tactic_suits(const GemmTactic& tactic, int cluster_limit) noexcept {
  if (tactic.cluster) return tactic.split_k <= cluster_limit;
  return tactic.split_k == 1 || !has_cluster(tactic.tile) || tactic.split_k > std::min(cluster_limit, kPortableCluster);
}

bool gemm_supports(const GemmShape& s, const GemmTactic& tactic) noexcept {
  constexpr int64_t kLimit = kInt32Max - 1023;
  if (s.m < 0 || s.n < 0 || s.k < 0 || s.batches < 0) return false;
  if (s.type == ElementType::kF16) {
    if (needs_add_parts(tactic) || tactic.tile != GemmTile::k64x64) return false;
  } else if (s.type != ElementType::kF32) {
    return false;
  }
  if (s.m >= kLimit || s.n >= kLimit || s.k >= kLimit || tactic.split_k < 1) return false;
  if (tactic.tile == GemmTile::kSkinny) return tactic.split_k == 1 && !tactic.cluster && (s.m <= 8 || s.n <= 8);
  if (tactic.cluster) {
    const int parts = tactic.split_k;
    if (!has_cluster(tactic.tile) || parts < 2 || parts > kMostCluster || (parts & (parts - 1)) != 0) return false;
  }
  if (ceil_div(s.m, tile_rows(tactic.tile)) * ceil_div(s.n, tile_columns(tactic.tile)) > kInt32Max) return false;
  return tactic.split_k == 1 || (tactic.split_k <= kMostParts && s.k / tactic.split_k >= 32);
}

GemmTactic default_tile(int64_t rows, int64_t columns, int64_t k, int64_t batches) noexcept {
  constexpr int64_t kWanted = 128;  // blocks: about one for each multiprocessor of the large GPUs
  const auto blocks = [&](GemmTile tile) {
    return ceil_div(rows, tile_rows(tile)) * ceil_div(columns, tile_columns(tile)) * batches;
  };
  if (rows > 64 && columns > 64 && blocks(GemmTile::k128x128) >= kWanted) return {GemmTile::k128x128, 1};
  if (rows > 32 && columns > 32 && blocks(GemmTile::k64x64) >= kWanted) return {GemmTile::k64x64, 1};
  const int64_t small = std::max<int64_t>(blocks(GemmTile::k32x32), 1);
  int parts = 1;
  while (small * parts < kWanted && parts < 16 && k / (parts * 2) >= 128) parts *= 2;
  return {GemmTile::k32x32, parts};
}

GemmTactic gemm_default_tactic(const GemmShape& s) noexcept {
  if (s.type == ElementType::kF16) return {GemmTile::k64x64, 1};
  if (s.m <= 8 || s.n <= 8) return {GemmTile::kSkinny, 1};
  return default_tile(s.m, s.n, s.k, s.batches);
}

size_t gemm_workspace_bytes(const GemmShape& s, const GemmTactic& tactic) noexcept {
  if (!needs_add_parts(tactic)) return 0;
  return static_cast<size_t>(tactic.split_k) * s.batches * s.m * s.n * sizeof(float);
}

cudaError_t gemm(const GemmShape& shape, const void* a, const void* b, const GemmOutput& output,
                 const GemmTactic& tactic, void* workspace, cudaStream_t stream) noexcept {
  if (!gemm_supports(shape, tactic)) return cudaErrorInvalidValue;
  if (shape.m == 0 || shape.n == 0 || shape.batches == 0) return cudaSuccess;
  if (tactic.tile == GemmTile::kSkinny) {
    return gemm_skinny(shape, static_cast<const float*>(a), static_cast<const float*>(b), output, stream);
  }
  if (!needs_add_parts(tactic)) return gemm_tiled(shape, a, b, output, tactic, nullptr, stream);
  float* parts = static_cast<float*>(workspace);
  const cudaError_t error = gemm_tiled(shape, a, b, output, tactic, parts, stream);
  if (error != cudaSuccess) return error;
  return add_parts(parts, tactic.split_k, shape.batches, shape.m, shape.n, shape.ldc, shape.c_stride, output, stream);
}

}  // namespace tenon::cuda
