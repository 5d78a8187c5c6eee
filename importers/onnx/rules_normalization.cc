// Normalisation. LpNormalization and LRN are ops of their own; mean-variance normalisation is made of reductions.
#include <algorithm>
#include <cmath>

#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

constexpr double kEpsilon = 1e-5;

/// Wide enough for every one of the inputs.
int32_t widest(const OnnxNode& node, int count) {
  int32_t dtype = node.dtype(0);
  for (int n = 1; n < count; ++n) {
    if (node.dtype(n) == dtype) continue;
    dtype = dtype == TN_F64 || node.dtype(n) == TN_F64 ? TN_F64 : TN_F32;
  }
  return dtype;
}

void batch_normalization(OnnxNode& node) {
  if (node.flag("training_mode", false)) throw Unsupported{"attribute training_mode = 1"};
  for (int n = 1; n < 5; ++n) {
    if (node.wants(n)) throw Unsupported{"the outputs of training"};
  }
  const Dims dims = node.dims(0);
  const int32_t dtype = widest(node, 5);
  TnValueId x = node.cast(node.input(0), dtype);
  std::vector<TnValueId> inputs = {x};
  for (int n = 1; n < 5; ++n) inputs.push_back(node.cast(node.input(n), dtype));
  // Without `spatial` each position of an image has its own statistics.
  const bool flat = !node.flag("spatial", true);
  if (dims.rank < 1) throw Invalid("input 0: expected rank of at least 1, found a scalar");
  if (flat) {
    inputs[0] = node.reshape(x, {dims[0], dims.product(1, dims.rank)});
    for (int n = 1; n < 5; ++n) inputs[static_cast<size_t>(n)] = node.reshape(inputs[static_cast<size_t>(n)], {-1});
  } else if (dims.rank == 1) {
    inputs[0] = node.reshape(x, {dims[0], 1});
  }
  TnValueId y = node.add("tenon.batch_norm/1", node.attrs().f64("epsilon", node.f64("epsilon", kEpsilon)), inputs);
  if (flat || dims.rank == 1) y = node.reshape(y, {dims.begin(), dims.end()});
  node.output(0, node.cast(y, node.dtype(0)));
}

void group_norm(OnnxNode& node, int64_t groups) {
  NewAttrs attrs = node.attrs();
  attrs.i64("groups", groups).f64("epsilon", node.f64("epsilon", kEpsilon));
  node.output(0, node.add("tenon.group_norm/1", attrs, {node.input(0), node.input(1), node.input(2)}));
}

void expect_channels(const OnnxNode& node) {
  if (node.rank(0) < 2) throw Invalid(text("input 0: expected rank of at least 2, found ", to_text(node.dims(0))));
}

void instance_normalization(OnnxNode& node) {
  expect_channels(node);
  group_norm(node, std::max<int64_t>(node.dims(0)[1], 1));
}

void group_normalization(OnnxNode& node) {
  expect_channels(node);
  const int64_t groups = node.i64("num_groups");
  const int64_t size = node.since() == 18 ? groups : node.dims(0)[1];
  for (const int n : {1, 2}) {
    if (node.dims(n) != Dims{size}) {
      throw Invalid(text("input ", n, ": expected [", size, "], found ", to_text(node.dims(n))));
    }
  }
  group_norm(node, groups);
}

/// The axes from `axis` on, as an input of reductions.
TnValueId axes_from(OnnxNode& node, int axis) {
  std::vector<int64_t> axes;
  for (int n = axis; n < node.rank(0); ++n) axes.push_back(n);
  return node.constant(axes);
}

/// Mean and 1 / sqrt(variance + epsilon) in the type that stash_type says.
void statistics(OnnxNode& node, int axis, double epsilon) {
  const auto dtype = static_cast<int32_t>(node.i64("stash_type", TN_F32));
  if (!is_floating(dtype)) throw Invalid(text("attribute stash_type: expected a floating dtype, found ", dtype));
  const TnValueId axes = axes_from(node, axis);
  const TnValueId x = node.cast(node.input(0), dtype);
  const TnValueId mean = node.add("tenon.reduce_mean/1", {x, axes});
  node.output(1, mean);
  if (!node.wants(2)) return;
  const TnValueId distance = node.add("tenon.sub/1", {x, mean});
  const TnValueId square = node.add("tenon.mul/1", {distance, distance});
  const TnValueId variance = node.add("tenon.reduce_mean/1", {square, axes});
  const TnValueId sum = node.add("tenon.add/1", {variance, node.scalar(dtype, epsilon)});
  node.output(2, node.add("tenon.div/1", {node.scalar(dtype, 1), node.add("tenon.sqrt/1", {sum})}));
}

