// Resizing, sampling and boxes.
#include <cmath>
#include <optional>

#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

/// The contents of a list of f32; nothing if they are not known.
std::optional<std::vector<float>> known_floats(const OnnxNode& node, TnValueId value) {
  const std::optional<TnTensor> tensor = node.graph_view().value_const(value);
  if (!tensor || tensor->dtype != TN_F32) return std::nullopt;
  const float* data = static_cast<const float*>(tensor->data);
  return std::vector<float>(data, data + Dims(tensor->dims).elements());
}

/// The factors by which a resizing of [N,C,H,W] repeats rows and columns; nothing if it does anything else.
std::optional<std::vector<int64_t>> repetitions(const OnnxNode& node, TnValueId scales, TnValueId sizes) {
  const Dims x = node.dims(0);
  if (x.rank != 4 || !is_floating(node.dtype(0)) || node.has("axes") || x.elements() == 0) return std::nullopt;
  std::vector<double> factors;
  if (scales != TN_NO_ID) {
    const auto known = known_floats(node, scales);
    if (known) factors.assign(known->begin(), known->end());
  } else if (const auto known = node.contents_i64s(sizes)) {
    for (size_t n = 0; n < known->size() && n < 4; ++n) {
      factors.push_back(static_cast<double>((*known)[n]) / static_cast<double>(x[static_cast<int>(n)]));
    }
  }
  if (factors.size() != 4 || factors[0] != 1 || factors[1] != 1) return std::nullopt;
  for (const double factor : factors) {
    if (!(factor >= 1 && factor <= INT16_MAX) || factor != std::floor(factor)) return std::nullopt;
  }
  return std::vector<int64_t>{static_cast<int64_t>(factors[2]), static_cast<int64_t>(factors[3])};
}

/// Adds the op; scales or sizes may be TN_NO_ID. With whole factors a nearest cell is the repeated one if coordinates
/// are rounded down, or if they are those of cells' centres (never half-way between two) and rounded in any way.
void add_resize(OnnxNode& node, const std::string& mode, const std::string& transformation,
                const std::string& nearest_mode, NewAttrs attrs, TnValueId roi, TnValueId scales, TnValueId sizes) {
  const bool rounds = nearest_mode == "round_prefer_floor" || nearest_mode == "round_prefer_ceil";
  const bool centres = transformation == "half_pixel" || transformation == "pytorch_half_pixel" ||
                       transformation == "half_pixel_symmetric";
  if (mode == "nearest" && ((centres && rounds) || (transformation == "asymmetric" && nearest_mode == "floor")) &&
      node.str("keep_aspect_ratio_policy", "stretch") == "stretch") {
    if (const auto factors = repetitions(node, scales, sizes)) {
      node.output(0, node.add("tenon.upsample/1", node.attrs().i64s("factors", *factors), {node.input(0)}));
      return;
    }
  }
  attrs.str("mode", mode).str("coordinate_transformation_mode", transformation).str("nearest_mode", nearest_mode);
  node.output(0, node.add("tenon.resize/1", attrs, {node.input(0), roi, scales, sizes}));
}

void resize(OnnxNode& node) {
  const std::string transformation = node.str("coordinate_transformation_mode", "half_pixel");
  // Absent inputs of version 11 are empty lists.
  const auto given = [&](int n) {
    return node.has_input(n) && node.dims(n).elements() != 0 ? node.input(n) : TN_NO_ID;
  };
  const bool crops = transformation == "tf_crop_and_resize";
  const TnValueId roi = crops ? given(1) : TN_NO_ID;
  TnValueId scales = given(2);
  const TnValueId sizes = given(3);
  if (sizes != TN_NO_ID && node.since() < 13) scales = TN_NO_ID;
  if (crops && scales != TN_NO_ID) {
    // The standard's text multiplies the output's size by the region's, its reference and others do not.
    throw Unsupported{"tf_crop_and_resize with scales; use sizes"};
  }
  NewAttrs attrs = node.attrs();
  attrs.str("keep_aspect_ratio_policy", node.str("keep_aspect_ratio_policy", "stretch"))
      .f64("cubic_coeff_a", node.f64("cubic_coeff_a", -0.75))
      .i64("exclude_outside", node.i64("exclude_outside", 0))
      .i64("antialias", node.i64("antialias", 0))
      .f64("extrapolation_value", node.f64("extrapolation_value", 0));
  if (node.has("axes")) attrs.i64s("axes", node.i64s("axes"));
  add_resize(node, node.str("mode", "nearest"), transformation, node.str("nearest_mode", "round_prefer_floor"),
             std::move(attrs), roi, scales, sizes);
}

/// Upsample and Resize before version 11, which say nothing of coordinates: corners are at corners, and the nearest
/// cell is the one before where the output grows and the one behind where it shrinks, as onnxruntime has it.
void resize_by_scales(OnnxNode& node) {
  TnValueId scales = TN_NO_ID;
  if (node.since() < 9) {
    const std::vector<double> values = node.f64s("scales");
    const std::vector<float> floats(values.begin(), values.end());
    scales = node.constant(host_tensor(TN_F32, Dims{static_cast<int64_t>(floats.size())}, floats.data()));
  } else {
    scales = node.input(1);
  }
  const std::string mode = node.str("mode", "nearest");
  if (mode != "nearest" && mode != "linear" && mode != "bilinear") throw Invalid(text("attribute mode: found ", mode));
  bool grows = false, shrinks = false;
  if (mode == "nearest") {
    const auto known = known_floats(node, scales);
    if (!known) throw Unsupported{"scales computed at run time; their contents have to be known"};
    for (const float scale : *known) {
      grows = grows || scale > 1;
      shrinks = shrinks || scale < 1;
    }
    if (grows && shrinks) throw Unsupported{"nearest with scales below and above 1"};
  }
  add_resize(node, mode == "nearest" ? "nearest" : "linear", "asymmetric", shrinks ? "ceil" : "floor", node.attrs(),
             TN_NO_ID, scales, TN_NO_ID);
}

