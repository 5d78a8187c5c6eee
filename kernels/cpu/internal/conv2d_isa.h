// The per-instruction-set parts of conv2d, and the tables through which the common part reaches them.
#ifndef TENON_KERNELS_CPU_INTERNAL_CONV2D_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_CONV2D_ISA_H_

#include "kernels/cpu/conv2d.h"

namespace tenon::cpu {

// Gathers columns of the patch matrix of one image and group: row (c*R + r)*S + s, column oh*OW + ow.
struct Im2colSource {
  Conv2dGeometry geometry;
  const float* input;  // the group's first channel
};

// A convolution as the direct kernel sees it: `outer` planes of h x w pixels with `inner` channels each.
// Blocked layouts: outer = blocks, inner = block. NHWC: outer 1, inner C/groups. First convolution: outer C, inner 1.
struct DirectConv {
  Conv2dGeometry geometry;
  int64_t outer = 1, inner = 1;
  int64_t plane_stride = 0, row_stride = 0, pixel_stride = 0;  // of the input, in floats
  bool padded = false;  // some window leaves the image, so rows are copied with zeros around them
  // Output.
  int64_t block = 1;             // channels in a block of the output; 1 means NHWC
  int64_t out_block_stride = 0;  // from block to block
  int64_t out_pixel_stride = 0;
  // Work of a task: rows x columns of output pixels.
  int64_t task_rows = 1, task_columns = 1;
};

struct DirectConvTask {
  const float* input;     // the image's and group's first channel
  const float* weights;   // the group's panels: [panel][outer][r][s][inner][tile columns]
  const float* bias;      // null or the group's
  const float* residual;  // null or as output
  float* output;          // the image's and group's first channel
  int64_t panel_begin, panel_end;
  int64_t oh_begin, oh_end, ow_begin, ow_end;
};

struct DepthwiseConv {
  Conv2dGeometry geometry;
  Epilogue epilogue;
};

struct Conv2dTable {
  int tile_rows;
  int tile_columns;
  // A GemmPanelPacker; the context is an Im2colSource.
  void (*im2col)(const void* source, int64_t k_begin, int64_t k_end, int64_t n_begin, int64_t n_end, float* panel);
  void (*direct)(const DirectConv& conv, const Epilogue& epilogue, const DirectConvTask& task, float* scratch);
  // Rows [oh_begin, oh_end) of one image whose pixels have `channels` channels, `pitch` floats apart; weights
  // [r][s][weights_pitch]. Channels from `valid` on are filling and written as 0.
  void (*depthwise_pixels)(const DepthwiseConv& conv, int64_t channels, int64_t valid, int64_t pitch,
                           int64_t weights_pitch, const float* input, const float* weights, const float* bias,
                           const float* residual, float* output, int64_t oh_begin, int64_t oh_end);
  // One plane of NCHW; scratch holds depthwise_plane_floats.
  void (*depthwise_plane)(const DepthwiseConv& conv, const float* input, const float* weights, float bias,
                          const float* residual, float* output, float* scratch);
  // The same of a geometry that depthwise_rows_supports, without copies of the input. AVX2 and AVX-512 only.
  void (*depthwise_rows)(const DepthwiseConv& conv, const float* input, const float* weights, float bias,
                         const float* residual, float* output);
};

// Input pixels of a row (with padding) that a row of `ow` outputs touches.
TENON_CPU_INLINE int64_t conv2d_padded_width(const Conv2dGeometry& g, int64_t ow) {
  return (ow - 1) * g.stride_w + (g.s - 1) * g.dilation_w + 1;
}
TENON_CPU_INLINE int64_t conv2d_padded_height(const Conv2dGeometry& g, int64_t oh) {
  return (oh - 1) * g.stride_h + (g.r - 1) * g.dilation_h + 1;
}

// The plane kernel of the depthwise convolution copies input rows, with zeros around them, for this many output rows at
// a time. A row is split by column number modulo the stride, so that every tap reads consecutive floats.
TENON_CPU_INLINE int64_t depthwise_phase_floats(const Conv2dGeometry& g) {
  return g.ow + (g.s - 1) * g.dilation_w / g.stride_w + 1;
}
TENON_CPU_INLINE int64_t depthwise_row_floats(const Conv2dGeometry& g) {
  return g.stride_w * depthwise_phase_floats(g);
}
TENON_CPU_INLINE int64_t depthwise_plane_rows(const Conv2dGeometry& g) {
  constexpr int64_t kScratchFloats = 6 * 1024;  // leaves room in a first-level cache of 32 KiB
  const int64_t rows = kScratchFloats / depthwise_row_floats(g) - (g.r - 1) * g.dilation_h;
  const int64_t outputs = (rows - 1) / g.stride_h + 1;
  return outputs < 4 ? 4 : outputs > g.oh ? g.oh : outputs;
}
TENON_CPU_INLINE int64_t depthwise_plane_floats(const Conv2dGeometry& g) {
  return conv2d_padded_height(g, depthwise_plane_rows(g)) * depthwise_row_floats(g);
}

namespace baseline {
extern const Conv2dTable kConv2dTable;
}
namespace avx2 {
extern const Conv2dTable kConv2dTable;
}
namespace avx512 {
extern const Conv2dTable kConv2dTable;
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_CONV2D_ISA_H_
