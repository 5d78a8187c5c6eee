#include "kernels/cuda/reduce.h"

#include <type_traits>

#include "kernels/cuda/epilogue.cuh"
#include "kernels/cuda/team.cuh"

namespace tenon::cuda {
namespace {

// Some axes of the input, from the innermost to the outermost.
struct Axes {
  int rank = 0;
  int64_t count = 1;  // elements
  int64_t sizes[kReduceMaxRank] = {};
  int64_t strides[kReduceMaxRank] = {};
  Divider<uint32_t> dividers[kReduceMaxRank];  // where count < 2^31

  void add(int64_t size, int64_t stride) {
    count *= size;
    if (rank > 0 && strides[rank - 1] * sizes[rank - 1] == stride) {
      sizes[rank - 1] *= size;
      return;
    }
    sizes[rank] = size;
    strides[rank++] = stride;
  }
  void finish() {
    for (int axis = 0; axis < rank && count > 0 && count <= kInt32Max; ++axis) {
      dividers[axis] = Divider<uint32_t>(sizes[axis]);
    }
  }
  // Where element n of these axes lies.
  __device__ __forceinline__ int64_t offset(int64_t n) const {
    if (rank == 0) return 0;
    if (rank == 1) return n * strides[0];
    int64_t result = 0;
    if (count <= kInt32Max) {
      uint32_t at = static_cast<uint32_t>(n);
      for (int axis = 0; axis + 1 < rank; ++axis) {
        const uint32_t rest = dividers[axis].split(&at);
        result += at * strides[axis];
        at = rest;
      }
      return result + at * strides[rank - 1];
    }
    for (int axis = 0; axis + 1 < rank; ++axis) {
      const int64_t rest = n / sizes[axis];
      result += (n - rest * sizes[axis]) * strides[axis];
      n = rest;
    }
    return result + n * strides[rank - 1];
  }
};

// How an element becomes a term, and how terms are combined.
enum class Term { kPlain, kMagnitude, kSquare, kExp };

enum class Combination { kAdd, kMultiply, kMax, kMin };

template <class A>
struct Combine {
  Combination combination;
  __device__ __forceinline__ A operator()(A a, A b) const {
    if (combination == Combination::kAdd) return a + b;
    if (combination == Combination::kMultiply) return a * b;
    if (a != a) return a;  // NaN
    return b != b || (combination == Combination::kMax ? a < b : b < a) ? b : a;
  }
};

// Integers are added up without the undefined overflow of signed ones.
template <class T>
using Accumulator = std::conditional_t<std::is_integral<T>::value, int64_t, float>;

template <class T>
__device__ __forceinline__ Accumulator<T> widen(T x) {
  if constexpr (std::is_integral<T>::value) {
    return x;
  } else {
    return to_float(x);
  }
}

template <>
__device__ __forceinline__ int64_t Combine<int64_t>::operator()(int64_t a, int64_t b) const {
  if (combination == Combination::kAdd) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  if (combination == Combination::kMultiply) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  return (combination == Combination::kMax ? a < b : b < a) ? b : a;
}

__device__ __forceinline__ float term_of(Term term, float x, float most) {
  if (term == Term::kPlain) return x;
  if (term == Term::kExp) return expf(x - most);
  return term == Term::kMagnitude ? fabsf(x) : x * x;
}
__device__ __forceinline__ int64_t term_of(Term term, int64_t x, int64_t) {
  const uint64_t bits = static_cast<uint64_t>(x);
  if (term == Term::kSquare) return static_cast<int64_t>(bits * bits);
  return term == Term::kMagnitude && x < 0 ? static_cast<int64_t>(0 - bits) : x;
}
struct Folding {
  Team team;
  Axes kept, folded;
};

// The fold of one list by its team; all threads of the block call.
template <class T, class A>
__device__ __forceinline__ A fold_list(const Folding& f, const T* x, bool active, Term term, Combination combination,
                                       A start, A most, A* shared) {
  const Combine<A> combine{combination};
  A result = start;
  if (active) {
#pragma unroll 4
    for (int64_t i = f.team.slice(); i < f.folded.count; i += f.team.slices) {
      result = combine(result, term_of(term, widen(x[f.folded.offset(i)]), most));
    }
  }
  return f.team.fold(result, shared, combine);
}

__device__ __forceinline__ float finish(ReduceKind kind, float sum, float most, int64_t count) {
  switch (kind) {
    case ReduceKind::kMean:
      return sum / static_cast<float>(count);
    case ReduceKind::kL2:
      return sqrtf(sum);
    case ReduceKind::kLogSum:
      return logf(sum);
    case ReduceKind::kLogSumExp:
      return most + logf(sum);
    default:
      return sum;
  }
}
__device__ __forceinline__ int64_t finish(ReduceKind kind, int64_t sum, int64_t, int64_t count) {
  return kind == ReduceKind::kMean && count > 0 ? sum / count : sum;
}

// A team for each output. Bound: memory.
template <class T, class A>
__global__ void __launch_bounds__(kTeamThreads)
    reduce_kernel(Folding f, ReduceKind kind, Term term, Combination combination, A start, const T* input,
                  DeviceEpilogue epilogue, T* output) {
  __shared__ A shared[kTeamThreads];
  const int64_t step = static_cast<int64_t>(gridDim.x) * f.team.lanes;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * f.team.lanes; first < f.kept.count; first += step) {
    const int64_t at = first + f.team.lane();
    const bool active = at < f.kept.count;
    const T* x = input + (active ? f.kept.offset(at) : 0);
    A most = 0;
    if constexpr (std::is_floating_point<A>::value) {
      if (term == Term::kExp) {
        most = fold_list<T, A>(f, x, active, Term::kPlain, Combination::kMax, -INFINITY, 0, shared);
        if (isinf(most)) most = 0;
      }
    }
    const A result =
        finish(kind, fold_list<T, A>(f, x, active, term, combination, start, most, shared), most, f.folded.count);
    if (!active || f.team.slice() != 0) continue;
    if constexpr (std::is_floating_point<A>::value) {
      output[at] = from_float<T>(apply(epilogue, result));
    } else {
      output[at] = static_cast<T>(result);
    }
  }
}

template <class T>
cudaError_t launch(const Folding& f, ReduceKind kind, const void* input, const Epilogue& epilogue, void* output,
                   cudaStream_t stream) {
  using A = Accumulator<T>;
  const Term term = kind == ReduceKind::kL1                                     ? Term::kMagnitude
                    : kind == ReduceKind::kL2 || kind == ReduceKind::kSumSquare ? Term::kSquare
                    : kind == ReduceKind::kLogSumExp                            ? Term::kExp
                                                                                : Term::kPlain;
  Combination combination = Combination::kAdd;
  A start = 0;
  if (kind == ReduceKind::kProd) {
    combination = Combination::kMultiply;
    start = 1;
  } else if (kind == ReduceKind::kMax || kind == ReduceKind::kMin) {
    combination = kind == ReduceKind::kMax ? Combination::kMax : Combination::kMin;
    using Limits = std::numeric_limits<std::conditional_t<std::is_integral<T>::value, T, float>>;
    const A least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    const A greatest = Limits::has_infinity ? Limits::infinity() : Limits::max();
    start = kind == ReduceKind::kMax ? least : greatest;
  }
  reduce_kernel<T, A><<<grid_for(f.kept.count, f.team.lanes), kTeamThreads, 0, stream>>>(
      f, kind, term, combination, start, static_cast<const T*>(input), epilogue, static_cast<T*>(output));
  return cudaGetLastError();
}

}  // namespace

cudaError_t reduce(ElementType type, ReduceKind kind, int rank, const int64_t* dims, const bool* folded,
                   const void* input, const Epilogue& epilogue, void* output, cudaStream_t stream) noexcept {
  if (!reduce_supports(type, kind)) return cudaErrorInvalidValue;
  Folding f;
  int64_t stride = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    if (dims[axis] != 1) (folded[axis] ? f.folded : f.kept).add(dims[axis], stride);
    stride *= dims[axis];
  }
  if (f.kept.count <= 0) return cudaSuccess;
  f.kept.finish();
  f.folded.finish();
  f.team = Team::make(f.kept.count, f.folded.count, f.kept.rank == 0 || f.kept.strides[0] != 1);
  switch (type) {
    case ElementType::kF32:
      return launch<float>(f, kind, input, epilogue, output, stream);
    case ElementType::kF16:
      return launch<__half>(f, kind, input, epilogue, output, stream);
    case ElementType::kI32:
      return launch<int32_t>(f, kind, input, epilogue, output, stream);
    default:
      return launch<int64_t>(f, kind, input, epilogue, output, stream);
  }
}

}  // namespace tenon::cuda
