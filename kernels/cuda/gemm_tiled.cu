#include "kernels/cuda/gemm_internal.h"
#include "kernels/cuda/tile.cuh"

namespace tenon::cuda {
namespace {

struct Operands {
  const float* a;
  const float* b;
  int64_t lda, ldb;
  int64_t a_stride, b_stride, c_stride;
  int64_t m, n;
  int k;
  int part;             // steps of k for each blockIdx.y
  int64_t part_stride;  // of the output, from one part to the next
  int64_t batches;
  Divider<uint32_t> row_tiles;
  bool vector_a, vector_b;
};

// blockIdx.x: the tile, down the rows first; y: the part of k; z strides over the batches. See tile.cuh.
template <class Tile, bool kTransA, bool kTransB>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kMinBlocks)
    gemm_kernel(Operands in, TileOutput out, DeviceEpilogue epilogue) {
  __shared__ typename Tile::Shared shared;
  uint32_t row_tile = blockIdx.x;
  const uint32_t column_tile = in.row_tiles.split(&row_tile);
  const int64_t row = static_cast<int64_t>(row_tile) * Tile::kRows;
  const int64_t column = static_cast<int64_t>(column_tile) * Tile::kColumns;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * in.part;
  const int begin = static_cast<int>(min(first, static_cast<int64_t>(in.k)));
  const int end = static_cast<int>(min(first + in.part, static_cast<int64_t>(in.k)));
  out.data += blockIdx.y * in.part_stride;
  for (int64_t batch = blockIdx.z; batch < in.batches; batch += gridDim.z) {
    MatrixLoader<!kTransA, Tile::kRows, Tile::kDepth, Tile::kThreads> a(in.a + batch * in.a_stride, in.lda, in.vector_a,
                                                                        row, in.m, begin, end);
    MatrixLoader<kTransB, Tile::kColumns, Tile::kDepth, Tile::kThreads> b(in.b + batch * in.b_stride, in.ldb,
                                                                          in.vector_b, column, in.n, begin, end);
    typename Tile::Sums sums = {};
    tile_product<Tile>(a, b, (end - begin + Tile::kDepth - 1) / Tile::kDepth, shared, sums);
    TileOutput to = out;
    to.data += batch * in.c_stride;
    if (to.residual != nullptr) to.residual += batch * in.c_stride;
    store_tile<Tile>(sums, row, column, in.m, in.n, to, epilogue);
  }
}

template <class Tile>
cudaError_t launch(const GemmShape& s, Operands in, const TileOutput& out, const Epilogue& epilogue, int parts,
                   cudaStream_t stream) {
  const int64_t row_tiles = ceil_div(s.m, Tile::kRows);
  in.row_tiles = Divider<uint32_t>(row_tiles);
  in.part = static_cast<int>(part_of_k(s.k, parts, Tile::kDepth));
  const dim3 grid(static_cast<unsigned>(row_tiles * ceil_div(s.n, Tile::kColumns)), parts,
                  static_cast<unsigned>(std::min<int64_t>(s.batches, 65535)));
  const auto kernel = s.trans_a ? (s.trans_b ? gemm_kernel<Tile, true, true> : gemm_kernel<Tile, true, false>)
                                : (s.trans_b ? gemm_kernel<Tile, false, true> : gemm_kernel<Tile, false, false>);
  kernel<<<grid, Tile::kThreads, 0, stream>>>(in, out, epilogue);
  return cudaGetLastError();
}

}  // namespace

cudaError_t gemm_tiled(const GemmShape& s, const float* a, const float* b, const GemmOutput& output,
                       const GemmTactic& tactic, float* parts, cudaStream_t stream) noexcept {
  const bool many = s.batches > 1;
  const auto quads = [&](const void* pointer, int64_t ld, int64_t stride) {
    return is_aligned(pointer, 16) && ld % 4 == 0 && (!many || stride % 4 == 0);
  };
  Operands in = {};
  in.a = a;
  in.b = b;
  in.lda = s.lda;
  in.ldb = s.ldb;
  in.a_stride = s.a_stride;
  in.b_stride = s.b_stride;
  in.m = s.m;
  in.n = s.n;
  in.k = static_cast<int>(s.k);
  in.batches = s.batches;
  in.vector_a = quads(a, s.lda, s.a_stride);
  in.vector_b = quads(b, s.ldb, s.b_stride);
  TileOutput out = {};
  out.run = Divider<uint32_t>(s.n);  // one run: a column's place is its number
  Epilogue epilogue;
  if (parts != nullptr) {
    in.c_stride = s.m * s.n;
    in.part_stride = s.batches * s.m * s.n;
    out.data = parts;
    out.row_stride = s.n;
    out.vector = quads(parts, s.n, in.c_stride);
  } else {
    in.c_stride = s.c_stride;
    out.data = output.c;
    out.residual = output.residual;
    out.row_bias = output.bias_axis == BiasAxis::kPerRow ? output.bias : nullptr;
    out.column_bias = output.bias_axis == BiasAxis::kPerColumn ? output.bias : nullptr;
    out.row_stride = s.ldc;
    out.vector = quads(output.c, s.ldc, s.c_stride) && is_aligned(output.residual, 16);
    epilogue = output.epilogue;
  }
  switch (tactic.tile) {
    case GemmTile::k128x128:
      return launch<Tile128x128>(s, in, out, epilogue, tactic.split_k, stream);
    case GemmTile::k128x64:
      return launch<Tile128x64>(s, in, out, epilogue, tactic.split_k, stream);
    case GemmTile::k64x128:
      return launch<Tile64x128>(s, in, out, epilogue, tactic.split_k, stream);
    case GemmTile::k64x64:
      return launch<Tile64x64>(s, in, out, epilogue, tactic.split_k, stream);
    case GemmTile::k32x32:
      return launch<Tile32x32>(s, in, out, epilogue, tactic.split_k, stream);
    case GemmTile::kSkinny:
      break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace tenon::cuda
