#include "kernels/cuda/arg_extreme.h"

#include "kernels/cuda/combine.cuh"
#include "kernels/cuda/team.cuh"

namespace tenon::cuda {
namespace {

// A team for each list, which it reads twice: for its extreme element, then for the places that hold it. Bound: memory.
template <class T, class A>
__global__ void __launch_bounds__(kTeamThreads)
    arg_kernel(Team team, int64_t lists, int64_t axis, int64_t inner, Combination combination, bool last, A start,
               const T* input, int64_t* output) {
  __shared__ A shared[kTeamThreads];
  __shared__ int64_t places[kTeamThreads];
  const Combine<A> extreme{combination};
  const Combine<int64_t> best{last ? Combination::kMax : Combination::kMin};
  const int64_t step = static_cast<int64_t>(gridDim.x) * team.lanes;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * team.lanes; first < lists; first += step) {
    const int64_t list = first + team.lane();
    const int64_t end = list < lists ? axis : 0;
    const int64_t row = inner == 1 ? list : list / inner;
    const T* x = input + row * axis * inner + (list - row * inner);
    A most = start;
    for (int64_t i = team.slice(); i < end; i += team.slices) most = extreme(most, widen(x[i * inner]));
    most = team.fold(most, shared, extreme);
    int64_t place = last ? -1 : axis;
    for (int64_t i = team.slice(); i < end; i += team.slices) {
      const A value = widen(x[i * inner]);
      if (value == most || (value != value && most != most)) place = best(place, i);
    }
    place = team.fold(place, places, best);
    if (list < lists && team.slice() == 0) output[list] = place;
  }
}

template <class T>
cudaError_t launch(bool smallest, bool last, int64_t outer, int64_t axis, int64_t inner, const void* input,
                   int64_t* output, cudaStream_t stream) {
  using A = Accumulator<T>;
  using Limits = std::numeric_limits<A>;
  const A least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  const A greatest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  const Team team = Team::make(outer * inner, axis, inner == 1);
  arg_kernel<T, A><<<grid_for(outer * inner, team.lanes), kTeamThreads, 0, stream>>>(
      team, outer * inner, axis, inner, smallest ? Combination::kMin : Combination::kMax, last,
      smallest ? greatest : least, static_cast<const T*>(input), output);
  return cudaGetLastError();
}

}  // namespace

cudaError_t arg_extreme(ElementType type, bool smallest, bool last, int64_t outer, int64_t axis, int64_t inner,
                        const void* input, int64_t* output, cudaStream_t stream) noexcept {
  if (outer <= 0 || axis <= 0 || inner <= 0) return cudaSuccess;
  switch (type) {
    case ElementType::kF32:
      return launch<float>(smallest, last, outer, axis, inner, input, output, stream);
    case ElementType::kF16:
      return launch<__half>(smallest, last, outer, axis, inner, input, output, stream);
    case ElementType::kI32:
      return launch<int32_t>(smallest, last, outer, axis, inner, input, output, stream);
    case ElementType::kI64:
      return launch<int64_t>(smallest, last, outer, axis, inner, input, output, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace tenon::cuda
