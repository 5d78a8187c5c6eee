// Quantized networks: to and from small integers, products and convolutions of them.
#include <algorithm>

#include "importers/onnx/rules.h"
#include "importers/onnx/window.h"

namespace tenon::onnx {
namespace {

bool is_byte(int32_t dtype) { return dtype == TN_U8 || dtype == TN_I8; }

/// A value of one element without axes, others as they are.
TnValueId scalar_or_same(OnnxNode& node, TnValueId value) {
  if (value == TN_NO_ID) return value;
  const Dims dims = node.dims_of(value);
  return dims.elements() == 1 && dims.rank > 0 ? node.reshape(value, {}) : value;
}

/// The scale or zero point of input n of a product's left side: a list is for the rows.
TnValueId by_row(OnnxNode& node, int n) {
  if (!node.has_input(n)) return TN_NO_ID;
  const TnValueId value = scalar_or_same(node, node.input(n));
  const Dims dims = node.dims_of(value);
  return dims.rank == 1 ? node.reshape(value, {dims[0], 1}) : value;
}

TnValueId by_column(OnnxNode& node, int n) { return scalar_or_same(node, node.optional_input(n)); }

void quantize_linear(OnnxNode& node) {
  const int32_t scale = node.dtype(1);
  int64_t to = node.i64("output_dtype", 0);
  if (node.has_input(2)) {
    if (to != 0 && to != node.dtype(2)) {
      throw Invalid(text("output_dtype: expected ", dtype_name(node.dtype(2)), " of y_zero_point, found ",
                         dtype_name(static_cast<int32_t>(to))));
    }
    to = node.dtype(2);
  }
  int64_t precision = node.i64("precision", 0);
  // Neither integers nor powers of two can hold a quotient.
  if (precision == 0) precision = is_floating(scale) ? scale : static_cast<int32_t>(TN_F32);
  node.output(0, node.add("tenon.quantize/1",
                          node.attrs()
                              .dtype("to", to == 0 ? static_cast<int32_t>(TN_U8) : static_cast<int32_t>(to))
                              .dtype("precision", static_cast<int32_t>(precision))
                              .i64("axis", node.i64("axis", 1))
                              .i64("block_size", node.i64("block_size", 0))
                              .i64("saturate", node.flag("saturate", true) ? 1 : 0),
                          {node.input(0), node.input(1), node.optional_input(2)}));
}

void dequantize_linear(OnnxNode& node) {
  const int64_t to = node.i64("output_dtype", 0);
  node.output(0, node.add("tenon.dequantize/1",
                          node.attrs()
                              .dtype("to", to == 0 ? node.dtype(1) : static_cast<int32_t>(to))
                              .i64("axis", node.i64("axis", 1))
                              .i64("block_size", node.i64("block_size", 0)),
                          {node.input(0), node.input(1), node.optional_input(2)}));
}

void dynamic_quantize_linear(OnnxNode& node) {
  const std::vector<TnValueId> results = node.add("tenon.dynamic_quantize/1", node.attrs(), {node.input(0)}, 3);
  for (int n = 0; n < 3 && n < node.num_outputs(); ++n) node.output(n, results[static_cast<size_t>(n)]);
}

void matmul_integer(OnnxNode& node) {
  node.output(0,
              node.add("tenon.matmul_integer/1", {node.input(0), node.input(1), by_row(node, 2), by_column(node, 3)}));
}

/// a * b / y of three scales, each rounded to their dtype, as f32.
TnValueId multiplier(OnnxNode& node, TnValueId a, TnValueId b, TnValueId y) {
  return node.cast(node.add("tenon.div/1", {node.add("tenon.mul/1", {a, b}), y}), TN_F32);
}

void qlinear_matmul(OnnxNode& node) {
  for (const int n : {0, 3, 7}) {
    if (!is_byte(node.dtype(n))) throw Unsupported{text("matrices of ", dtype_name(node.dtype(n)))};
  }
  const TnValueId sums =
      node.add("tenon.matmul_integer/1", {node.input(0), node.input(3), by_row(node, 2), by_column(node, 5)});
  const TnValueId scale = multiplier(node, by_row(node, 1), by_column(node, 4), by_column(node, 6));
  node.output(0, node.add("tenon.requantize/1", {sums, scale, by_column(node, 7)}));
}

/// The attributes of tenon.conv_integer for x and weights.
NewAttrs convolution(OnnxNode& node, const Dims& x, const Dims& weights) {
  const std::vector<int64_t> kernel(weights.begin() + std::min(weights.rank, 2), weights.end());
  if (node.i64s("kernel_shape", kernel) != kernel) {
    throw Invalid(text("attribute kernel_shape: expected the last dims of w ", to_text(weights)));
  }
  const Window window = window_over(node, x, kernel);
  NewAttrs attrs = node.attrs();
  attrs.i64s("strides", window.strides)
      .i64s("pads", window.pads())
      .i64s("dilations", window.dilations)
      .i64("groups", node.i64("group", 1));
  return attrs;
}

void conv_integer(OnnxNode& node) {
  node.output(0, node.add("tenon.conv_integer/1", convolution(node, node.dims(0), node.dims(1)),
                          {node.input(0), node.input(1), node.optional_input(2), node.optional_input(3), TN_NO_ID}));
}

void qlinear_conv(OnnxNode& node) {
  for (const int n : {0, 3, 7}) {
    if (!is_byte(node.dtype(n)))
      throw Invalid(text("input ", n, ": expected u8 or i8, found ", dtype_name(node.dtype(n))));
  }
  const Dims x = node.dims(0);
  const TnValueId sums = node.add("tenon.conv_integer/1", convolution(node, x, node.dims(3)),
                                  {node.input(0), node.input(3), node.input(2), node.input(5), node.optional_input(8)});
  TnValueId scale = multiplier(node, by_column(node, 1), by_column(node, 4), by_column(node, 6));
  const Dims scale_dims = node.dims_of(scale);
  if (scale_dims.rank == 1) {
    // One for each output channel.
    std::vector<int64_t> shape(static_cast<size_t>(x.rank) - 1, 1);
    shape[0] = scale_dims[0];
    scale = node.reshape(scale, shape);
  }
  node.output(0, node.add("tenon.requantize/1", {sums, scale, by_column(node, 7)}));
}

const Rule kRules[] = {
    {"QuantizeLinear", {10, 13, 19, 21, 23, 24, 25}, quantize_linear},
    {"DequantizeLinear", {10, 13, 19, 21, 23, 24, 25}, dequantize_linear},
    {"DynamicQuantizeLinear", {11}, dynamic_quantize_linear},
    {"MatMulInteger", {10}, matmul_integer},
    {"QLinearMatMul", {10, 21}, qlinear_matmul},
    {"ConvInteger", {10}, conv_integer},
    {"QLinearConv", {10}, qlinear_conv},
};

}  // namespace

std::span<const Rule> quantization_rules() { return kRules; }

}  // namespace tenon::onnx
