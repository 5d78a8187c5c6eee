// cumulate: running sums or products along an axis.
#ifndef TENON_KERNELS_CPU_CUMULATE_H_
#define TENON_KERNELS_CPU_CUMULATE_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

struct CumulateShape {
  int64_t outer = 1;
  int64_t size = 0;  // of the axis
  int64_t inner = 1;
  bool exclusive = false;  // element i holds what came before it
  bool reverse = false;    // from the end of the axis
};

// f32 is accumulated in double. Integers wrap around, so they are accumulated as unsigned 64-bit ones.
template <class T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

// output = running `combine` of the input, beginning with `start`. Nothing is allocated; combine must not throw.
template <class T, class Combine>
void cumulate(const CumulateShape& shape, Accumulator<T> start, const Combine& combine, const T* input, T* output,
              const Parallel& parallel) {
  constexpr int64_t kLanes = 64;         // neighbours that are accumulated together
  constexpr int64_t kGrain = 16 * 1024;  // elements below which another thread costs more than it gives
  const int64_t blocks = (shape.inner + kLanes - 1) / kLanes;
  const int64_t work = std::max<int64_t>(shape.size * std::min(shape.inner, kLanes), 1);
  const int64_t step = shape.reverse ? -shape.inner : shape.inner;
  parallel_ranges(parallel, shape.outer * blocks, std::max<int64_t>(kGrain / work, 1), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block % blocks * kLanes, lanes = std::min(kLanes, shape.inner - first);
      int64_t at =
          block / blocks * shape.size * shape.inner + first + (shape.reverse ? (shape.size - 1) * shape.inner : 0);
      Accumulator<T> sums[kLanes];
      std::fill_n(sums, lanes, start);
      for (int64_t n = 0; n < shape.size; ++n, at += step) {
        for (int64_t i = 0; i < lanes; ++i) {
          const T x = input[at + i];
          if (shape.exclusive) output[at + i] = static_cast<T>(sums[i]);
          sums[i] = combine(sums[i], static_cast<Accumulator<T>>(x));
          if (!shape.exclusive) output[at + i] = static_cast<T>(sums[i]);
        }
      }
    }
  });
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_CUMULATE_H_