void grid_sample(OnnxNode& node) {
  const std::string mode = node.str("mode", "linear");
  NewAttrs attrs = node.attrs();
  attrs.str("mode", mode == "bilinear"  ? "linear"
                    : mode == "bicubic" ? "cubic"
                                        : mode)
      .str("padding_mode", node.str("padding_mode", "zeros"))
      .i64("align_corners", node.flag("align_corners", false) ? 1 : 0);
  node.output(0, node.add("tenon.grid_sample/1", attrs, {node.input(0), node.input(1)}));
}

/// Coordinates of `size` points of an axis from -1 to 1: those of their centres, or with corners those of the ends.
double grid_coordinate(int64_t n, int64_t size, bool corners) {
  if (corners) return size == 1 ? -1 : 2 * static_cast<double>(n) / static_cast<double>(size - 1) - 1;
  return (2 * static_cast<double>(n) + 1) / static_cast<double>(size) - 1;
}

/// theta times (x, y, [z,] 1) of every point.
void affine_grid(OnnxNode& node) {
  const std::vector<int64_t> size = node.required_i64s(1);
  const Dims theta = node.dims(0);
  const auto rank = static_cast<int64_t>(size.size()) - 2;
  if ((rank != 2 && rank != 3) || theta.rank != 3 || theta[0] != size[0] || theta[1] != rank || theta[2] != rank + 1) {
    throw Invalid(text("expected theta [N,2,3] and size (N,C,H,W), or [N,3,4] and (N,C,D,H,W), found theta ",
                       to_text(theta), " and a size of ", size.size(), " numbers"));
  }
  Dims cells_of = {rank + 1};
  for (int64_t axis = 2; axis < rank + 2; ++axis) {
    cells_of.push_back(size[static_cast<size_t>(axis)]);
    if (cells_of[cells_of.rank - 1] < 1) throw Invalid(text("size: found ", cells_of[cells_of.rank - 1]));
  }
  const int64_t points = node.made_elements(cells_of) / (rank + 1);
  const bool corners = node.flag("align_corners", false);
  std::vector<float> base;
  for (int64_t point = 0; point < points; ++point) {
    int64_t rest = point;
    for (int64_t axis = rank + 1; axis >= 2; --axis) {
      const int64_t cells = size[static_cast<size_t>(axis)];
      base.push_back(static_cast<float>(grid_coordinate(rest % cells, cells, corners)));
      rest /= cells;
    }
    base.push_back(1);
  }
  const TnValueId grid =
      node.cast(node.constant(host_tensor(TN_F32, Dims{1, points, rank + 1}, base.data())), node.dtype(0));
  std::vector<int64_t> shape = {size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(rank);
  node.output(
      0, node.reshape(node.add("tenon.matmul/1", node.attrs().i64("transpose_b", 1), {grid, node.input(0)}), shape));
}

void roi_align(OnnxNode& node) {
  NewAttrs attrs = node.attrs();
  attrs.str("mode", node.str("mode", "avg"))
      .str("coordinate_transformation_mode",
           node.str("coordinate_transformation_mode", node.since() < 16 ? "output_half_pixel" : "half_pixel"))
      .i64("output_height", node.i64("output_height", 1))
      .i64("output_width", node.i64("output_width", 1))
      .i64("sampling_ratio", node.i64("sampling_ratio", 0))
      .f64("spatial_scale", node.f64("spatial_scale", 1));
  node.output(0, node.add("tenon.roi_align/1", attrs, {node.input(0), node.input(1), node.input(2)}));
}

void max_roi_pool(OnnxNode& node) {
  NewAttrs attrs = node.attrs();
  attrs.i64s("pooled_shape", node.i64s("pooled_shape")).f64("spatial_scale", node.f64("spatial_scale", 1));
  node.output(0, node.add("tenon.max_roi_pool/1", attrs, {node.input(0), node.input(1)}));
}

void non_max_suppression(OnnxNode& node) {
  NewAttrs attrs = node.attrs();
  attrs.i64("center_point_box", node.i64("center_point_box", 0));
  node.output(0, node.add("tenon.non_max_suppression/1", attrs,
                          {node.input(0), node.input(1), node.optional_input(2), node.optional_input(3),
                           node.optional_input(4)}));
}

const Rule kRules[] = {
    {"Resize", {11, 13, 18, 19}, resize},   {"Resize", {10}, resize_by_scales},
    {"Upsample", {7, 9}, resize_by_scales}, {"GridSample", {16, 20, 22}, grid_sample},
    {"AffineGrid", {20}, affine_grid},      {"RoiAlign", {10, 16, 22}, roi_align},
    {"MaxRoiPool", {1, 22}, max_roi_pool},  {"NonMaxSuppression", {10, 11}, non_max_suppression},
};

}  // namespace

std::span<const Rule> vision_rules() { return kRules; }

}  // namespace tenon::onnx
