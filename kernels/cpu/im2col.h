// im2col and col2im: images of one to six axes, and the columns of the windows that slide over them. Window position p
// of an axis has its tap t at pixel p * stride - pad + t * dilation.
// Nothing is allocated or thrown; results are the same bits for every thread count.
#ifndef TENON_KERNELS_CPU_IM2COL_H_
#define TENON_KERNELS_CPU_IM2COL_H_

#include <cstdint>

#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

inline constexpr int kMaxWindowAxes = 6;

// REQUIRES: all sizes at least 1.
struct Windows {
  int rank = 1;
  int64_t image[kMaxWindowAxes] = {};  // pixels along each axis
  int64_t count[kMaxWindowAxes] = {};  // window positions along each axis
  int64_t kernel[kMaxWindowAxes] = {};
  int64_t stride[kMaxWindowAxes] = {};
  int64_t dilation[kMaxWindowAxes] = {};
  int64_t pad[kMaxWindowAxes] = {};

  int64_t pixels() const { return product(image, rank); }
  int64_t positions() const { return product(count, rank); }
  int64_t taps() const { return product(kernel, rank); }
  // Rows of positions: runs along the last axis.
  int64_t rows() const { return product(count, rank - 1); }

 private:
  static int64_t product(const int64_t* sizes, int axes) {
    int64_t result = 1;
    for (int axis = 0; axis < axes; ++axis) result *= sizes[axis];
    return result;
  }
};

// columns[c * taps + t][p] = image c at tap t of position p, 0 outside; p runs over the rows [row_begin, row_end).
void im2col(const Windows& windows, int64_t channels, int64_t row_begin, int64_t row_end, const float* images,
            float* columns, const Parallel& parallel) noexcept;

// images[c] = bias[c] + the sum of all columns[c * taps + t][p] at the pixels of (t, p). `bias` may be null.
void col2im(const Windows& windows, int64_t channels, const float* columns, const float* bias, float* images,
            const Parallel& parallel) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_IM2COL_H_
