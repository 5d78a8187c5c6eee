#include "kernels/cpu/transpose.h"

#include <cstring>

#include "kernels/cpu/internal/move.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;  // elements below which another thread costs more than it gives

// Output dimensions with their input strides, after dropping size 1 and joining dimensions that stay neighbours.
struct Walk {
  int rank = 0;
  int64_t dims[kTransposeMaxRank];
  int64_t strides[kTransposeMaxRank];
};

Walk make_walk(int rank, const int64_t* input_dims, const int* perm) {
  int64_t input_strides[kTransposeMaxRank];
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    input_strides[i] = stride;
    stride *= input_dims[i];
  }
  Walk walk;
  for (int i = 0; i < rank; ++i) {
    const int64_t size = input_dims[perm[i]];
    const int64_t step = input_strides[perm[i]];
    if (size == 1) continue;
    if (walk.rank > 0 && walk.strides[walk.rank - 1] == step * size) {
      walk.dims[walk.rank - 1] *= size;
      walk.strides[walk.rank - 1] = step;
      continue;
    }
    walk.dims[walk.rank] = size;
    walk.strides[walk.rank] = step;
    ++walk.rank;
  }
  return walk;
}

// Calls function(input offset, output offset) for indices [begin, end) of the dimensions listed in `outer`.
template <class Function>
void for_each_outer(const Walk& walk, const int* outer, int count, const int64_t* output_strides, int64_t begin,
                    int64_t end, const Function& function) {
  for (int64_t index = begin; index < end; ++index) {
    int64_t rest = index;
    int64_t from = 0;
    int64_t to = 0;
    for (int i = count - 1; i >= 0; --i) {
      const int d = outer[i];
      const int64_t position = rest % walk.dims[d];
      rest /= walk.dims[d];
      from += position * walk.strides[d];
      to += position * output_strides[d];
    }
    function(from, to);
  }
}

template <class T>
void run(const Walk& walk, const T* input, T* output, const Parallel& parallel) {
  int64_t output_strides[kTransposeMaxRank];
  int64_t total = 1;
  for (int i = walk.rank - 1; i >= 0; --i) {
    output_strides[i] = total;
    total *= walk.dims[i];
  }
  if (total == 0) return;
  if (walk.rank == 0) {
    *output = *input;
    return;
  }
  const int last = walk.rank - 1;
  int outer[kTransposeMaxRank];
  int outer_count = 0;
  if (walk.strides[last] == 1) {
    // Rows stay rows.
    const int64_t row = walk.dims[last];
    for (int i = 0; i < last; ++i) outer[outer_count++] = i;
    if (outer_count == 0) {
      parallel_ranges(parallel, row, kGrain, [&](int64_t begin, int64_t end) {
        std::memcpy(output + begin, input + begin, (end - begin) * sizeof(T));
      });
      return;
    }
    parallel_ranges(parallel, total / row, std::max<int64_t>(kGrain / row, 1), [&](int64_t begin, int64_t end) {
      for_each_outer(walk, outer, outer_count, output_strides, begin, end, [&](int64_t from, int64_t to) {
        // A call to memcpy costs more than a short row.
        if (row <= 16) {
          for (int64_t i = 0; i < row; ++i) output[to + i] = input[from + i];
        } else {
          std::memcpy(output + to, input + from, row * sizeof(T));
        }
      });
    });
    return;
  }
  // The input's fastest dimension and the output's fastest one form matrices to transpose.
  int fast = 0;
  while (walk.strides[fast] != 1) ++fast;
  for (int i = 0; i < last; ++i) {
    if (i != fast) outer[outer_count++] = i;
  }
  const int64_t columns = walk.dims[fast];  // contiguous in the input
  const int64_t rows = walk.dims[last];     // contiguous in the output
  // Long matrices are cut so that one matrix alone feeds all threads.
  const int64_t piece = std::clamp<int64_t>((kGrain / rows + 15) / 16 * 16, 16, (columns + 15) / 16 * 16);
  const int64_t pieces = (columns + piece - 1) / piece;
  const int64_t matrices = total / (rows * columns);
  const int64_t grain = std::max<int64_t>(kGrain / (rows * std::min(piece, columns)), 1);
  parallel_ranges(parallel, matrices * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % pieces * piece;
      const int64_t count = std::min(piece, columns - first);
      for_each_outer(walk, outer, outer_count, output_strides, task / pieces, task / pieces + 1,
                     [&](int64_t from, int64_t to) {
                       transpose_matrix(rows, count, input + from + first, walk.strides[last],
                                        output + to + first * output_strides[fast], output_strides[fast]);
                     });
    }
  });
}

}  // namespace

void transpose(int rank, const int64_t* input_dims, const int* perm, int element_size, const void* input, void* output,
               const Parallel& parallel) noexcept {
  const Walk walk = make_walk(rank, input_dims, perm);
  with_element(element_size, [&](auto element) {
    using T = decltype(element);
    run(walk, static_cast<const T*>(input), static_cast<T*>(output), parallel);
  });
}

}  // namespace tenon::cpu
