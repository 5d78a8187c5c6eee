// The algorithms behind conv2d.h; each has the four functions of that header. Geometry and configuration are supported.
#ifndef TENON_KERNELS_CPU_INTERNAL_CONV2D_ALGORITHMS_H_
#define TENON_KERNELS_CPU_INTERNAL_CONV2D_ALGORITHMS_H_

#include "kernels/cpu/internal/conv2d_isa.h"

namespace tenon::cpu {

struct Conv2dAlgorithmTable {
  bool (*supports)(const Conv2dGeometry& geometry, const Conv2dConfig& config);
  size_t (*packed_bytes)(const Conv2dGeometry& geometry, const Conv2dConfig& config);
  void (*pack)(const Conv2dGeometry& geometry, const Conv2dConfig& config, const float* weights, float* packed);
  size_t (*workspace_bytes)(const Conv2dGeometry& geometry, const Conv2dConfig& config, int threads);
  void (*run)(const Conv2dGeometry& geometry, const Conv2dConfig& config, const Conv2dBuffers& buffers,
              const Epilogue& epilogue, const Parallel& parallel);
};

extern const Conv2dAlgorithmTable kConv2dGemm1x1;
extern const Conv2dAlgorithmTable kConv2dIm2col;
extern const Conv2dAlgorithmTable kConv2dDirect;
extern const Conv2dAlgorithmTable kConv2dFirst;
extern const Conv2dAlgorithmTable kConv2dDepthwise;
extern const Conv2dAlgorithmTable kConv2dDepthwiseRows;
extern const Conv2dAlgorithmTable kConv2dWinograd2x2;

const Conv2dTable& conv2d_table(Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_CONV2D_ALGORITHMS_H_
