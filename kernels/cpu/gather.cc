#include "kernels/cpu/gather.h"

#include <cstring>

#include "kernels/cpu/internal/indices.h"
#include "kernels/cpu/internal/move.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;  // elements below which another thread costs more than it gives

template <class T, class Index>
void run(const GatherShape& shape, const Index* indices, const T* input, T* output, const Parallel& parallel) {
  int64_t batch = shape.inner;  // elements of one
  for (int d = 0; d < shape.depth; ++d) batch *= shape.sizes[d];
  const int64_t runs = shape.batches * shape.tuples;
  parallel_ranges(parallel, runs, std::max<int64_t>(kGrain / std::max<int64_t>(shape.inner, 1), 1),
                  [&](int64_t begin, int64_t end) {
                    int64_t b = begin / shape.tuples, t = begin % shape.tuples;
                    for (int64_t n = begin; n < end; ++n) {
                      const Index* tuple = indices + (shape.shared ? t : n) * shape.depth;
                      const T* from = input + b * batch + position(tuple, shape.depth, shape.sizes) * shape.inner;
                      T* to = output + n * shape.inner;
                      // A call to memcpy costs more than a short run.
                      if (shape.inner <= 16) {
                        for (int64_t i = 0; i < shape.inner; ++i) to[i] = from[i];
                      } else {
                        std::memcpy(to, from, static_cast<size_t>(shape.inner) * sizeof(T));
                      }
                      if (++t == shape.tuples) t = 0, ++b;
                    }
                  });
}

template <class T, class Index>
void run_elements(int rank, int axis, const int64_t* input_dims, const int64_t* index_dims, const Index* indices,
                  const T* input, T* output, const Parallel& parallel) {
  int64_t strides[kGatherMaxRank];
  int64_t step = 1, rows = 1;
  for (int d = rank; d-- > 0;) {
    strides[d] = step;
    step *= input_dims[d];
  }
  const int last = rank - 1;
  for (int d = 0; d < last; ++d) rows *= index_dims[d];
  const int64_t columns = index_dims[last], size = input_dims[axis], stride = strides[axis];
  const int64_t move = axis == last ? 0 : 1;  // of the input, along a row
  if (columns == 0) return;
  parallel_ranges(parallel, rows, std::max<int64_t>(kGrain / columns, 1), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* from = input;
      int64_t rest = row;
      for (int d = last; d-- > 0;) {
        if (d != axis) from += rest % index_dims[d] * strides[d];
        rest /= index_dims[d];
      }
      const Index* index = indices + row * columns;
      T* to = output + row * columns;
      for (int64_t i = 0; i < columns; ++i) to[i] = from[place(index[i], size) * stride + i * move];
    }
  });
}

}  // namespace

void gather(const GatherShape& shape, Indices indices, int element_size, const void* input, void* output,
            const Parallel& parallel) noexcept {
  with_element(element_size, [&](auto element) {
    with_index(indices, [&](const auto* index) {
      using T = decltype(element);
      run(shape, index, static_cast<const T*>(input), static_cast<T*>(output), parallel);
    });
  });
}

void gather_elements(int rank, int axis, const int64_t* input_dims, const int64_t* index_dims, Indices indices,
                     int element_size, const void* input, void* output, const Parallel& parallel) noexcept {
  with_element(element_size, [&](auto element) {
    with_index(indices, [&](const auto* index) {
      using T = decltype(element);
      run_elements(rank, axis, input_dims, index_dims, index, static_cast<const T*>(input), static_cast<T*>(output),
                   parallel);
    });
  });
}

}  // namespace tenon::cpu
