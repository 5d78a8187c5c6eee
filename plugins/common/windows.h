// Windows over any number of spatial axes: the attributes that conv, conv_transpose and their kin have in common.
#ifndef TENON_PLUGINS_COMMON_WINDOWS_H_
#define TENON_PLUGINS_COMMON_WINDOWS_H_

#include <tenon/sdk/op.hpp>
#include <vector>

#include "kernels/cpu/im2col.h"
#include "plugins/common/checked.h"

namespace tenon::plugins {

inline void add_window_attributes(Op& op) {
  op.attr_i64s("strides", "one per spatial axis; none: 1");
  op.attr_i64s("pads", "pixels of zeros, [begins..., ends...]; none: 0");
  op.attr_i64s("dilations", "distance between taps, one per spatial axis; none: 1");
}

// The attribute, or `size` times `absent` if it is not there. Values of 31 bits, at least `least`.
inline std::vector<int64_t> pixels_or(const Attrs& attrs, const char* name, int size, int64_t least, int64_t absent) {
  if (!attrs.has_i64s(name)) return std::vector<int64_t>(static_cast<size_t>(size), absent);
  const List<int64_t> values = pixels(attrs, name, size, least);
  return {values.begin(), values.end()};
}

// How many window positions fit into an axis of `image` pixels with its pads; Invalid if none does.
inline int64_t window_count(int64_t image, int64_t pads, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t extent = dilation * (kernel - 1) + 1;
  if (image + pads < extent) {
    throw Invalid(text("the window does not fit: expected an axis of at least ", extent, " pixels, found ", image,
                       " and ", pads, " of padding"));
  }
  return (image + pads - extent) / stride + 1;
}

// Windows without image and count. `kernel` has the spatial dims.
inline cpu::Windows windows_of(const Attrs& attrs, const int64_t* kernel, int rank) {
  if (rank < 1 || rank > cpu::kMaxWindowAxes) {
    throw Invalid(text("expected 1 to ", cpu::kMaxWindowAxes, " spatial axes, found ", rank));
  }
  const std::vector<int64_t> strides = pixels_or(attrs, "strides", rank, 1, 1);
  const std::vector<int64_t> dilations = pixels_or(attrs, "dilations", rank, 1, 1);
  const std::vector<int64_t> pads = pixels_or(attrs, "pads", 2 * rank, 0, 0);
  cpu::Windows windows;
  windows.rank = rank;
  for (int axis = 0; axis < rank; ++axis) {
    const auto n = static_cast<size_t>(axis);
    if (kernel[axis] < 1 || kernel[axis] > INT32_MAX) {
      throw Invalid(text("the kernel: expected sizes of 1 to ", INT32_MAX, ", found ", kernel[axis]));
    }
    windows.kernel[axis] = kernel[axis];
    windows.stride[axis] = strides[n];
    windows.dilation[axis] = dilations[n];
    windows.pad[axis] = pads[n];
  }
  return windows;
}

// Sum of the pads before and behind an axis.
inline int64_t both_pads(const Attrs& attrs, int rank, int axis) {
  const std::vector<int64_t> pads = pixels_or(attrs, "pads", 2 * rank, 0, 0);
  return pads[static_cast<size_t>(axis)] + pads[static_cast<size_t>(axis + rank)];
}

// The images as all that the windows cover: fills in image and count.
inline void slide_over(const Attrs& attrs, const int64_t* image, cpu::Windows* windows) {
  for (int axis = 0; axis < windows->rank; ++axis) {
    windows->image[axis] = image[axis];
    windows->count[axis] = window_count(image[axis], both_pads(attrs, windows->rank, axis), windows->kernel[axis],
                                        windows->stride[axis], windows->dilation[axis]);
  }
}

// Where tap number `tap` of the window at `position` (one number per axis) lies in the image: its row-major number; -1
// outside.
inline int64_t tap_pixel(const cpu::Windows& windows, const int64_t* position, int64_t tap) {
  int64_t pixel = 0, step = 1;
  for (int axis = windows.rank - 1; axis >= 0; --axis) {
    const int64_t at =
        position[axis] * windows.stride[axis] - windows.pad[axis] + tap % windows.kernel[axis] * windows.dilation[axis];
    if (at < 0 || at >= windows.image[axis]) return -1;
    tap /= windows.kernel[axis];
    pixel += at * step;
    step *= windows.image[axis];
  }
  return pixel;
}

// The other way round: the row-major number of the position whose tap number `tap` lies at `pixel` (one number per
// axis); -1 if there is none.
inline int64_t tap_position(const cpu::Windows& windows, const int64_t* pixel, int64_t tap) {
  int64_t position = 0, step = 1;
  for (int axis = windows.rank - 1; axis >= 0; --axis) {
    const int64_t at = pixel[axis] + windows.pad[axis] - tap % windows.kernel[axis] * windows.dilation[axis];
    if (at < 0 || at % windows.stride[axis] != 0 || at / windows.stride[axis] >= windows.count[axis]) return -1;
    tap /= windows.kernel[axis];
    position += at / windows.stride[axis] * step;
    step *= windows.count[axis];
  }
  return position;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_WINDOWS_H_
