#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/resize/resize.h"

namespace tenon::plugins {
namespace {

double number(const Tensor& tensor, int64_t n) {
  double value = 0;
  visit_number(tensor.dtype(), [&](auto zero) { value = static_cast<double>(tensor.data<decltype(zero)>()[n]); });
  return value;
}

void check_list(const char* what, const Tensor& tensor, int64_t size) {
  if (tensor.rank() != 1 || tensor.dim(0) != size) {
    throw Invalid(text("input ", what, ": expected [", size, "], found ", to_text(tensor.dims())));
  }
  if (!tensor.has_data()) throw Invalid(text("the contents of ", what, " must be known when the network is built"));
}

// The axes that roi, scales and sizes speak of, in their order.
std::vector<int> axes_of(const Attrs& attrs, int rank) {
  std::vector<int> axes;
  if (attrs.has_i64s("axes")) {
    for (const int64_t axis : attrs.i64s("axes")) axes.push_back(normalize_axis(axis, rank, "axes"));
  } else {
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  std::vector<int> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw Invalid("attribute 'axes': expected each axis once");
  }
  return axes;
}

void use_scales(const Tensor& scales, const std::vector<int>& axes, ResizeGeometry* g) {
  check_list("scales", scales, static_cast<int64_t>(axes.size()));
  for (size_t n = 0; n < axes.size(); ++n) {
    ResizeAxis& axis = g->axes[axes[n]];
    axis.scale = number(scales, static_cast<int64_t>(n));
    if (!(axis.scale > 0) || !std::isfinite(axis.scale)) {
      throw Invalid(text("input scales: expected finite values above 0, found ", axis.scale));
    }
    // In f32 where the scales are f32: 0.7f * 10 is 7, while the product of their exact values is a little less.
    const double size = scales.dtype() == TN_F64
                            ? std::floor(static_cast<double>(axis.in) * axis.scale)
                            : std::floor(static_cast<float>(axis.in) * static_cast<float>(axis.scale));
    if (size > std::numeric_limits<int32_t>::max()) {
      throw Invalid(text("input scales: the output has ", size, " cells along an axis, expected at most 2^31 - 1"));
    }
    axis.out = static_cast<int64_t>(size);
    axis.changed = axis.scale != 1;
  }
}

void use_sizes(const Tensor& sizes, const std::string& policy, const std::vector<int>& axes, ResizeGeometry* g) {
  check_list("sizes", sizes, static_cast<int64_t>(axes.size()));
  const bool stretch = policy == "stretch";
  double scale = policy == "not_larger" ? std::numeric_limits<double>::infinity() : 0;
  for (size_t n = 0; n < axes.size(); ++n) {
    ResizeAxis& axis = g->axes[axes[n]];
    axis.out = sizes.integer(static_cast<int64_t>(n));
    if (axis.out < 0 || axis.out > std::numeric_limits<int32_t>::max()) {
      throw Invalid(text("input sizes: expected values from 0 to 2^31 - 1, found ", axis.out));
    }
    axis.changed = axis.out != axis.in;
    if (axis.in == 0) {
      if (axis.changed || !stretch) throw Invalid(text("an axis of 0 cells cannot be resized to ", axis.out));
      continue;
    }
    axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
    scale = policy == "not_larger" ? std::min(scale, axis.scale) : std::max(scale, axis.scale);
  }
  if (stretch) return;
  for (const int n : axes) {
    ResizeAxis& axis = g->axes[n];
    const double size = std::floor(scale * static_cast<double>(axis.in) + 0.5);
    if (size > std::numeric_limits<int32_t>::max()) throw Invalid("input sizes: the output would be too large");
    axis.out = static_cast<int64_t>(size);
    axis.scale = scale;
    axis.changed = axis.out != axis.in || scale != 1;
  }
}

double coordinate(const std::string& transformation, const ResizeAxis& axis, int64_t o) {
  const double x = static_cast<double>(o), in = static_cast<double>(axis.in);
  const double length = axis.scale * in;  // the output's, before it was rounded down
  if (transformation == "asymmetric") return x / axis.scale;
  if (transformation == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (transformation == "align_corners") return length == 1 || axis.out == 1 ? 0 : x * (in - 1) / (length - 1);
  if (transformation == "pytorch_half_pixel" && (length == 1 || axis.out == 1)) return 0;
  if (transformation == "tf_crop_and_resize") {
    const double size = axis.roi_end - axis.roi_begin;
    if (length == 1 || axis.out == 1) return 0.5 * (axis.roi_begin + axis.roi_end) * (in - 1);
    return (axis.roi_begin + x * size / (length - 1)) * (in - 1);
  }
  const double center =
      transformation == "half_pixel_symmetric" ? in / 2 * (1 - static_cast<double>(axis.out) / length) : 0;
  return center + (x + 0.5) / axis.scale - 0.5;
}

int64_t nearest(const std::string& mode, double x) {
  // Whole and half coordinates decide which cell is nearest, and scales such as 0.6 are not exact.
  const double half = std::round(2 * x) / 2;
  if (std::fabs(x - half) < 1e-6 * std::max(1.0, std::fabs(x))) x = half;
  if (mode == "floor") return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (mode == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  return static_cast<int64_t>(std::ceil(x - 0.5));
}

// The filter of "linear" (a triangle) or "cubic" (Keys 1981, equation 4) at a distance in cells.
double filter(const ResizeOptions& options, double distance) {
  const double d = std::fabs(distance), a = options.cubic_a;
  if (options.mode == "linear") return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

ResizeAxis unchanged(int64_t size) {
  ResizeAxis axis;
  axis.in = axis.out = size;
  return axis;
}

}  // namespace

ResizeOptions resize_options(const Attrs& attrs) {
  ResizeOptions options;
  options.mode = attrs.str("mode");
  options.transformation = attrs.str("coordinate_transformation_mode");
  options.nearest_mode = attrs.str("nearest_mode");
  options.policy = attrs.str("keep_aspect_ratio_policy");
  options.cubic_a = attrs.f64("cubic_coeff_a");
  options.extrapolation = attrs.f64("extrapolation_value");
  options.exclude_outside = attrs.flag("exclude_outside");
  options.antialias = attrs.flag("antialias") && options.mode != "nearest";
  return options;
}

ResizeGeometry resize_geometry(const Attrs& attrs, const Dims& x, const Tensor* roi, const Tensor* scales,
                               const Tensor* sizes, bool crop) {
  ResizeGeometry g;
  g.rank = x.rank;
  for (int axis = 0; axis < x.rank; ++axis) {
    g.axes[axis].in = g.axes[axis].out = x[axis];
    if (x[axis] > std::numeric_limits<int32_t>::max()) throw Invalid("input x: expected dims of at most 2^31 - 1");
  }
  const std::vector<int> axes = axes_of(attrs, x.rank);
  if ((scales != nullptr) == (sizes != nullptr)) throw Invalid("expected one of the inputs scales and sizes");
  if (scales != nullptr) {
    use_scales(*scales, axes, &g);
  } else {
    use_sizes(*sizes, attrs.str("keep_aspect_ratio_policy"), axes, &g);
  }
  if (crop) {
    if (roi == nullptr) throw Invalid("tf_crop_and_resize: expected the input roi, found none");
    check_list("roi", *roi, 2 * static_cast<int64_t>(axes.size()));
    for (size_t n = 0; n < axes.size(); ++n) {
      ResizeAxis& axis = g.axes[axes[n]];
      axis.roi_begin = number(*roi, static_cast<int64_t>(n));
      axis.roi_end = number(*roi, static_cast<int64_t>(axes.size() + n));
      axis.changed = axis.changed || axis.roi_begin != 0 || axis.roi_end != 1;
    }
  }
  return g;
}

ResizeTaps resize_taps(const ResizeOptions& options, const ResizeAxis& axis) {
  ResizeTaps taps;
  const bool plain = !axis.changed || options.mode == "nearest";
  const double radius = options.mode == "linear" ? 1 : 2;
  // Antialiasing: the filter is as wide as the cells of the output.
  const double stretch = options.antialias ? std::max(1.0, 1 / axis.scale) : 1;
  taps.count = plain ? 1 : static_cast<int>(2 * std::ceil(radius * stretch));
  const size_t total = static_cast<size_t>(axis.out) * static_cast<size_t>(taps.count);
  taps.index.resize(total);
  taps.weight.assign(total, 1.0);
  taps.outside.assign(static_cast<size_t>(axis.out), 0);
  for (int64_t o = 0; o < axis.out; ++o) {
    int32_t* index = taps.index.data() + o * taps.count;
    double* weight = taps.weight.data() + o * taps.count;
    if (!axis.changed) {
      index[0] = static_cast<int32_t>(o);
      continue;
    }
    double x = coordinate(options.transformation, axis, o);
    const double last = static_cast<double>(axis.in - 1);
    if (options.transformation == "tf_crop_and_resize" && !(x >= 0 && x <= last)) {
      taps.outside[static_cast<size_t>(o)] = 1;
      x = 0;
    }
    const auto clamp = [&](int64_t at) { return static_cast<int32_t>(std::clamp<int64_t>(at, 0, axis.in - 1)); };
    if (plain) {
      index[0] = clamp(nearest(options.nearest_mode, x));
      continue;
    }
    const int64_t first = static_cast<int64_t>(std::floor(x)) - taps.count / 2 + 1;
    double sum = 0;
    for (int t = 0; t < taps.count; ++t) {
      const int64_t at = first + t;
      weight[t] = filter(options, (static_cast<double>(at) - x) / stretch);
      if (options.exclude_outside && (at < 0 || at >= axis.in)) weight[t] = 0;
      index[t] = clamp(at);
      sum += weight[t];
    }
    const bool normalize = (options.exclude_outside || options.antialias) && sum != 0;
    for (int t = 0; normalize && t < taps.count; ++t) weight[t] /= sum;
  }
  return taps;
}

ResizeImages resize_images(const Site& site) {
  if (!site.is_static()) throw Declined("its tables are for fixed dims");
  if (site.attrs().str("coordinate_transformation_mode") == "tf_crop_and_resize") throw Declined("it does not crop");
  const Tensor scales = site.constant(kResizeScales), sizes = site.constant(kResizeSizes);
  const bool has_scales = site.has_input(kResizeScales), has_sizes = site.has_input(kResizeSizes);
  if ((has_scales && !scales.has_data()) || (has_sizes && !sizes.has_data())) {
    throw Declined("scales or sizes are not constant");
  }
  const ResizeGeometry g = resize_geometry(site.attrs(), site.dims(kResizeX), nullptr, has_scales ? &scales : nullptr,
                                           has_sizes ? &sizes : nullptr, false);
  int last = g.rank - 1;
  while (last >= 0 && !g.axes[last].changed) --last;
  if (last < 0) throw Declined("no axis changes");
  const Dims x = site.dims(kResizeX);
  ResizeImages images;
  const int64_t behind = x.product(last + 1, g.rank);
  if (behind == 1) {
    images.columns = g.axes[last];
    images.rows = last > 0 ? g.axes[last - 1] : unchanged(1);
    --last;
  } else {
    // Whole runs of cells behind the axis move together.
    images.columns = unchanged(behind);
    images.rows = g.axes[last];
  }
  for (int axis = 0; axis < last; ++axis) {
    if (g.axes[axis].changed) throw Declined("more axes change than those of images");
    images.planes *= x[axis];
  }
  return images;
}

}  // namespace tenon::plugins
