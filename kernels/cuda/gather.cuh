// What gather and scatter share: the positions that indices name.
#ifndef TENON_KERNELS_CUDA_GATHER_CUH_
#define TENON_KERNELS_CUDA_GATHER_CUH_

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/gather.h"

namespace tenon::cuda {

constexpr int kGatherThreads = 256;

__device__ __forceinline__ int64_t load_index(const Indices& indices, int64_t at, int64_t size) {
  const int64_t index = indices.is_i64 ? static_cast<const int64_t*>(indices.data)[at]
                                       : static_cast<int64_t>(static_cast<const int32_t*>(indices.data)[at]);
  const int64_t place = index < 0 ? index + size : index;
  return place < 0 ? 0 : place >= size ? size - 1 : place;
}

// The position within a batch that tuple number `tuple` names.
__device__ __forceinline__ int64_t tuple_position(const GatherShape& shape, const Indices& indices, int64_t tuple) {
  int64_t at = 0;
  for (int d = 0; d < shape.depth; ++d) {
    at = at * shape.sizes[d] + load_index(indices, tuple * shape.depth + d, shape.sizes[d]);
  }
  return at;
}

// Index tensors beside a data tensor of the same rank.
template <class Index>
struct ElementWalk {
  int rank;
  int axis;
  int64_t axis_size;  // of the data
  Divider<Index> dims[kGatherMaxRank];
  int64_t strides[kGatherMaxRank];  // of the data
};

template <class Index>
ElementWalk<Index> make_element_walk(int rank, int axis, const int64_t* data_dims, const int64_t* index_dims) {
  ElementWalk<Index> walk;
  walk.rank = rank;
  walk.axis = axis;
  walk.axis_size = data_dims[axis];
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    walk.dims[d] = Divider<Index>(index_dims[d]);
    walk.strides[d] = stride;
    stride *= data_dims[d];
  }
  return walk;
}

// The offset in the data of what element number `linear` of the indices names.
template <class Index>
__device__ __forceinline__ int64_t element_offset(const ElementWalk<Index>& walk, const Indices& indices,
                                                  int64_t linear) {
  Index rest = static_cast<Index>(linear);
  int64_t offset = 0;
  for (int d = walk.rank - 1; d >= 0; --d) {
    Index place = rest;
    rest = walk.dims[d].split(&place);
    if (d != walk.axis) offset += static_cast<int64_t>(place) * walk.strides[d];
  }
  return offset + load_index(indices, linear, walk.axis_size) * walk.strides[walk.axis];
}

inline int64_t element_count(int rank, const int64_t* dims) {
  int64_t count = 1;
  for (int d = 0; d < rank; ++d) count *= dims[d];
  return count;
}

// Calls function(T{}, inner) with the widest type that holds whole runs of `inner` elements on both sides, and the
// run's length in it; returns false for an element size that is not 1, 2, 4 or 8.
template <class Function>
bool with_runs(int element_size, int64_t inner, const void* a, const void* b, const Function& function) {
  if (element_size != 1 && element_size != 2 && element_size != 4 && element_size != 8) return false;
  while (element_size < 16 && inner % 2 == 0 && is_aligned(a, 2 * element_size) && is_aligned(b, 2 * element_size)) {
    element_size *= 2;
    inner /= 2;
  }
  if (element_size == 16) {
    function(uint4{}, inner);
    return true;
  }
  return with_bits(element_size, [&](auto bits) { function(bits, inner); });
}

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_GATHER_CUH_
