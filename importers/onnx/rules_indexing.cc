// What reads or writes places that indices name, orders, or counts.
#include <algorithm>
#include <functional>

#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

bool is_small_float(int32_t dtype) { return dtype == TN_F16 || dtype == TN_BF16; }

/// What computes with f16 and bf16 does it in f32.
TnValueId widened(OnnxNode& node, TnValueId value) {
  return is_small_float(node.dtype_of(value)) ? node.cast(value, TN_F32) : value;
}

/// As i64, unless it is i32 already.
TnValueId index_value(OnnxNode& node, TnValueId value) {
  return node.dtype_of(value) == TN_I32 ? value : node.cast(value, TN_I64);
}

// --- gather, scatter ---

void gather_elements(OnnxNode& node) {
  node.output(0, node.add("tenon.gather_elements/1", node.attrs().i64("axis", node.i64("axis", 0)),
                          {node.input(0), node.input(1)}));
}

void gather_nd(OnnxNode& node) {
  node.output(0, node.add("tenon.gather_nd/1", node.attrs().i64("batch_dims", node.i64("batch_dims", 0)),
                          {node.input(0), node.input(1)}));
}

/// Scatter with the attributes `attrs`: a reduction of f16 or bf16 is done in f32.
void scatter(OnnxNode& node, const char* op, NewAttrs& attrs) {
  const std::string reduction = node.str("reduction", "none");
  attrs.str("reduction", reduction);
  const int32_t dtype = node.dtype(0);
  const bool plain = reduction == "none";
  const TnValueId data = plain ? node.input(0) : widened(node, node.input(0));
  const TnValueId updates = plain ? node.input(2) : widened(node, node.input(2));
  node.output(0, node.cast(node.add(op, attrs, {data, node.input(1), updates}), dtype));
}

void scatter_elements(OnnxNode& node) {
  NewAttrs attrs = node.attrs();
  attrs.i64("axis", node.i64("axis", 0));
  scatter(node, "tenon.scatter_elements/1", attrs);
}

void scatter_nd(OnnxNode& node) {
  NewAttrs attrs = node.attrs();
  scatter(node, "tenon.scatter_nd/1", attrs);
}

void tensor_scatter(OnnxNode& node) {
  node.output(0, node.add("tenon.tensor_scatter/1",
                          node.attrs().str("mode", node.str("mode", "linear")).i64("axis", node.i64("axis", -2)),
                          {node.input(0), node.input(1), node.optional_input(2)}));
}

/// A constant condition makes it a gather, for which there are more kernels.
void compress(OnnxNode& node) {
  TnValueId data = node.input(0);
  int64_t axis = 0;
  if (node.has("axis")) {
    axis = normalize_axis(node.i64("axis"), node.rank(0));
  } else {
    data = node.reshape(data, {-1});
  }
  const TnValueId condition = node.input(1);
  const auto known = node.is_computed(1) ? std::nullopt : node.graph_view().value_const(condition);
  if (!known || known->dtype != TN_BOOL || known->dims.rank != 1) {
    node.output(0, node.add("tenon.compress/1", node.attrs().i64("axis", axis), {data, condition}));
    return;
  }
  std::vector<int64_t> picked;
  for (int64_t n = 0; n < known->dims.d[0]; ++n) {
    if (static_cast<const uint8_t*>(known->data)[n] != 0) picked.push_back(n);
  }
  node.output(0, node.add("tenon.gather/1", node.attrs().i64("axis", axis), {data, node.constant(picked)}));
}

// --- order and number ---

void one_hot(OnnxNode& node) {
  node.output(0, node.add("tenon.one_hot/1", node.attrs().i64("axis", node.i64("axis", -1)),
                          {index_value(node, node.input(0)), index_value(node, node.input(1)), node.input(2)}));
}

void top_k(OnnxNode& node) {
  const TnValueId k = node.since() < 10 ? node.constant(std::vector<int64_t>{node.i64("k")}) : node.input(1);
  const std::vector<TnValueId> outputs =
      node.add("tenon.top_k/1",
               node.attrs().i64("axis", node.i64("axis", -1)).i64("largest", node.flag("largest", true) ? 1 : 0),
               {widened(node, node.input(0)), k}, 2);
  node.output(0, node.cast(outputs[0], node.dtype(0)));
  node.output(1, outputs[1]);
}

template <const char* op>
void cumulate(OnnxNode& node) {
  const TnValueId y = node.add(op,
                               node.attrs()
                                   .i64("exclusive", node.flag("exclusive", false) ? 1 : 0)
                                   .i64("reverse", node.flag("reverse", false) ? 1 : 0),
                               {widened(node, node.input(0)), node.input(1)});
  node.output(0, node.cast(y, node.dtype(0)));
}
constexpr char kCumSum[] = "tenon.cum_sum/1";
constexpr char kCumProd[] = "tenon.cum_prod/1";

void reverse_sequence(OnnxNode& node) {
  node.output(
      0, node.add("tenon.reverse_sequence/1",
                  node.attrs().i64("batch_axis", node.i64("batch_axis", 1)).i64("time_axis", node.i64("time_axis", 0)),
                  {node.input(0), node.input(1)}));
}

void non_zero(OnnxNode& node) { node.output(0, node.add("tenon.non_zero/1", {node.cast(node.input(0), TN_BOOL)})); }

void unique(OnnxNode& node) {
  const int32_t dtype = node.dtype(0);
  TnValueId x = widened(node, node.input(0));
  int64_t axis = 0;
  if (node.has("axis")) {
    axis = normalize_axis(node.i64("axis"), node.rank(0));
  } else {
    x = node.reshape(x, {-1});
  }
  const std::vector<TnValueId> outputs = node.add(
      "tenon.unique/1", node.attrs().i64("axis", axis).i64("sorted", node.flag("sorted", true) ? 1 : 0), {x}, 4);
  node.output(0, node.cast(outputs[0], dtype));
  for (int n = 1; n < 4; ++n) node.output(n, outputs[static_cast<size_t>(n)]);
}

const Rule kRules[] = {
    {"GatherElements", {11, 13}, gather_elements},
    {"GatherND", {11, 12, 13}, gather_nd},
    {"Scatter", {9, 11}, scatter_elements},
    {"ScatterElements", {11, 13, 16, 18}, scatter_elements},
    {"ScatterND", {11, 13, 16, 18}, scatter_nd},
    {"TensorScatter", {24}, tensor_scatter},
    {"Compress", {9, 11}, compress},
    {"OneHot", {9, 11}, one_hot},
    {"TopK", {1, 10, 11, 24}, top_k},
    {"CumSum", {11, 14}, cumulate<kCumSum>},
    {"CumProd", {26}, cumulate<kCumProd>},
    {"ReverseSequence", {10}, reverse_sequence},
    {"NonZero", {9, 13}, non_zero},
    {"Unique", {11}, unique},
};

}  // namespace

std::span<const Rule> indexing_rules() { return kRules; }

}  // namespace tenon::onnx
