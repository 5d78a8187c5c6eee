// conv and conv_transpose: convolutions of images with one to six axes, float32, [n][channels][pixels], as matrix
// products. conv2d.h has what is faster for two axes and packed weights.
// Nothing is allocated or thrown; results are the same bits for every thread count. Workspaces need 64-byte alignment.
#ifndef TENON_KERNELS_CPU_CONV_H_
#define TENON_KERNELS_CPU_CONV_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/im2col.h"
#include "kernels/cpu/isa.h"

namespace tenon::cpu {

// `windows.image` is the input of conv and the output of conv_transpose.
struct ConvShape {
  Windows windows;
  int64_t n = 1;
  int64_t inputs = 1;   // channels of x
  int64_t outputs = 1;  // channels of y
  int64_t groups = 1;
};

// Weights [outputs][inputs / groups][taps].
size_t conv_workspace_bytes(const ConvShape& shape, int threads, Isa isa) noexcept;
void conv(const ConvShape& shape, const float* x, const float* weights, const float* bias, float* y, void* workspace,
          const Parallel& parallel, Isa isa) noexcept;

// Weights [inputs][outputs / groups][taps].
size_t conv_transpose_workspace_bytes(const ConvShape& shape, int threads, Isa isa) noexcept;
void conv_transpose(const ConvShape& shape, const float* x, const float* weights, const float* bias, float* y,
                    void* workspace, const Parallel& parallel, Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_CONV_H_
