#include <atomic>
#include <type_traits>

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/gemm_internal.h"
#include "kernels/cuda/tile.cuh"

namespace tenon::cuda {
namespace {

template <class T>
struct Operands {
  const T* a;
  const T* b;
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

// blockIdx.x: the tile, down the rows first; y: the part of k; z strides over the batches. See tile.cuh,
// and cluster.cuh for kCluster: the parts of a tile are one cluster.
template <class Tile, class T, bool kTransA, bool kTransB, bool kCluster = false>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kMinBlocks)
    gemm_kernel(Operands<T> in, TileOutput<T> out, DeviceEpilogue epilogue) {
  if constexpr (kCluster && !kClusterCode) __trap();
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
    MatrixLoader<!kTransA, Tile::kRows, Tile::kDepth, Tile::kThreads, T> a(in.a + batch * in.a_stride, in.lda,
                                                                           in.vector_a, row, in.m, begin, end);
    MatrixLoader<kTransB, Tile::kColumns, Tile::kDepth, Tile::kThreads, T> b(in.b + batch * in.b_stride, in.ldb,
                                                                             in.vector_b, column, in.n, begin, end);
    typename Tile::Sums sums = {};
    tile_product<Tile>(a, b, (end - begin + Tile::kDepth - 1) / Tile::kDepth, shared, sums);
    TileOutput<T> to = out;
    to.data += batch * in.c_stride;
    if (to.residual != nullptr) to.residual += batch * in.c_stride;
    if constexpr (kCluster) {
      store_cluster_tile<Tile>(sums, shared, row, column, in.m, in.n, to, epilogue);
    } else {
      store_tile<Tile>(sums, row, column, in.m, in.n, to, epilogue);
    }
  }
}

template <class Tile, class T, bool kCluster>
auto kernel_of(const GemmShape& s) {
  return s.trans_a
             ? (s.trans_b ? gemm_kernel<Tile, T, true, true, kCluster> : gemm_kernel<Tile, T, true, false, kCluster>)
             : (s.trans_b ? gemm_kernel<Tile, T, false, true, kCluster> : gemm_kernel<Tile, T, false, false, kCluster>);
}

// kClusters: whether the tile has the tactic.
template <class Tile, bool kClusters = false, class T>
cudaError_t launch(const GemmShape& s, Operands<T> in, const TileOutput<T>& out, const Epilogue& epilogue,
                   const GemmTactic& tactic, cudaStream_t stream) {
  const int64_t row_tiles = ceil_div(s.m, Tile::kRows);
  in.row_tiles = Divider<uint32_t>(row_tiles);
  in.part = static_cast<int>(part_of_k(s.k, tactic.split_k, Tile::kDepth));
  const dim3 grid(static_cast<unsigned>(row_tiles * ceil_div(s.n, Tile::kColumns)), tactic.split_k,
                  static_cast<unsigned>(std::min<int64_t>(s.batches, 65535)));
  if (tactic.cluster) {
    if constexpr (kClusters) {
      return launch_cluster(kernel_of<Tile, T, true>(s), grid, Tile::kThreads, stream, in, out,
                            DeviceEpilogue(epilogue));
    }
    return cudaErrorInvalidValue;
  }
  const auto kernel = kernel_of<Tile, T, false>(s);
  kernel<<<grid, Tile::kThreads, 0, stream>>>(in, out, epilogue);
  return cudaGetLastError();
}

template <class T>
cudaError_t run(const GemmShape& s, const T* a, const T* b, const GemmOutput& output, const GemmTactic& tactic,
                T* parts, cudaStream_t stream) {
  const bool many = s.batches > 1;
  const auto quads = [&](const T* pointer, int64_t ld, int64_t stride) {
    return is_aligned(pointer, 4 * sizeof(T)) && ld % 4 == 0 && (!many || stride % 4 == 0);
  };
  Operands<T> in = {};
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
  TileOutput<T> out = {};
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
    const T* bias = static_cast<const T*>(output.bias);
    out.data = static_cast<T*>(output.c);
    out.residual = static_cast<const T*>(output.residual);
    out.row_bias = output.bias_axis == BiasAxis::kPerRow ? bias : nullptr;
    out.column_bias = output.bias_axis == BiasAxis::kPerColumn ? bias : nullptr;
    out.row_stride = s.ldc;
    out.vector = quads(out.data, s.ldc, s.c_stride) && is_aligned(out.residual, 4 * sizeof(T));
    epilogue = output.epilogue;
  }
  if (tactic.tile == GemmTile::k64x64) return launch<Tile64x64, true>(s, in, out, epilogue, tactic, stream);
  if constexpr (std::is_same_v<T, float>) {
    if (tactic.tile == GemmTile::k32x32) return launch<Tile32x32, true>(s, in, out, epilogue, tactic, stream);
    if (tactic.tile == GemmTile::k128x128) return launch<Tile128x128>(s, in, out, epilogue, tactic, stream);
    if (tactic.tile == GemmTile::k128x64) return launch<Tile128x64>(s, in, out, epilogue, tactic, stream);
    if (tactic.tile == GemmTile::k64x128) return launch<Tile64x128>(s, in, out, epilogue, tactic, stream);
  }
  return cudaErrorInvalidValue;
}

constexpr int kOrdinals = 64;  // the answers are kept for the first GPUs

int find_cluster_limit(int ordinal) {
  int major = 0;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal) != cudaSuccess || major < 9) return 0;
  // All kernels of tiles fit alike (kMinBlocks); this one stands for them.
  const auto kernel = gemm_kernel<Tile64x64, float, false, false, true>;
  cudaFuncAttributes code = {};
  if (cudaFuncGetAttributes(&code, kernel) != cudaSuccess || code.ptxVersion < 90) return 0;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) != cudaSuccess) {
    return kPortableCluster;
  }
  cudaLaunchAttribute attribute = cluster_of(kMostCluster);
  cudaLaunchConfig_t config = cluster_config(dim3(1, kMostCluster), Tile64x64::kThreads, nullptr, &attribute);
  int clusters = 0;
  const cudaError_t error = cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
  return error == cudaSuccess && clusters > 0 ? kMostCluster : kPortableCluster;
}

}  // namespace

int gemm_cluster_limit(int ordinal) noexcept {
  static std::atomic<int> known[kOrdinals];  // the limit + 1
  const bool kept = ordinal >= 0 && ordinal < kOrdinals;
  if (kept && known[ordinal] != 0) return known[ordinal] - 1;
  int before = 0;
  int limit = 0;
  if (cudaGetDevice(&before) == cudaSuccess && (before == ordinal || cudaSetDevice(ordinal) == cudaSuccess)) {
    limit = find_cluster_limit(ordinal);
    if (before != ordinal) cudaSetDevice(before);
  }
  cudaGetLastError();  // a refusal is an answer
  if (kept) known[ordinal] = limit + 1;
  return limit;
}

cudaError_t gemm_tiled(const GemmShape& s, const void* a, const void* b, const GemmOutput& output,
                       const GemmTactic& tactic, float* parts, cudaStream_t stream) noexcept {
  if (s.type == ElementType::kF16) {
    return run<__half>(s, static_cast<const __half*>(a), static_cast<const __half*>(b), output, tactic, nullptr,
                       stream);
  }
  return run<float>(s, static_cast<const float*>(a), static_cast<const float*>(b), output, tactic, parts, stream);
}

}  // namespace tenon::cuda
