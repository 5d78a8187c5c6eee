// scatter: writes runs of elements to places that indices name, in the order of the indices.
#ifndef TENON_KERNELS_CPU_SCATTER_H_
#define TENON_KERNELS_CPU_SCATTER_H_

#include <cstdint>

#include "kernels/cpu/gather.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

// What becomes of the old value y and the update u: u, y + u, y * u, min(y, u), max(y, u). Integers wrap around; a NaN
// stays one.
enum class Reduction { kNone, kAdd, kMul, kMin, kMax };

template <class T>
T reduce(Reduction reduction, T y, T u);

// output[tuple t][:] = reduce(output[tuple t][:], updates[t][:]) for each tuple in turn; `shape` is that of gather with
// one batch. T: all number types; for kNone the unsigned one of an element's size serves all types.
template <class T>
void scatter(const GatherShape& shape, Reduction reduction, Indices indices, const T* updates, T* output,
             const Parallel& parallel) noexcept;

// output[i with i[axis] replaced by indices[i]] = reduce(the same, updates[i]) for all i of index_dims, in order.
// REQUIRES: as gather_elements, for output_dims.
template <class T>
void scatter_elements(int rank, int axis, const int64_t* output_dims, const int64_t* index_dims, Reduction reduction,
                      Indices indices, const T* updates, T* output, const Parallel& parallel) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_SCATTER_H_
