#include "kernels/cuda/pad.h"

#include "kernels/cuda/common.cuh"

namespace tenon::cuda {
namespace {

constexpr int kThreads = 256;

template <class Index>
struct Walk {
  Divider<Index> dims[kPadMaxRank];
};

// The position in [first, last) that stands at `at`, or -1 for the fill value.
__device__ __forceinline__ int64_t source(PadMode mode, int64_t at, int64_t first, int64_t last) {
  if (at >= first && at < last) return at;
  if (mode == PadMode::kConstant) return -1;
  if (mode == PadMode::kEdge) return at < first ? first : last - 1;
  const int64_t size = last - first;
  const int64_t period = mode == PadMode::kWrap ? size : (size > 1 ? 2 * (size - 1) : 1);
  int64_t phase = (at - first) % period;
  if (phase < 0) phase += period;
  return first + (phase < size ? phase : period - phase);
}

// Threads stride over the output. Bound: memory, but for small tensors of many dimensions.
template <class T, class Index>
__global__ void __launch_bounds__(kThreads) pad_kernel(PadShape shape, Walk<Index> walk, PadMode mode, int64_t count,
                                                       const T* input, const T* fill, T* output) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    Index rest = static_cast<Index>(i);
    int64_t offset = 0;
    bool outside = false;
    for (int d = shape.rank - 1; d >= 0; --d) {
      Index place = rest;
      rest = walk.dims[d].split(&place);
      const int64_t at = source(mode, static_cast<int64_t>(place) - shape.begin[d], shape.first[d], shape.last[d]);
      outside = outside || at < 0;
      offset += at * shape.strides[d];
    }
    output[i] = !outside ? input[offset] : fill != nullptr ? *fill : T{};
  }
}

// Threads stride over the output. Bound: memory.
template <class T, class Index>
__global__ void __launch_bounds__(kThreads)
    one_hot_kernel(Divider<Index> inner, Divider<Index> depth, int64_t inner_size, int64_t depth_size, int64_t count,
                   bool indices_are_i64, const void* indices, const T* values, T* output) {
  const T off = values[0];
  const T on = values[1];
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    Index place = static_cast<Index>(i);
    Index at = inner.split(&place);
    const Index outer = depth.split(&at);
    const int64_t from = static_cast<int64_t>(outer) * inner_size + static_cast<int64_t>(place);
    const int64_t index = indices_are_i64 ? static_cast<const int64_t*>(indices)[from]
                                          : static_cast<int64_t>(static_cast<const int32_t*>(indices)[from]);
    output[i] = (index < 0 ? index + depth_size : index) == static_cast<int64_t>(at) ? on : off;
  }
}

// Threads stride over the elements. Bound: memory.
template <class T, class Index>
__global__ void __launch_bounds__(kThreads)
    trilu_kernel(Divider<Index> columns, Divider<Index> rows, bool upper, bool k_is_i64, const void* k_data,
                 int64_t count, const T* input, T* output) {
  constexpr int64_t kFar = int64_t{1} << 60;  // so that the difference below fits
  int64_t k = k_data == nullptr ? 0
              : k_is_i64        ? *static_cast<const int64_t*>(k_data)
                                : static_cast<int64_t>(*static_cast<const int32_t*>(k_data));
  k = k < -kFar ? -kFar : k > kFar ? kFar : k;
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    Index column = static_cast<Index>(i);
    Index row = columns.split(&column);
    rows.split(&row);
    const int64_t diagonal = static_cast<int64_t>(column) - static_cast<int64_t>(row);
    output[i] = (upper ? diagonal >= k : diagonal <= k) ? input[i] : T{};
  }
}

}  // namespace

cudaError_t pad(const PadShape& shape, PadMode mode, int element_size, const void* input, const void* fill,
                void* output, cudaStream_t stream) noexcept {
  if (shape.rank < 0 || shape.rank > kPadMaxRank) return cudaErrorInvalidValue;
  int64_t count = 1;
  for (int d = 0; d < shape.rank; ++d) count *= shape.dims[d];
  if (count <= 0) return cudaSuccess;
  const bool known = with_bits(element_size, [&](auto bits) {
    using T = decltype(bits);
    with_index(count, [&](auto index) {
      using Index = decltype(index);
      Walk<Index> walk;
      for (int d = 0; d < shape.rank; ++d) walk.dims[d] = Divider<Index>(shape.dims[d]);
      pad_kernel<T, Index><<<grid_for(count, kThreads), kThreads, 0, stream>>>(
          shape, walk, mode, count, static_cast<const T*>(input), static_cast<const T*>(fill), static_cast<T*>(output));
    });
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

cudaError_t one_hot(int64_t outer, int64_t depth, int64_t inner, bool indices_are_i64, const void* indices,
                    int element_size, const void* values, void* output, cudaStream_t stream) noexcept {
  const int64_t count = outer * depth * inner;
  if (count <= 0) return cudaSuccess;
  const bool known = with_bits(element_size, [&](auto bits) {
    using T = decltype(bits);
    with_index(count, [&](auto index) {
      using Index = decltype(index);
      one_hot_kernel<T, Index><<<grid_for(count, kThreads), kThreads, 0, stream>>>(
          Divider<Index>(inner), Divider<Index>(depth), inner, depth, count, indices_are_i64, indices,
          static_cast<const T*>(values), static_cast<T*>(output));
    });
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

cudaError_t trilu(int64_t matrices, int64_t rows, int64_t columns, bool upper, bool k_is_i64, const void* k,
                  int element_size, const void* input, void* output, cudaStream_t stream) noexcept {
  const int64_t count = matrices * rows * columns;
  if (count <= 0) return cudaSuccess;
  const bool known = with_bits(element_size, [&](auto bits) {
    using T = decltype(bits);
    with_index(count, [&](auto index) {
      using Index = decltype(index);
      trilu_kernel<T, Index><<<grid_for(count, kThreads), kThreads, 0, stream>>>(
          Divider<Index>(columns), Divider<Index>(rows), upper, k_is_i64, k, count, static_cast<const T*>(input),
          static_cast<T*>(output));
    });
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

}  // namespace tenon::cuda
