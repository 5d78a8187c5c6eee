#include "kernels/cpu/resize.h"

#include <algorithm>
#include <cstring>

namespace tenon::cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;  // outputs below which another thread costs more than it gives

// One output row from the input rows that it is made of.
void mix_rows(const ResizeTable& rows, int64_t row, int64_t width, const float* plane, float* to) {
  const int32_t* index = rows.index + row * rows.taps;
  const float* weight = rows.weight + row * rows.taps;
  if (rows.taps == 2) {
    const float *a = plane + index[0] * width, *b = plane + index[1] * width;
    const float wa = weight[0], wb = weight[1];
    for (int64_t n = 0; n < width; ++n) to[n] = wa * a[n] + wb * b[n];
    return;
  }
  const float* first = plane + index[0] * width;
  for (int64_t n = 0; n < width; ++n) to[n] = weight[0] * first[n];
  for (int t = 1; t < rows.taps; ++t) {
    const float* next = plane + index[t] * width;
    for (int64_t n = 0; n < width; ++n) to[n] += weight[t] * next[n];
  }
}

void mix_columns(const ResizeTable& columns, const float* from, float* to) {
  const int32_t* index = columns.index;
  const float* weight = columns.weight;
  if (columns.taps == 2) {
    for (int64_t o = 0; o < columns.out; ++o) {
      to[o] = weight[2 * o] * from[index[2 * o]] + weight[2 * o + 1] * from[index[2 * o + 1]];
    }
    return;
  }
  for (int64_t o = 0; o < columns.out; ++o, index += columns.taps, weight += columns.taps) {
    float sum = 0;
    for (int t = 0; t < columns.taps; ++t) sum += weight[t] * from[index[t]];
    to[o] = sum;
  }
}

template <class T>
void nearest(int64_t planes, const ResizeTable& rows, const ResizeTable& columns, const T* x, T* y,
             const Parallel& parallel) {
  const int64_t grain = std::max<int64_t>(1, kGrain / columns.out);
  parallel_ranges(parallel, planes * rows.out, grain, [&](int64_t begin, int64_t end) {
    const T* before = nullptr;
    for (int64_t row = begin; row < end; ++row) {
      const T* from = x + (row / rows.out * rows.in + rows.index[row % rows.out]) * columns.in;
      T* to = y + row * columns.out;
      if (from == before) {
        std::memcpy(to, to - columns.out, static_cast<size_t>(columns.out) * sizeof(T));
      } else if (columns.identity) {
        std::memcpy(to, from, static_cast<size_t>(columns.out) * sizeof(T));
      } else {
        for (int64_t o = 0; o < columns.out; ++o) to[o] = from[columns.index[o]];
      }
      before = from;
    }
  });
}

}  // namespace

size_t resize_workspace_bytes(const ResizeTable& columns, int threads) noexcept {
  return static_cast<size_t>(columns.in) * sizeof(float) * static_cast<size_t>(std::max(threads, 1));
}

void resize_separable(int64_t planes, const ResizeTable& rows, const ResizeTable& columns, const float* x, float* y,
                      float* workspace, const Parallel& parallel) noexcept {
  if (planes <= 0 || rows.out <= 0 || columns.out <= 0) return;
  const int64_t width = columns.in;
  const int64_t chunk = std::max<int64_t>(1, kGrain / columns.out), count = planes * rows.out;
  parallel_tasks(parallel, (count + chunk - 1) / chunk, [&](int64_t slot, int64_t task) {
    float* scratch = workspace + slot * width;
    for (int64_t row = task * chunk; row < std::min(count, (task + 1) * chunk); ++row) {
      const float* plane = x + row / rows.out * rows.in * width;
      float* to = y + row * columns.out;
      if (columns.identity) {
        mix_rows(rows, row % rows.out, width, plane, to);
      } else if (rows.identity) {
        mix_columns(columns, plane + row % rows.out * width, to);
      } else {
        mix_rows(rows, row % rows.out, width, plane, scratch);
        mix_columns(columns, scratch, to);
      }
    }
  });
}

void resize_nearest(int64_t planes, const ResizeTable& rows, const ResizeTable& columns, int element_bytes,
                    const void* x, void* y, const Parallel& parallel) noexcept {
  if (planes <= 0 || rows.out <= 0 || columns.out <= 0) return;
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    nearest(planes, rows, columns, static_cast<const T*>(x), static_cast<T*>(y), parallel);
  };
  switch (element_bytes) {
    case 1:
      return run(uint8_t());
    case 2:
      return run(uint16_t());
    case 4:
      return run(uint32_t());
    default:
      return run(uint64_t());
  }
}

}  // namespace tenon::cpu
