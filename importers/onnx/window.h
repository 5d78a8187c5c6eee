// Windows that slide over the spatial axes of [N,C,d1,...,dr]: the attributes that convolutions and poolings share.
#ifndef TENON_IMPORTERS_ONNX_WINDOW_H_
#define TENON_IMPORTERS_ONNX_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "importers/onnx/node.h"

namespace tenon::onnx {

/// One number per spatial axis in each list.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, begin, end;
  bool automatic = false;  ///< auto_pad other than NOTSET: output sizes are rounded down, whatever ceil_mode says

  size_t rank() const { return kernel.size(); }
  /// Cells from the first to the last of the window.
  int64_t extent(size_t axis) const { return dilations[axis] * (kernel[axis] - 1) + 1; }
  /// [begin..., end...], as Tenon's ops have it.
  std::vector<int64_t> pads() const {
    std::vector<int64_t> both = begin;
    both.insert(both.end(), end.begin(), end.end());
    return both;
  }
};

/// A list attribute of `size` values from `least` to 2^31 - 1, so that products of a few fit into 64 bits.
inline std::vector<int64_t> window_list(const OnnxNode& node, const char* attr, size_t size, int64_t least,
                                        int64_t absent) {
  std::vector<int64_t> values = node.i64s(attr, std::vector<int64_t>(size, absent));
  if (values.size() != size) {
    throw Invalid(text("attribute ", attr, ": expected ", size, " values, found ", values.size()));
  }
  for (const int64_t value : values) {
    if (value < least || value > INT32_MAX) {
      throw Invalid(text("attribute ", attr, ": expected values from ", least, " to ", INT32_MAX, ", found ", value));
    }
  }
  return values;
}

/// The attribute auto_pad, one of the four that the standard names.
inline std::string auto_pad_of(const OnnxNode& node) {
  const std::string value = node.str("auto_pad", "NOTSET");
  if (value != "NOTSET" && value != "SAME_UPPER" && value != "SAME_LOWER" && value != "VALID") {
    throw Invalid(text("attribute auto_pad: expected NOTSET, SAME_UPPER, SAME_LOWER or VALID, found ", value));
  }
  return value;
}

/// Splits `total` pads of an axis; the odd one goes to the end for SAME_UPPER and to the beginning otherwise.
inline void split_pads(int64_t total, bool upper, int64_t* begin, int64_t* end) {
  *begin = upper ? total / 2 : total - total / 2;
  *end = total - *begin;
}

/// Strides, dilations and explicit pads for a kernel.
inline Window explicit_window(const OnnxNode& node, std::vector<int64_t> kernel) {
  Window window;
  const size_t rank = kernel.size();
  for (const int64_t size : kernel) {
    if (size < 1 || size > INT32_MAX) throw Invalid(text("kernel: expected sizes of at least 1, found ", size));
  }
  window.kernel = std::move(kernel);
  window.strides = window_list(node, "strides", rank, 1, 1);
  window.dilations = window_list(node, "dilations", rank, 1, 1);
  const std::vector<int64_t> pads = window_list(node, "pads", 2 * rank, 0, 0);
  window.begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
  window.end.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  return window;
}

/// Pads so that there are ceil(in / stride) windows of `extent` cells: none where they would be negative.
inline void same_pads(int64_t in, int64_t extent, int64_t stride, bool upper, int64_t* begin, int64_t* end) {
  const int64_t out = in / stride + (in % stride != 0);
  split_pads(std::max<int64_t>(0, (out - 1) * stride + extent - in), upper, begin, end);
}

/// The window over x [N,C,d1,...,dr], with auto_pad.
inline Window window_over(const OnnxNode& node, const Dims& x, std::vector<int64_t> kernel) {
  if (x.rank < 3 || static_cast<size_t>(x.rank) != kernel.size() + 2) {
    throw Invalid(text("expected an input [N,C,d1,...] and a kernel of as many axes d, found ", to_text(x), " and ",
                       kernel.size(), " axes"));
  }
  Window window = explicit_window(node, std::move(kernel));
  const std::string auto_pad = auto_pad_of(node);
  window.automatic = auto_pad != "NOTSET";
  if (!window.automatic) return window;
  for (size_t n = 0; n < window.rank(); ++n) {
    if (auto_pad == "VALID") {
      window.begin[n] = window.end[n] = 0;
    } else {
      same_pads(x[static_cast<int>(n) + 2], window.extent(n), window.strides[n], auto_pad == "SAME_UPPER",
                &window.begin[n], &window.end[n]);
    }
  }
  return window;
}

}  // namespace tenon::onnx

#endif  // TENON_IMPORTERS_ONNX_WINDOW_H_
