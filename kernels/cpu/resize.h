// resize: images resampled along rows and columns with given weights; the same bits for every thread count.
#ifndef TENON_KERNELS_CPU_RESIZE_H_
#define TENON_KERNELS_CPU_RESIZE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

// Output cell o is the sum over t < taps of weight[o * taps + t] * input cell index[o * taps + t].
struct ResizeTable {
  int64_t in = 0;
  int64_t out = 0;
  int taps = 1;
  const int32_t* index = nullptr;  // [out][taps], each in [0, in)
  const float* weight = nullptr;   // [out][taps]; unused by resize_nearest
  bool identity = false;           // out == in, one tap each: the cell itself with weight 1
};

// A row for each thread.
size_t resize_workspace_bytes(const ResizeTable& columns, int threads) noexcept;

// x [planes][rows.in][columns.in] to y [planes][rows.out][columns.out].
void resize_separable(int64_t planes, const ResizeTable& rows, const ResizeTable& columns, const float* x, float* y,
                      float* workspace, const Parallel& parallel) noexcept;

// The same of one tap with weight 1, for elements of 1, 2, 4 or 8 bytes.
void resize_nearest(int64_t planes, const ResizeTable& rows, const ResizeTable& columns, int element_bytes,
                    const void* x, void* y, const Parallel& parallel) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_RESIZE_H_
