#include <type_traits>

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/conv2d_internal.h"
#include "kernels/cuda/conv2d_loaders.cuh"
#include "kernels/cuda/gemm_internal.h"
#include "kernels/cuda/tile.cuh"

namespace tenon::cuda {
namespace {

struct Weights {
  const float* data;
  int64_t pitch;
  int depth;
  int part;  // steps of k for each blockIdx.y
  int64_t group_rows;
  int64_t groups;
  Divider<uint32_t> row_tiles;
  int64_t part_stride;   // of the output, from one part to the next
  int64_t group_stride;  // of the output, from one group's first channel to the next one's
};

// blockIdx.x: the tile, down the rows first; y: the part of k; z strides over the groups. See tile.cuh,
// and cluster.cuh for kCluster: the parts of a tile are one cluster.
// NCHW: rows are output channels, columns pixels; NHWC: the other way about.
template <class Tile, class T, bool kNhwc, bool kCluster = false>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kMinBlocks)
    conv_kernel(const __grid_constant__ ConvInput in, const __grid_constant__ Weights weights, TileOutput<T> out,
                DeviceEpilogue epilogue) {
  if constexpr (kCluster && !kClusterCode) __trap();
  __shared__ typename Tile::Shared shared;
  uint32_t row_tile = blockIdx.x;
  const uint32_t column_tile = weights.row_tiles.split(&row_tile);
  const int64_t row = static_cast<int64_t>(row_tile) * Tile::kRows;
  const int64_t column = static_cast<int64_t>(column_tile) * Tile::kColumns;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * weights.part;
  const int begin = static_cast<int>(min(first, static_cast<int64_t>(weights.depth)));
  const int end = static_cast<int>(min(first + weights.part, static_cast<int64_t>(weights.depth)));
  const int steps = (end - begin + Tile::kDepth - 1) / Tile::kDepth;
  out.data += blockIdx.y * weights.part_stride;
  for (int64_t group = blockIdx.z; group < weights.groups; group += gridDim.z) {
    const float* matrix = weights.data + group * weights.group_rows * weights.pitch;
    typename Tile::Sums sums = {};
    if constexpr (kNhwc) {
      InterleavedLoader<Tile::kRows, Tile::kDepth, Tile::kThreads, T> a(in, group, row, begin, end);
      MatrixLoader<true, Tile::kColumns, Tile::kDepth, Tile::kThreads> b(matrix, weights.pitch, true, column,
                                                                         weights.group_rows, begin, end);
      tile_product<Tile>(a, b, steps, shared, sums);
    } else {
      MatrixLoader<true, Tile::kRows, Tile::kDepth, Tile::kThreads> a(matrix, weights.pitch, true, row,
                                                                      weights.group_rows, begin, end);
      PlanarLoader<Tile::kColumns, Tile::kDepth, Tile::kThreads, T> b(in, group, column, begin, end);
      tile_product<Tile>(a, b, steps, shared, sums);
    }
    TileOutput<T> to = out;
    to.data += group * weights.group_stride;
    if (to.residual != nullptr) to.residual += group * weights.group_stride;
    if (to.row_bias != nullptr) to.row_bias += group * weights.group_rows;
    if (to.column_bias != nullptr) to.column_bias += group * weights.group_rows;
    const int64_t rows = kNhwc ? in.pixels : weights.group_rows;
    const int64_t columns = kNhwc ? weights.group_rows : in.pixels;
    if constexpr (kCluster) {
      store_cluster_tile<Tile>(sums, shared, row, column, rows, columns, to, epilogue);
    } else {
      store_tile<Tile>(sums, row, column, rows, columns, to, epilogue);
    }
  }
}

// kClusters: whether the tile has the tactic.
template <class Tile, bool kClusters = false, class T>
cudaError_t launch(bool nhwc, const ConvInput& in, Weights weights, const TileOutput<T>& out, const Epilogue& epilogue,
                   const GemmTactic& tactic, cudaStream_t stream) {
  const int64_t row_tiles = ceil_div(nhwc ? in.pixels : weights.group_rows, Tile::kRows);
  const int64_t column_tiles = ceil_div(nhwc ? weights.group_rows : in.pixels, Tile::kColumns);
  weights.row_tiles = Divider<uint32_t>(row_tiles);
  weights.part = static_cast<int>(part_of_k(weights.depth, tactic.split_k, Tile::kDepth));
  const dim3 grid(static_cast<unsigned>(row_tiles * column_tiles), tactic.split_k,
                  static_cast<unsigned>(std::min<int64_t>(weights.groups, 65535)));
  if (tactic.cluster) {
    if constexpr (kClusters) {
      const auto kernel = nhwc ? conv_kernel<Tile, T, true, true> : conv_kernel<Tile, T, false, true>;
      return launch_cluster(kernel, grid, Tile::kThreads, stream, in, weights, out, DeviceEpilogue(epilogue));
    }
    return cudaErrorInvalidValue;
  }
  const auto kernel = nhwc ? conv_kernel<Tile, T, true> : conv_kernel<Tile, T, false>;
  kernel<<<grid, Tile::kThreads, 0, stream>>>(in, weights, out, epilogue);
  return cudaGetLastError();
}

template <class T>
cudaError_t run(const Conv2dGeometry& g, const Conv2dConfig& config, const Conv2dBuffers& buffers,
                const Epilogue& epilogue, T* parts, cudaStream_t stream) {
  const bool nhwc = config.layout == Layout::kNhwc;
  const int64_t cg = g.c / g.groups;
  const int64_t kg = g.k / g.groups;
  const int64_t out_pixels = g.oh * g.ow;
  ConvInput in = {};
  in.data = buffers.input;
  in.image = g.c * g.h * g.w;
  in.group = nhwc ? cg : cg * g.h * g.w;
  in.channels = g.c;
  in.pixels = g.n * out_pixels;
  in.h = static_cast<int>(g.h);
  in.w = static_cast<int>(g.w);
  in.group_channels = static_cast<int>(std::max<int64_t>(cg, 1));
  in.taps_across = static_cast<int>(g.s);
  in.stride_h = static_cast<int>(g.stride_h);
  in.stride_w = static_cast<int>(g.stride_w);
  in.pad_top = static_cast<int>(g.pad_top);
  in.pad_left = static_cast<int>(g.pad_left);
  in.dilation_h = static_cast<int>(g.dilation_h);
  in.dilation_w = static_cast<int>(g.dilation_w);
  in.oh = Divider<uint32_t>(g.oh);
  in.ow = Divider<uint32_t>(g.ow);
  in.vector = cg % 4 == 0 && is_aligned(buffers.input, 4 * sizeof(T));
  Weights weights = {};
  weights.data = static_cast<const float*>(buffers.packed_weights);
  weights.pitch = weights_pitch(g);
  weights.depth = static_cast<int>(weights_depth(g));
  weights.group_rows = kg;
  weights.groups = g.groups;
  weights.part_stride = parts != nullptr ? g.n * g.k * out_pixels : 0;
  weights.group_stride = nhwc ? kg : kg * out_pixels;
  TileOutput<T> out = {};
  out.data = parts != nullptr ? parts : static_cast<T*>(buffers.output);
  out.row_stride = nhwc ? g.k : out_pixels;
  out.run_stride = nhwc ? 0 : g.k * out_pixels;
  out.run = Divider<uint32_t>(nhwc ? kg : out_pixels);
  out.vector = (nhwc ? kg : out_pixels) % 4 == 0 && is_aligned(out.data, 4 * sizeof(T));
  if (parts == nullptr) {
    const T* bias = static_cast<const T*>(buffers.bias);
    out.residual = static_cast<const T*>(buffers.residual);
    out.row_bias = nhwc ? nullptr : bias;
    out.column_bias = nhwc ? bias : nullptr;
    out.vector = out.vector && is_aligned(out.residual, 4 * sizeof(T));
  }
  const Epilogue& last = parts != nullptr ? Epilogue::none() : epilogue;
  const GemmTactic& tactic = config.tactic;
  const GemmTile tile = tactic.tile;
  if (tile == GemmTile::k64x64) return launch<Tile64x64, true>(nhwc, in, weights, out, last, tactic, stream);
  if constexpr (std::is_same_v<T, float>) {
    if (tile == GemmTile::k32x32) return launch<Tile32x32, true>(nhwc, in, weights, out, last, tactic, stream);
    if (tile == GemmTile::k128x128) return launch<Tile128x128>(nhwc, in, weights, out, last, tactic, stream);
    if (tile == GemmTile::k128x64) return launch<Tile128x64>(nhwc, in, weights, out, last, tactic, stream);
    if (tile == GemmTile::k64x128) return launch<Tile64x128>(nhwc, in, weights, out, last, tactic, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t conv2d_implicit_gemm(const Conv2dGeometry& g, const Conv2dConfig& config, const Conv2dBuffers& buffers,
                                 const Epilogue& epilogue, float* parts, cudaStream_t stream) noexcept {
  if (config.type == ElementType::kF16) return run<__half>(g, config, buffers, epilogue, nullptr, stream);
  return run<float>(g, config, buffers, epilogue, parts, stream);
}

}  // namespace tenon::cuda
