// The transforms of the Winograd convolution F(2x2, 3x3), per instruction set. Matrices: A. Lavin, S. Gray, "Fast
// Algorithms for Convolutional Neural Networks", 2015, section 4.1.
#ifndef TENON_KERNELS_CPU_INTERNAL_CONV2D_WINOGRAD_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_CONV2D_WINOGRAD_ISA_H_

#include "kernels/cpu/conv2d.h"

namespace tenon::cpu {

constexpr int64_t kWinogradPoints = 16;  // of a transformed 4 x 4 tile

// One image in a blocked layout; its output is cut into tiles of 2 x 2, numbered row by row.
struct WinogradImage {
  Conv2dGeometry geometry;
  Epilogue epilogue;
  int64_t block;  // channels in a block
  const float* input;
  const float* bias;      // null or [k]
  const float* residual;  // null or as output
  float* output;
};

struct WinogradTable {
  // Input of tiles [begin, end) to points[16][end - begin][pitch], all channels with their filling.
  void (*input)(const WinogradImage& image, int64_t begin, int64_t end, int64_t pitch, float* points);
  // sums[16][end - begin][pitch] of output channels [channel, channel + columns) to the output of the tiles.
  void (*output)(const WinogradImage& image, int64_t begin, int64_t end, int64_t channel, int64_t columns,
                 int64_t pitch, const float* sums);
};

namespace baseline {
extern const WinogradTable kWinogradTable;
}
namespace avx2 {
extern const WinogradTable kWinogradTable;
}
namespace avx512 {
extern const WinogradTable kWinogradTable;
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_CONV2D_WINOGRAD_ISA_H_
