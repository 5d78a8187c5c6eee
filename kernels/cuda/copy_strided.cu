#include "kernels/cuda/copy_strided.h"

#include "kernels/cuda/common.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 32;
constexpr int kTileRows = 8;  // threads of a block of transpose_kernel: kTile x kTileRows

struct Dims {
  int rank = 0;
  int64_t size[kCopyMaxRank];
  int64_t from[kCopyMaxRank];
  int64_t to[kCopyMaxRank];
};

template <class Index>
struct Walk {
  int rank;
  Divider<Index> size[kCopyMaxRank];
  int64_t from[kCopyMaxRank];
  int64_t to[kCopyMaxRank];
};

template <class Index>
Walk<Index> make_walk(const Dims& dims) {
  Walk<Index> walk;
  walk.rank = dims.rank;
  for (int i = 0; i < dims.rank; ++i) {
    walk.size[i] = Divider<Index>(dims.size[i]);
    walk.from[i] = dims.from[i];
    walk.to[i] = dims.to[i];
  }
  return walk;
}

template <class Index>
__device__ __forceinline__ void offsets(const Walk<Index>& walk, int64_t linear, int64_t* from, int64_t* to) {
  Index rest = static_cast<Index>(linear);
  *from = 0;
  *to = 0;
  for (int d = walk.rank - 1; d >= 0; --d) {
    Index place = rest;
    rest = walk.size[d].split(&place);
    *from += place * walk.from[d];
    *to += place * walk.to[d];
  }
}

// Threads stride over the elements. Bound: memory where the last dimension is contiguous on both sides.
template <class T, class Index>
__global__ void __launch_bounds__(kThreads) copy_kernel(Walk<Index> walk, int64_t count, const T* input, T* output) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    int64_t from;
    int64_t to;
    offsets(walk, i, &from, &to);
    output[to] = input[from];
  }
}

// Blocks stride over tiles of kTile x kTile, which cross in shared memory (a spare column keeps the banks apart):
// `rows` have stride 1 in the input, `columns` stride 1 in the output; `outer` holds the other dimensions. Bound:
// memory.
template <class T, class Index>
__global__ void __launch_bounds__(kTile* kTileRows)
    transpose_kernel(Walk<Index> outer, int64_t tiles, Divider<Index> row_tiles, Divider<Index> column_tiles,
                     int64_t rows, int64_t columns, int64_t column_from, int64_t row_to, const T* input, T* output) {
  __shared__ T tile[kTile][kTile + 1];
  const int x = threadIdx.x % kTile;
  const int y = threadIdx.x / kTile;
  for (int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
    Index row_tile = static_cast<Index>(i);
    Index column_tile = row_tiles.split(&row_tile);
    const Index block = column_tiles.split(&column_tile);
    const int64_t row = static_cast<int64_t>(row_tile) * kTile;
    const int64_t column = static_cast<int64_t>(column_tile) * kTile;
    int64_t from;
    int64_t to;
    offsets(outer, block, &from, &to);
    for (int j = y; j < kTile; j += kTileRows) {
      if (row + x < rows && column + j < columns) tile[j][x] = input[from + (column + j) * column_from + row + x];
    }
    __syncthreads();
    for (int j = y; j < kTile; j += kTileRows) {
      if (row + j < rows && column + x < columns) output[to + (row + j) * row_to + column + x] = tile[x][j];
    }
    __syncthreads();
  }
}

// Drops dimensions of size 1, puts those with large output strides first, and joins neighbours that both sides walk as
// one.
Dims collapse(int rank, const int64_t* size, const int64_t* from, const int64_t* to) {
  Dims sorted;
  for (int i = 0; i < rank; ++i) {
    if (size[i] == 1) continue;
    int at = sorted.rank++;
    for (; at > 0 && std::abs(sorted.to[at - 1]) < std::abs(to[i]); --at) {
      sorted.size[at] = sorted.size[at - 1];
      sorted.from[at] = sorted.from[at - 1];
      sorted.to[at] = sorted.to[at - 1];
    }
    sorted.size[at] = size[i];
    sorted.from[at] = from[i];
    sorted.to[at] = to[i];
  }
  Dims dims;
  for (int i = 0; i < sorted.rank; ++i) {
    const int last = dims.rank - 1;
    const bool joins = last >= 0 && dims.from[last] == sorted.from[i] * sorted.size[i] &&
                       dims.to[last] == sorted.to[i] * sorted.size[i];
    const int at = joins ? last : dims.rank++;
    dims.size[at] = joins ? dims.size[at] * sorted.size[i] : sorted.size[i];
    dims.from[at] = sorted.from[i];
    dims.to[at] = sorted.to[i];
  }
  if (dims.rank == 0) {
    dims.rank = 1;
    dims.size[0] = dims.from[0] = dims.to[0] = 1;
  }
  return dims;
}

