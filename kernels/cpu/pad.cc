#include "kernels/cpu/pad.h"

#include <cstring>

#include "kernels/cpu/internal/move.h"

namespace tenon::cpu {
namespace {

template <class T>
void copy(const T* from, int64_t count, T* to) {
  if (count <= 16) {  // a call to memcpy costs more
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
  } else {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  }
}

template <class T>
void run(const PadShape& shape, const T* input, T fill, T* output, const Parallel& parallel) {
  constexpr int64_t kGrain = 16 * 1024;  // elements below which another thread costs more than it gives
  const int last = shape.rank - 1;
  const int64_t columns = shape.dims[last], inner = shape.inner;
  if (columns * inner == 0) return;
  int64_t rows = 1;
  for (int d = 0; d < last; ++d) rows *= shape.dims[d];
  parallel_ranges(parallel, rows, std::max<int64_t>(kGrain / (columns * inner), 1), [&](int64_t first, int64_t stop) {
    for (int64_t row = first; row < stop; ++row) {
      T* to = output + row * columns * inner;
      int64_t from = 0, rest = row;
      bool outside = false;
      for (int d = last; d-- > 0;) {
        const int64_t at = shape.maps[d][rest % shape.dims[d]];
        rest /= shape.dims[d];
        outside = outside || at < 0;
        from += at * shape.strides[d];
      }
      if (outside) {
        std::fill_n(to, columns * inner, fill);
        continue;
      }
      const auto border = [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t at = shape.maps[last][i];
          if (at < 0) {
            std::fill_n(to + i * inner, inner, fill);
          } else {
            copy(input + from + at * inner, inner, to + i * inner);
          }
        }
      };
      border(0, shape.begin);
      if (shape.begin < shape.end) {
        copy(input + from + shape.maps[last][shape.begin] * inner, (shape.end - shape.begin) * inner,
             to + shape.begin * inner);
      }
      border(shape.end, columns);
    }
  });
}

}  // namespace

void pad(const PadShape& shape, int element_size, const void* input, const void* fill, void* output,
         const Parallel& parallel) noexcept {
  with_element(element_size, [&](auto element) {
    using T = decltype(element);
    T value;
    std::memcpy(&value, fill, sizeof value);
    run(shape, static_cast<const T*>(input), value, static_cast<T*>(output), parallel);
  });
}

}  // namespace tenon::cpu
