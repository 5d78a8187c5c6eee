// The depthwise kernels of one instruction set; the comments are at their entries in Conv2dTable.
#ifndef TENON_KERNELS_CPU_INTERNAL_CONV2D_DEPTHWISE_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_CONV2D_DEPTHWISE_ISA_H_

#include "kernels/cpu/internal/conv2d_isa.h"

namespace tenon::cpu::TENON_CPU_ISA {

void depthwise_pixels(const DepthwiseConv& conv, int64_t channels, int64_t valid, int64_t pitch, int64_t weights_pitch,
                      const float* input, const float* weights, const float* bias, const float* residual, float* output,
                      int64_t oh_begin, int64_t oh_end);
void depthwise_plane(const DepthwiseConv& conv, const float* input, const float* weights, float bias,
                     const float* residual, float* output, float* scratch);
void depthwise_rows(const DepthwiseConv& conv, const float* input, const float* weights, float bias,
                    const float* residual, float* output);

}  // namespace tenon::cpu::TENON_CPU_ISA

#endif  // TENON_KERNELS_CPU_INTERNAL_CONV2D_DEPTHWISE_ISA_H_
