#include "kernels/cuda/gather.cuh"

namespace tenon::cuda {
namespace {

// Threads stride over the output; neighbours of a run read the same indices. Bound: memory.
template <class T, class Index>
__global__ void __launch_bounds__(kGatherThreads)
    gather_kernel(GatherShape shape, Divider<Index> inner, Divider<Index> tuples, int64_t positions, int64_t count,
                  Indices indices, const T* input, T* output) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    Index place = static_cast<Index>(i);
    Index tuple = inner.split(&place);
    const Index batch = tuples.split(&tuple);
    const int64_t row = shape.shared ? static_cast<int64_t>(tuple)
                                     : static_cast<int64_t>(batch) * shape.tuples + static_cast<int64_t>(tuple);
    const int64_t at = static_cast<int64_t>(batch) * positions + tuple_position(shape, indices, row);
    output[i] = input[at * shape.inner + static_cast<int64_t>(place)];
  }
}

// Threads stride over the elements of the indices. Bound: memory, by the places that are read.
template <class T, class Index>
__global__ void __launch_bounds__(kGatherThreads)
    gather_elements_kernel(ElementWalk<Index> walk, int64_t count, Indices indices, const T* input, T* output) {
  for (int64_t i = global_thread(); i < count; i += global_threads()) {
    output[i] = input[element_offset(walk, indices, i)];
  }
}

}  // namespace

cudaError_t gather(const GatherShape& given, Indices indices, int element_size, const void* input, void* output,
                   cudaStream_t stream) noexcept {
  if (given.depth < 1 || given.depth > kGatherMaxRank) return cudaErrorInvalidValue;
  if (given.batches * given.tuples * given.inner <= 0) return cudaSuccess;
  const bool known = with_runs(element_size, given.inner, input, output, [&](auto element, int64_t inner) {
    using T = decltype(element);
    GatherShape shape = given;
    shape.inner = inner;
    int64_t positions = 1;
    for (int d = 0; d < shape.depth; ++d) positions *= shape.sizes[d];
    const int64_t count = shape.batches * shape.tuples * shape.inner;
    with_index(count, [&](auto index) {
      using Index = decltype(index);
      gather_kernel<T, Index><<<grid_for(count, kGatherThreads), kGatherThreads, 0, stream>>>(
          shape, Divider<Index>(shape.inner), Divider<Index>(shape.tuples), positions, count, indices,
          static_cast<const T*>(input), static_cast<T*>(output));
    });
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

cudaError_t gather_elements(int rank, int axis, const int64_t* input_dims, const int64_t* index_dims, Indices indices,
                            int element_size, const void* input, void* output, cudaStream_t stream) noexcept {
  if (rank < 1 || rank > kGatherMaxRank || axis < 0 || axis >= rank) return cudaErrorInvalidValue;
  const int64_t count = element_count(rank, index_dims);
  if (count == 0) return cudaSuccess;
  const bool known = with_bits(element_size, [&](auto bits) {
    using T = decltype(bits);
    with_index(count, [&](auto index) {
      using Index = decltype(index);
      gather_elements_kernel<T, Index><<<grid_for(count, kGatherThreads), kGatherThreads, 0, stream>>>(
          make_element_walk<Index>(rank, axis, input_dims, index_dims), count, indices, static_cast<const T*>(input),
          static_cast<T*>(output));
    });
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

}  // namespace tenon::cuda
