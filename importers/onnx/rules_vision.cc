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

const Rule kRules[] = {
    {"Resize", {11, 13, 18, 19}, resize},
    {"Resize", {10}, resize_by_scales},
    {"Upsample", {7, 9}, resize_by_scales},
};

}  // namespace

std::span<const Rule> vision_rules() { return kRules; }

}  // namespace tenon::onnx
