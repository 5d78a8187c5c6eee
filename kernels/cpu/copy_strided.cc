#include "kernels/cpu/copy_strided.h"

#include <cstring>

#include "kernels/cpu/internal/move.h"

namespace tenon::cpu {
namespace {

struct Walk {
  int rank = 0;
  int64_t dims[kCopyMaxRank];
  int64_t from[kCopyMaxRank];
  int64_t to[kCopyMaxRank];
};

// Drops dimensions of size 1 and joins neighbours that both sides walk as one.
Walk collapse(int rank, const int64_t* dims, const int64_t* from, const int64_t* to) {
  Walk walk;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] == 1) continue;
    const int last = walk.rank - 1;
    if (last >= 0 && walk.from[last] == from[i] * dims[i] && walk.to[last] == to[i] * dims[i]) {
      walk.dims[last] *= dims[i];
      walk.from[last] = from[i];
      walk.to[last] = to[i];
      continue;
    }
    walk.dims[walk.rank] = dims[i];
    walk.from[walk.rank] = from[i];
    walk.to[walk.rank] = to[i];
    ++walk.rank;
  }
  if (walk.rank == 0) {
    walk.rank = 1;
    walk.dims[0] = 1;
    walk.from[0] = walk.to[0] = 1;
  }
  return walk;
}

template <class T>
void copy_row(int64_t count, const T* from, int64_t from_stride, T* to, int64_t to_stride) {
  if (from_stride == 1 && to_stride == 1) {
    if (count <= 16) {  // a call to memcpy costs more
      for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    } else {
      std::memcpy(to, from, count * sizeof(T));
    }
  } else if (from_stride == 0 && to_stride == 1) {
    std::fill_n(to, count, *from);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

template <class T>
void run(const Walk& walk, const T* input, T* output, const Parallel& parallel) {
  constexpr int64_t kGrain = 16 * 1024;  // elements below which another thread costs more than it gives
  const int last = walk.rank - 1;
  const int64_t columns = walk.dims[last];
  const int64_t from_stride = walk.from[last];
  const int64_t to_stride = walk.to[last];
  if (walk.rank == 1) {
    parallel_ranges(parallel, columns, kGrain, [&](int64_t begin, int64_t end) {
      copy_row(end - begin, input + begin * from_stride, from_stride, output + begin * to_stride, to_stride);
    });
    return;
  }
  int64_t rows = 1;
  for (int i = 0; i < last; ++i) rows *= walk.dims[i];
  parallel_ranges(parallel, rows, std::max<int64_t>(kGrain / columns, 1), [&](int64_t begin, int64_t end) {
    int64_t index[kCopyMaxRank] = {};
    int64_t from = 0;
    int64_t to = 0;
    int64_t rest = begin;
    for (int i = last - 1; i >= 0; --i) {
      index[i] = rest % walk.dims[i];
      rest /= walk.dims[i];
      from += index[i] * walk.from[i];
      to += index[i] * walk.to[i];
    }
    for (int64_t row = begin; row < end; ++row) {
      copy_row(columns, input + from, from_stride, output + to, to_stride);
      for (int i = last - 1; i >= 0; --i) {
        from += walk.from[i];
        to += walk.to[i];
        if (++index[i] < walk.dims[i]) break;
        from -= walk.dims[i] * walk.from[i];
        to -= walk.dims[i] * walk.to[i];
        index[i] = 0;
      }
    }
  });
}

}  // namespace

void copy_strided(int rank, const int64_t* dims, const int64_t* input_strides, const int64_t* output_strides,
                  int element_size, const void* input, void* output, const Parallel& parallel) noexcept {
  for (int i = 0; i < rank; ++i) {
    if (dims[i] <= 0) return;
  }
  const Walk walk = collapse(rank, dims, input_strides, output_strides);
  with_element(element_size, [&](auto element) {
    using T = decltype(element);
    run(walk, static_cast<const T*>(input), static_cast<T*>(output), parallel);
  });
}

}  // namespace tenon::cpu