/// The statistics are worked out in f32 (f64 for f64) whatever stash_type says, which is never less exact.
void layer_normalization(OnnxNode& node) {
  const int axis = normalize_axis(node.i64("axis", -1), node.rank(0));
  const double epsilon = node.f64("epsilon", kEpsilon);
  std::vector<TnValueId> inputs = {node.input(0), node.input(1)};
  if (node.has_input(2)) inputs.push_back(node.input(2));
  node.output(0, node.add("tenon.layer_norm/1", node.attrs().i64("axis", axis).f64("epsilon", epsilon), inputs));
  if (node.wants(1) || node.wants(2)) statistics(node, axis, epsilon);
}

void rms_normalization(OnnxNode& node) {
  const int32_t dtype = widest(node, 2);
  NewAttrs attrs = node.attrs();
  attrs.i64("axis", normalize_axis(node.i64("axis", -1), node.rank(0))).f64("epsilon", node.f64("epsilon", kEpsilon));
  const TnValueId y =
      node.add("tenon.rms_norm/1", attrs, {node.cast(node.input(0), dtype), node.cast(node.input(1), dtype)});
  node.output(0, node.cast(y, node.dtype(1)));
}

void lp_normalization(OnnxNode& node) {
  NewAttrs attrs = node.attrs();
  attrs.i64("axis", normalize_axis(node.i64("axis", -1), node.rank(0))).i64("p", node.i64("p", 2));
  node.output(0, node.add("tenon.lp_norm/1", attrs, {node.input(0)}));
}

/// (x - mean) / (deviation + 1e-9); the deviation is the length of x - mean over sqrt(n).
void mean_variance_normalization(OnnxNode& node) {
  const std::vector<int64_t> axes = node.i64s("axes", std::vector<int64_t>{0, 2, 3});
  const Dims dims = node.dims(0);
  double count = 1;
  for (const int64_t axis : axes) count *= static_cast<double>(dims[normalize_axis(axis, dims.rank, "axes")]);
  if (axes.empty()) count = static_cast<double>(dims.elements());
  const TnValueId list = node.constant(axes);
  const TnValueId mean = node.add("tenon.reduce_mean/1", {node.input(0), list});
  const TnValueId distance = node.add("tenon.sub/1", {node.input(0), mean});
  const TnValueId length = node.add("tenon.reduce_l2/1", {distance, list});
  const TnValueId deviation = node.add("tenon.mul/1", {length, node.scalar(node.dtype(0), 1 / std::sqrt(count))});
  const TnValueId divisor = node.add("tenon.add/1", {deviation, node.scalar(node.dtype(0), 1e-9)});
  node.output(0, node.add("tenon.div/1", {distance, divisor}));
}

void lrn(OnnxNode& node) {
  NewAttrs attrs = node.attrs();
  attrs.i64("size", node.i64("size")).f64("alpha", node.f64("alpha", 1e-4)).f64("beta", node.f64("beta", 0.75));
  attrs.f64("bias", node.f64("bias", 1));
  node.output(0, node.add("tenon.lrn/1", attrs, {node.input(0)}));
}

const Rule kRules[] = {
    {"BatchNormalization", {7, 9, 14, 15}, batch_normalization},
    {"InstanceNormalization", {1, 6, 22}, instance_normalization},
    {"GroupNormalization", {18, 21}, group_normalization},
    {"LayerNormalization", {17}, layer_normalization},
    {"RMSNormalization", {23}, rms_normalization},
    {"LpNormalization", {1, 22}, lp_normalization},
    {"MeanVarianceNormalization", {9, 13}, mean_variance_normalization},
    {"LRN", {1, 13}, lrn},
};

}  // namespace

std::span<const Rule> normalization_rules() { return kRules; }

}  // namespace tenon::onnx
