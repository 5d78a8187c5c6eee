#include "kernels/cuda/gather.cuh"

// Two passes make the result that of the updates in their order: first each position learns the number of the last
// update that names it, then those updates write.

namespace tenon::cuda {
namespace {

__global__ void __launch_bounds__(kGatherThreads) claim_kernel(GatherShape shape, Indices indices, int32_t* owners) {
  for (int64_t t = global_thread(); t < shape.tuples; t += global_threads()) {
    atomicMax(owners + tuple_position(shape, indices, t), static_cast<int32_t>(t));
  }
}

// Threads stride over the updates. Bound: memory.
template <class T, class Index>
__global__ void __launch_bounds__(kGatherThreads)
    scatter_kernel(GatherShape shape, Divider<Index> inner, int64_t count, Indices indices, const int32_t* owners,
                   const T* updates, T* output) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    Index place = static_cast<Index>(i);
    const Index tuple = inner.split(&place);
    const int64_t at = tuple_position(shape, indices, static_cast<int64_t>(tuple));
    if (owners[at] == static_cast<int32_t>(tuple)) {
      output[at * shape.inner + static_cast<int64_t>(place)] = updates[i];
    }
  }
}

template <class Index>
__global__ void __launch_bounds__(kGatherThreads)
    claim_elements_kernel(ElementWalk<Index> walk, int64_t count, Indices indices, int32_t* owners) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    atomicMax(owners + element_offset(walk, indices, i), static_cast<int32_t>(i));
  }
}

template <class T, class Index>
__global__ void __launch_bounds__(kGatherThreads)
    scatter_elements_kernel(ElementWalk<Index> walk, int64_t count, Indices indices, const int32_t* owners,
                            const T* updates, T* output) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    const int64_t at = element_offset(walk, indices, i);
    if (owners[at] == static_cast<int32_t>(i)) output[at] = updates[i];
  }
}

// No update's: -1 everywhere.
cudaError_t clear_owners(int32_t* owners, int64_t count, cudaStream_t stream) {
  return cudaMemsetAsync(owners, 0xff, static_cast<size_t>(count) * sizeof(int32_t), stream);
}

}  // namespace

cudaError_t scatter(const GatherShape& given, Indices indices, int element_size, const void* updates, int32_t* owners,
                    void* output, cudaStream_t stream) noexcept {
  if (given.depth < 1 || given.depth > kGatherMaxRank || given.batches != 1 || given.tuples > kInt32Max) {
    return cudaErrorInvalidValue;
  }
  if (given.tuples * given.inner <= 0) return cudaSuccess;
  int64_t positions = 1;
  for (int d = 0; d < given.depth; ++d) positions *= given.sizes[d];
  const cudaError_t cleared = clear_owners(owners, positions, stream);
  if (cleared != cudaSuccess) return cleared;
  claim_kernel<<<grid_for(given.tuples, kGatherThreads), kGatherThreads, 0, stream>>>(given, indices, owners);
  const bool known = with_runs(element_size, given.inner, updates, output, [&](auto element, int64_t inner) {
    using T = decltype(element);
    GatherShape shape = given;
    shape.inner = inner;
    const int64_t count = shape.tuples * shape.inner;
    with_index(count, [&](auto index) {
      using Index = decltype(index);
      scatter_kernel<T, Index><<<grid_for(count, kGatherThreads), kGatherThreads, 0, stream>>>(
          shape, Divider<Index>(shape.inner), count, indices, owners, static_cast<const T*>(updates),
          static_cast<T*>(output));
    });
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

cudaError_t scatter_elements(int rank, int axis, const int64_t* output_dims, const int64_t* index_dims, Indices indices,
                             int element_size, const void* updates, int32_t* owners, void* output,
                             cudaStream_t stream) noexcept {
  const bool fits = rank >= 1 && rank <= kGatherMaxRank && axis >= 0 && axis < rank;
  const int64_t count = fits ? element_count(rank, index_dims) : 0;
  if (!fits || count > kInt32Max) return cudaErrorInvalidValue;
  if (count == 0) return cudaSuccess;
  const cudaError_t cleared = clear_owners(owners, element_count(rank, output_dims), stream);
  if (cleared != cudaSuccess) return cleared;
  const ElementWalk<uint32_t> walk = make_element_walk<uint32_t>(rank, axis, output_dims, index_dims);
  const unsigned grid = grid_for(count, kGatherThreads);
  claim_elements_kernel<uint32_t><<<grid, kGatherThreads, 0, stream>>>(walk, count, indices, owners);
  const bool known = with_bits(element_size, [&](auto bits) {
    using T = decltype(bits);
    scatter_elements_kernel<T, uint32_t><<<grid, kGatherThreads, 0, stream>>>(
        walk, count, indices, owners, static_cast<const T*>(updates), static_cast<T*>(output));
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

}  // namespace tenon::cuda
