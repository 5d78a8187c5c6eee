// Reduce*, ArgMax, ArgMin, and the softmax family.
#include <cctype>

#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

/// "ReduceLogSumExp" as "tenon.reduce_log_sum_exp/1".
std::string op_of(const std::string& type) {
  std::string id = "tenon.";
  for (const char letter : type) {
    if (std::isupper(static_cast<unsigned char>(letter)) != 0 && id.back() != '.') id += '_';
    id += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return id + "/1";
}

TnValueId reduce_with(OnnxNode& node, TnValueId axes) {
  NewAttrs attrs = node.attrs();
  attrs.i64("keepdims", node.flag("keepdims", true) ? 1 : 0);
  attrs.i64("noop_with_empty_axes", node.flag("noop_with_empty_axes", false) ? 1 : 0);
  std::vector<TnValueId> inputs = {node.input(0)};
  if (axes != TN_NO_ID) inputs.push_back(axes);
  return node.add(op_of(node.type()), attrs, inputs);
}

/// The axes are an attribute.
void reduce_1(OnnxNode& node) {
  const TnValueId axes = node.has("axes") ? node.constant(node.i64s("axes")) : static_cast<TnValueId>(TN_NO_ID);
  node.output(0, reduce_with(node, axes));
}

/// The axes are an input.
void reduce_18(OnnxNode& node) { node.output(0, reduce_with(node, node.optional_input(1))); }

void arg_extreme(OnnxNode& node) {
  NewAttrs attrs = node.attrs();
  attrs.i64("axis", node.i64("axis", 0)).i64("keepdims", node.flag("keepdims", true) ? 1 : 0);
  attrs.i64("select_last_index", node.flag("select_last_index", false) ? 1 : 0);
  node.output(0, node.add(op_of(node.type()), attrs, {node.input(0)}));
}

/// One axis.
void softmax_13(OnnxNode& node) {
  const int axis = normalize_axis(node.i64("axis", -1), node.rank(0));
  node.output(0, node.add(op_of(node.type()), node.attrs().i64("axis", axis), {node.input(0)}));
}

/// All axes from `axis` on, as one.
void softmax_1(OnnxNode& node) {
  const Dims dims = node.dims(0);
  const int axis = normalize_axis(node.i64("axis", 1), dims.rank);
  if (dims.product(axis + 1, dims.rank) == 1) {
    return node.output(0, node.add(op_of(node.type()), node.attrs().i64("axis", axis), {node.input(0)}));
  }
  const auto reshape = [&](TnValueId value, const std::vector<int64_t>& shape) {
    if (dims.elements() != 0) return node.reshape(value, shape);
    return node.add("tenon.reshape/1", node.attrs().i64s("shape", shape).i64("allow_zero", 1), {value});
  };
  const TnValueId rows = reshape(node.input(0), {dims.product(0, axis), dims.product(axis, dims.rank)});
  const TnValueId result = node.add(op_of(node.type()), node.attrs().i64("axis", 1), {rows});
  node.output(0, reshape(result, {dims.begin(), dims.end()}));
}

const Rule kRules[] = {
    {"ReduceSum", {1, 11}, reduce_1},
    {"ReduceSum", {13}, reduce_18},
    {"ReduceMean", {1, 11, 13}, reduce_1},
    {"ReduceMean", {18}, reduce_18},
    {"ReduceMax", {1, 11, 12, 13}, reduce_1},
    {"ReduceMax", {18, 20}, reduce_18},
    {"ReduceMin", {1, 11, 12, 13}, reduce_1},
    {"ReduceMin", {18, 20}, reduce_18},
    {"ReduceProd", {1, 11, 13}, reduce_1},
    {"ReduceProd", {18}, reduce_18},
    {"ReduceL1", {1, 11, 13}, reduce_1},
    {"ReduceL1", {18}, reduce_18},
    {"ReduceL2", {1, 11, 13}, reduce_1},
    {"ReduceL2", {18}, reduce_18},
    {"ReduceLogSum", {1, 11, 13}, reduce_1},
    {"ReduceLogSum", {18}, reduce_18},
    {"ReduceLogSumExp", {1, 11, 13}, reduce_1},
    {"ReduceLogSumExp", {18}, reduce_18},
    {"ReduceSumSquare", {1, 11, 13}, reduce_1},
    {"ReduceSumSquare", {18}, reduce_18},
    {"ArgMax", {1, 11, 12, 13}, arg_extreme},
    {"ArgMin", {1, 11, 12, 13}, arg_extreme},
    {"Softmax", {1, 11}, softmax_1},
    {"Softmax", {13}, softmax_13},
    {"LogSoftmax", {1, 11}, softmax_1},
    {"LogSoftmax", {13}, softmax_13},
    {"Hardmax", {1, 11}, softmax_1},
    {"Hardmax", {13}, softmax_13},
};

}  // namespace

std::span<const Rule> reduction_rules() { return kRules; }

}  // namespace tenon::onnx