int64_t count_of(const Dims& dims) {
  int64_t count = 1;
  for (int i = 0; i < dims.rank; ++i) count *= dims.size[i];
  return count;
}

template <class T>
cudaError_t copy_elements(const Dims& dims, const void* input, void* output, cudaStream_t stream) {
  const int64_t count = count_of(dims);
  with_index(count, [&](auto index) {
    using Index = decltype(index);
    copy_kernel<T, Index><<<grid_for(count, kThreads), kThreads, 0, stream>>>(
        make_walk<Index>(dims), count, static_cast<const T*>(input), static_cast<T*>(output));
  });
  return cudaGetLastError();
}

// Dimension `row` has stride 1 in the input, the last one stride 1 in the output.
template <class T>
cudaError_t transpose_tiles(Dims dims, int row, const void* input, void* output, cudaStream_t stream) {
  const int last = dims.rank - 1;
  const int64_t rows = dims.size[row];
  const int64_t columns = dims.size[last];
  const int64_t column_from = dims.from[last];
  const int64_t row_to = dims.to[row];
  for (int i = row; i + 1 < last; ++i) {
    dims.size[i] = dims.size[i + 1];
    dims.from[i] = dims.from[i + 1];
    dims.to[i] = dims.to[i + 1];
  }
  dims.rank -= 2;
  const int64_t row_tiles = ceil_div(rows, kTile);
  const int64_t column_tiles = ceil_div(columns, kTile);
  const int64_t tiles = row_tiles * column_tiles * count_of(dims);
  with_index(tiles, [&](auto index) {
    using Index = decltype(index);
    transpose_kernel<T, Index><<<grid_for(tiles, 1), kTile * kTileRows, 0, stream>>>(
        make_walk<Index>(dims), tiles, Divider<Index>(row_tiles), Divider<Index>(column_tiles), rows, columns,
        column_from, row_to, static_cast<const T*>(input), static_cast<T*>(output));
  });
  return cudaGetLastError();
}

// Doubles the element while both sides hold pairs of neighbours. Returns the element's size, at most 16.
int widen(Dims* dims, int element_size, const void* input, const void* output) {
  const int last = dims->rank - 1;
  while (element_size < 16 && dims->from[last] == 1 && dims->to[last] == 1) {
    bool even =
        dims->size[last] % 2 == 0 && is_aligned(input, 2 * element_size) && is_aligned(output, 2 * element_size);
    for (int i = 0; i < last; ++i) even = even && dims->from[i] % 2 == 0 && dims->to[i] % 2 == 0;
    if (!even) break;
    dims->size[last] /= 2;
    for (int i = 0; i < last; ++i) {
      dims->from[i] /= 2;
      dims->to[i] /= 2;
    }
    element_size *= 2;
  }
  return element_size;
}

}  // namespace

cudaError_t copy_strided(int rank, const int64_t* dims, const int64_t* input_strides, const int64_t* output_strides,
                         int element_size, const void* input, void* output, cudaStream_t stream) noexcept {
  if (rank < 0 || rank > kCopyMaxRank) return cudaErrorInvalidValue;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] <= 0) return cudaSuccess;
  }
  Dims walk = collapse(rank, dims, input_strides, output_strides);
  cudaError_t error = cudaErrorInvalidValue;
  const int last = walk.rank - 1;
  if (walk.to[last] == 1 && walk.from[last] != 1 && walk.size[last] >= kTile / 4) {
    for (int i = 0; i < last; ++i) {
      if (walk.from[i] != 1 || walk.size[i] < kTile / 4) continue;
      with_bits(element_size,
                [&](auto bits) { error = transpose_tiles<decltype(bits)>(walk, i, input, output, stream); });
      return error;
    }
  }
  if (element_size != 1 && element_size != 2 && element_size != 4 && element_size != 8) return error;
  const int wide = widen(&walk, element_size, input, output);
  if (wide == 16) return copy_elements<uint4>(walk, input, output, stream);
  with_bits(wide, [&](auto bits) { error = copy_elements<decltype(bits)>(walk, input, output, stream); });
  return error;
}

cudaError_t transpose(int rank, const int64_t* input_dims, const int* perm, int element_size, const void* input,
                      void* output, cudaStream_t stream) noexcept {
  if (rank < 0 || rank > kCopyMaxRank) return cudaErrorInvalidValue;
  int64_t strides[kCopyMaxRank];
  int64_t dims[kCopyMaxRank];
  int64_t from[kCopyMaxRank];
  int64_t to[kCopyMaxRank];
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= input_dims[i];
  }
  stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    dims[i] = input_dims[perm[i]];
    from[i] = strides[perm[i]];
    to[i] = stride;
    stride *= dims[i];
  }
  return copy_strided(rank, dims, from, to, element_size, input, output, stream);
}

}  // namespace tenon::cuda
