// Windows of poolings over any number of spatial axes; pool_geometry.h has those of images.
#ifndef TENON_PLUGINS_COMMON_POOL_WINDOWS_H_
#define TENON_PLUGINS_COMMON_POOL_WINDOWS_H_

#include "plugins/common/pool_geometry.h"
#include "plugins/common/windows.h"

namespace tenon::plugins {

inline void add_pool_window_attributes(Op& op) {
  add_window_attributes(op);
  op.attr_i64s("kernel", "window sizes, one per spatial axis").required();
  op.attr_str("rounding",
              "of the output size: (in + pads - window) / stride + 1. With ceil, a last window that would start behind "
              "the image and its leading pad is dropped")
      .default_value("floor")
      .range("floor|ceil");
}

// Of x [n, c, d1, ...]. Invalid names what does not fit.
inline cpu::Windows pool_windows(const Attrs& attrs, const Dims& x) {
  const List<int64_t> kernel = attrs.i64s("kernel");
  if (x.rank < 3 || kernel.size() != x.rank - 2) {
    throw Invalid(text("expected x [N,C,d1,...] and a kernel of as many axes d, found ", to_text(x), " and ",
                       kernel.size(), " axes"));
  }
  cpu::Windows windows = windows_of(attrs, kernel.begin(), x.rank - 2);
  const std::vector<int64_t> pads = pixels_or(attrs, "pads", 2 * windows.rank, 0, 0);
  for (int axis = 0; axis < windows.rank; ++axis) {
    windows.image[axis] = x[axis + 2];
    windows.count[axis] = pool_output_size(
        "a spatial axis", x[axis + 2], windows.kernel[axis], windows.stride[axis], windows.dilation[axis],
        windows.pad[axis], pads[static_cast<size_t>(axis + windows.rank)], attrs.str("rounding") == "ceil");
  }
  return windows;
}

inline Dims pooled_dims(const Dims& x, const cpu::Windows& windows) {
  Dims dims = x;
  for (int axis = 0; axis < windows.rank; ++axis) dims[axis + 2] = windows.count[axis];
  return dims;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_POOL_WINDOWS_H_
