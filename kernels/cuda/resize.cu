#include "kernels/cuda/resize.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gather.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

// Sizes of the output but for the planes.
template <class Index>
struct Walk {
  Divider<Index> rows, columns, inner;
};

template <class Index>
struct Cell {
  Index plane, row, column, inner;
  __device__ __forceinline__ Cell(const Walk<Index>& walk, int64_t i) {
    inner = static_cast<Index>(i);
    column = walk.inner.split(&inner);
    row = walk.columns.split(&column);
    plane = walk.rows.split(&row);
  }
};

// Threads stride over the output. Bound: memory.
template <class T, class Index>
__global__ void __launch_bounds__(kThreads) nearest_kernel(Walk<Index> walk, ResizeTable rows, ResizeTable columns,
                                                           int64_t inner, int64_t count, const T* x, T* y) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    const Cell<Index> cell(walk, i);
    const int64_t row = static_cast<int64_t>(cell.plane) * rows.in + rows.index[cell.row];
    y[i] = x[(row * columns.in + columns.index[cell.column]) * inner + static_cast<int64_t>(cell.inner)];
  }
}

// Threads stride over the output; each sums its taps, which neighbours share in the cache. Bound: memory for linear.
template <class T, class Index>
__global__ void __launch_bounds__(kThreads) resize_kernel(Walk<Index> walk, ResizeTable rows, ResizeTable columns,
                                                          int64_t inner, int64_t count, const T* x, T* y) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    const Cell<Index> cell(walk, i);
    const int64_t row_taps = static_cast<int64_t>(cell.row) * rows.taps;
    const int64_t column_taps = static_cast<int64_t>(cell.column) * columns.taps;
    const T* plane =
        x + static_cast<int64_t>(cell.plane) * rows.in * columns.in * inner + static_cast<int64_t>(cell.inner);
    float sum = 0.0f;
    for (int r = 0; r < rows.taps; ++r) {
      const float row_weight = rows.weight[row_taps + r];
      if (row_weight == 0.0f) continue;
      const int64_t row = static_cast<int64_t>(rows.index[row_taps + r]) * columns.in;
      float part = 0.0f;
      for (int c = 0; c < columns.taps; ++c) {
        const float weight = columns.weight[column_taps + c];
        if (weight != 0.0f) part += weight * to_float(plane[(row + columns.index[column_taps + c]) * inner]);
      }
      sum += row_weight * part;
    }
    y[i] = from_float<T>(sum);
  }
}

template <class Index>
Walk<Index> make_walk(const ResizeTable& rows, const ResizeTable& columns, int64_t inner) {
  return {Divider<Index>(rows.out), Divider<Index>(columns.out), Divider<Index>(inner)};
}

}  // namespace

cudaError_t resize(ElementType type, int64_t planes, const ResizeTable& rows, const ResizeTable& columns, int64_t inner,
                   const void* x, void* y, cudaStream_t stream) noexcept {
  const int64_t count = planes * rows.out * columns.out * inner;
  if (count <= 0) return cudaSuccess;
  const bool known = with_float(type, [&](auto element) {
    using T = decltype(element);
    with_index(count, [&](auto index) {
      using Index = decltype(index);
      resize_kernel<T, Index><<<grid_for(count, kThreads), kThreads, 0, stream>>>(
          make_walk<Index>(rows, columns, inner), rows, columns, inner, count, static_cast<const T*>(x),
          static_cast<T*>(y));
    });
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

cudaError_t resize_nearest(int64_t planes, const ResizeTable& rows, const ResizeTable& columns, int64_t inner,
                           int element_size, const void* x, void* y, cudaStream_t stream) noexcept {
  if (planes * rows.out * columns.out * inner <= 0) return cudaSuccess;
  const bool known = with_runs(element_size, inner, x, y, [&](auto element, int64_t runs) {
    using T = decltype(element);
    const int64_t count = planes * rows.out * columns.out * runs;
    with_index(count, [&](auto index) {
      using Index = decltype(index);
      nearest_kernel<T, Index><<<grid_for(count, kThreads), kThreads, 0, stream>>>(
          make_walk<Index>(rows, columns, runs), rows, columns, runs, count, static_cast<const T*>(x),
          static_cast<T*>(y));
    });
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

}  // namespace tenon::cuda
