#include "kernels/cpu/scatter.h"

#include <cstring>
#include <type_traits>

#include "kernels/cpu/internal/indices.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;  // elements below which another thread costs more than it gives

// Calls body with a function of (old, update) for the reduction.
template <class T, class Body>
void with_reduction(Reduction reduction, Body&& body) {
  switch (reduction) {
    case Reduction::kNone:
      return body([](T, T u) { return u; });
    case Reduction::kAdd:
      return body([](T y, T u) {
        if constexpr (std::is_integral_v<T>) {
          return static_cast<T>(static_cast<uint64_t>(y) + static_cast<uint64_t>(u));
        } else {
          return y + u;
        }
      });
    case Reduction::kMul:
      return body([](T y, T u) {
        if constexpr (std::is_integral_v<T>) {
          return static_cast<T>(static_cast<uint64_t>(y) * static_cast<uint64_t>(u));
        } else {
          return y * u;
        }
      });
    case Reduction::kMin:
      return body([](T y, T u) { return y < u || y != y ? y : u; });
    case Reduction::kMax:
      return body([](T y, T u) { return y > u || y != y ? y : u; });
  }
}

}  // namespace

template <class T>
T reduce(Reduction reduction, T y, T u) {
  T result{};
  with_reduction<T>(reduction, [&](auto combine) { result = combine(y, u); });
  return result;
}

template <class T>
void scatter(const GatherShape& shape, Reduction reduction, Indices indices, const T* updates, T* output,
             const Parallel& parallel) noexcept {
  const int64_t inner = shape.inner;
  int64_t positions = 1;
  for (int d = 0; d < shape.depth; ++d) positions *= shape.sizes[d];
  if (shape.tuples == 0 || inner == 0) return;
  // Tuples may meet, so every thread walks all of them: it owns some columns of each run, or some positions.
  const bool by_column = inner >= 64 * parallel_threads(parallel);
  const int64_t work = std::max<int64_t>(shape.tuples * inner / (by_column ? inner : positions), 1);
  with_index(indices, [&](const auto* index) {
    with_reduction<T>(reduction, [&](auto combine) {
      parallel_ranges(parallel, by_column ? inner : positions, std::max<int64_t>(kGrain / work, 1),
                      [&](int64_t begin, int64_t end) {
                        const int64_t first = by_column ? begin : 0, last = by_column ? end : inner;
                        for (int64_t t = 0; t < shape.tuples; ++t) {
                          const int64_t at = position(index + t * shape.depth, shape.depth, shape.sizes);
                          if (!by_column && (at < begin || at >= end)) continue;
                          const T* from = updates + t * inner;
                          T* to = output + at * inner;
                          for (int64_t i = first; i < last; ++i) to[i] = combine(to[i], from[i]);
                        }
                      });
    });
  });
}

template <class T>
void scatter_elements(int rank, int axis, const int64_t* output_dims, const int64_t* index_dims, Reduction reduction,
                      Indices indices, const T* updates, T* output, const Parallel& parallel) noexcept {
  int64_t strides[kGatherMaxRank], index_strides[kGatherMaxRank];
  int64_t step = 1, index_step = 1;
  for (int d = rank; d-- > 0;) {
    strides[d] = step;
    index_strides[d] = index_step;
    step *= output_dims[d];
    index_step *= index_dims[d];
  }
  if (index_step == 0) return;
  // Updates meet only where all but the axis agree: a lane.
  const int64_t count = index_dims[axis], size = output_dims[axis], stride = strides[axis];
  with_index(indices, [&](const auto* index) {
    with_reduction<T>(reduction, [&](auto combine) {
      parallel_ranges(parallel, index_step / count, std::max<int64_t>(kGrain / count, 1),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t lane = begin; lane < end; ++lane) {
                          int64_t from = 0, to = 0, rest = lane;
                          for (int d = rank; d-- > 0;) {
                            if (d == axis) continue;
                            from += rest % index_dims[d] * index_strides[d];
                            to += rest % index_dims[d] * strides[d];
                            rest /= index_dims[d];
                          }
                          for (int64_t j = 0; j < count; ++j, from += index_strides[axis]) {
                            T& y = output[to + place(index[from], size) * stride];
                            y = combine(y, updates[from]);
                          }
                        }
                      });
    });
  });
}

#define TENON_SCATTER(T)                                                                                     \
  template T reduce(Reduction, T, T);                                                                        \
  template void scatter(const GatherShape&, Reduction, Indices, const T*, T*, const Parallel&) noexcept;     \
  template void scatter_elements(int, int, const int64_t*, const int64_t*, Reduction, Indices, const T*, T*, \
                                 const Parallel&) noexcept;
TENON_SCATTER(float)
TENON_SCATTER(double)
TENON_SCATTER(int8_t)
TENON_SCATTER(uint8_t)
TENON_SCATTER(int16_t)
TENON_SCATTER(uint16_t)
TENON_SCATTER(int32_t)
TENON_SCATTER(uint32_t)
TENON_SCATTER(int64_t)
TENON_SCATTER(uint64_t)
#undef TENON_SCATTER

}  // namespace tenon::cpu
