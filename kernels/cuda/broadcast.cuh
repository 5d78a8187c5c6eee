// broadcast: y = function(operands...) over operands that numpy's broadcasting brings to one shape; any element types.
#ifndef TENON_KERNELS_CUDA_BROADCAST_CUH_
#define TENON_KERNELS_CUDA_BROADCAST_CUH_

#include <algorithm>
#include <utility>

#include "kernels/common/broadcast.h"
#include "kernels/cuda/common.cuh"

namespace tenon::cuda {

constexpr int kBroadcastThreads = 256;

// The shape in packs along the last dimension.
template <class Index, int kOperands>
struct BroadcastWalk {
  int rank;
  unsigned repeats;  // bit k: operand k does not move along the last dimension
  Divider<Index> dims[kBroadcastMaxRank];
  int64_t strides[kOperands][kBroadcastMaxRank];
};

template <int kPack, class T>
__device__ __forceinline__ Pack<T, kPack> load_pack(const T* p, bool repeat) {
  if (!repeat) return *reinterpret_cast<const Pack<T, kPack>*>(p);
  Pack<T, kPack> v;
  const T value = *p;
#pragma unroll
  for (int j = 0; j < kPack; ++j) v.v[j] = value;
  return v;
}

template <int kPack, class Function, class Y, class... A>
__device__ __forceinline__ void store_pack(const Function& function, Y* y, const Pack<A, kPack>&... a) {
  Pack<Y, kPack> v;
#pragma unroll
  for (int j = 0; j < kPack; ++j) v.v[j] = function(a.v[j]...);
  *reinterpret_cast<Pack<Y, kPack>*>(y) = v;
}

template <int kPack, class Index, class Function, class Y, class... A, size_t... K>
__device__ __forceinline__ void broadcast_pack(std::index_sequence<K...>, const Function& function,
                                               const BroadcastWalk<Index, sizeof...(A)>& walk, int64_t i, Y* y,
                                               const A*... a) {
  Index rest = static_cast<Index>(i);
  int64_t offsets[sizeof...(A)] = {};
  for (int d = walk.rank - 1; d > 0; --d) {
    Index place = rest;
    rest = walk.dims[d].split(&place);
    ((offsets[K] += place * walk.strides[K][d]), ...);
  }
  ((offsets[K] += rest * walk.strides[K][0]), ...);
  store_pack<kPack>(function, y + i * kPack,
                    load_pack<kPack>(a + offsets[K], kPack > 1 && (walk.repeats >> K & 1) != 0)...);
}

// Threads stride over packs of the output; each finds its operands by division. An operand that does not move along the
// last dimension is repeated within the pack. Bound: memory, but for small packs of many dimensions.
template <int kPack, class Index, class Function, class Y, class... A>
__global__ void __launch_bounds__(kBroadcastThreads)
    broadcast_kernel(Function function, BroadcastWalk<Index, sizeof...(A)> walk, int64_t packs, Y* y, const A*... a) {
  for (int64_t i = global_thread(); i < packs; i += global_threads()) {
    broadcast_pack<kPack>(std::index_sequence_for<A...>(), function, walk, i, y, a...);
  }
}

template <int kPack, class Function, class Y, class... A>
cudaError_t launch_broadcast(const Function& function, const Broadcast<sizeof...(A)>& shape, cudaStream_t stream, Y* y,
                             const A*... a) {
  constexpr int kOperands = sizeof...(A);
  const int last = shape.rank - 1;
  int64_t packs = 1;
  for (int i = 0; i < shape.rank; ++i) packs *= i == last ? shape.dims[i] / kPack : shape.dims[i];
  with_index(packs, [&](auto index) {
    using Index = decltype(index);
    BroadcastWalk<Index, kOperands> walk;
    walk.rank = shape.rank;
    walk.repeats = 0;
    for (int k = 0; k < kOperands; ++k) walk.repeats |= (shape.strides[k][last] == 0 ? 1u : 0u) << k;
    for (int i = 0; i < shape.rank; ++i) {
      const int64_t step = i == last ? kPack : 1;
      walk.dims[i] = Divider<Index>(shape.dims[i] / step);
      for (int k = 0; k < kOperands; ++k) walk.strides[k][i] = shape.strides[k][i] * step;
    }
    broadcast_kernel<kPack, Index, Function, Y, A...>
        <<<grid_for(packs, kBroadcastThreads), kBroadcastThreads, 0, stream>>>(function, walk, packs, y, a...);
  });
  return cudaGetLastError();
}

inline bool operand_packs(const void* pointer, int element_size, int pack, int rank, const int64_t* strides) {
  const int64_t inner = strides[rank - 1];
  if (inner == 0) return true;
  if (inner != 1 || !is_aligned(pointer, static_cast<size_t>(pack * element_size))) return false;
  return std::all_of(strides, strides + rank - 1, [=](int64_t stride) { return stride % pack == 0; });
}

template <class Function, class Y, class... A, size_t... K>
cudaError_t run_broadcast(std::index_sequence<K...>, const Function& function, const Broadcast<sizeof...(A)>& given,
                          cudaStream_t stream, Y* y, const A*... a) {
  constexpr int kPack = static_cast<int>(16 / std::max({sizeof(Y), sizeof(A)...}));
  for (int i = 0; i < given.rank; ++i) {
    if (given.dims[i] <= 0) return cudaSuccess;
  }
  Broadcast<sizeof...(A)> shape = collapse(given);
  const int last = shape.rank - 1;
  const bool packs = is_aligned(y, kPack * sizeof(Y)) &&
                     (operand_packs(a, static_cast<int>(sizeof(A)), kPack, shape.rank, shape.strides[K]) && ...);
  if (!packs || shape.dims[last] < kPack || (shape.rank > 1 && shape.dims[last] % kPack != 0)) {
    return launch_broadcast<1>(function, shape, stream, y, a...);
  }
  // One run: whole packs first, then the rest.
  const int64_t count = shape.dims[last];
  const int64_t done = count - count % kPack;
  shape.dims[last] = done;
  const cudaError_t error = launch_broadcast<kPack>(function, shape, stream, y, a...);
  if (error != cudaSuccess || done == count) return error;
  shape.dims[last] = count - done;
  return launch_broadcast<1>(function, shape, stream, y + done, (a + done * shape.strides[K][last])...);
}

// y[i] = function(a[i]...) with `function` a copyable object with a const __device__ call operator. Pointers are
// aligned to their element. y may be the same buffer as an operand of its element type that is dense and not repeated.
template <class Function, class Y, class... A>
cudaError_t broadcast(const Function& function, const Broadcast<sizeof...(A)>& shape, cudaStream_t stream, Y* y,
                      const A*... a) {
  return run_broadcast(std::index_sequence_for<A...>(), function, shape, stream, y, a...);
}

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_BROADCAST_CUH_
