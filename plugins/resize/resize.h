// Geometry of tenon.resize/1: output sizes, scales, and which input cells with which weights each output cell is made
// of. Formulas: https://onnx.ai/onnx/operators/onnx__Resize.html, version 19.
#ifndef TENON_PLUGINS_RESIZE_RESIZE_H_
#define TENON_PLUGINS_RESIZE_RESIZE_H_

#include <cstdint>
#include <string>
#include <tenon/sdk/kernel.hpp>
#include <tenon/sdk/site.hpp>
#include <vector>

namespace tenon::plugins {

// Input numbers of the op.
inline constexpr int kResizeX = 0, kResizeRoi = 1, kResizeScales = 2, kResizeSizes = 3;

struct ResizeOptions {
  std::string mode, transformation, nearest_mode, policy;
  double cubic_a = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};
ResizeOptions resize_options(const Attrs& attrs);

// One axis. `scale` is that of the coordinates, which differs from out / in where it was given and out rounded down.
struct ResizeAxis {
  int64_t in = 0, out = 0;
  double scale = 1;
  double roi_begin = 0, roi_end = 1;  // only for tf_crop_and_resize
  bool changed = false;               // false: output cells are the input's
};
struct ResizeGeometry {
  int rank = 0;
  ResizeAxis axes[TN_MAX_RANK];
};

// Absent inputs are nullptr. The contents of scales or sizes are needed, those of roi if `crop`. Invalid names what is
// wrong.
ResizeGeometry resize_geometry(const Attrs& attrs, const Dims& x, const Tensor* roi, const Tensor* scales,
                               const Tensor* sizes, bool crop);

// Output cell o is the sum over t < count of weight[o * count + t] * input cell index[o * count + t], or, where
// outside[o], the extrapolation value.
struct ResizeTaps {
  int count = 0;
  std::vector<int32_t> index;
  std::vector<double> weight;
  std::vector<char> outside;
};
ResizeTaps resize_taps(const ResizeOptions& options, const ResizeAxis& axis);

// Images [planes][rows][columns] that are resized; an axis that does not change has scale 1.
struct ResizeImages {
  int64_t planes = 1;
  ResizeAxis rows, columns;
};
// The site, row-major, as images: up to two axes change, and all axes between and behind them are 1 or change too.
// Declined where it is no resizing of such images.
ResizeImages resize_images(const Site& site);

Definitions resize_kernels();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_RESIZE_RESIZE_H_
