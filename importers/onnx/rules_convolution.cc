// Convolutions. What has one spatial axis is computed as an image of height 1.
#include <numeric>

#include "importers/onnx/rules.h"
#include "importers/onnx/window.h"

namespace tenon::onnx {
namespace {

/// The value with an axis of 1 before the last.
TnValueId as_image(OnnxNode& node, TnValueId value) { return node.keep_axes(value, {0, 1, -1, 2}); }
TnValueId from_image(OnnxNode& node, TnValueId value) { return node.keep_axes(value, {0, 1, 3}); }
Window as_image(Window window) {
  for (auto* list : {&window.kernel, &window.strides, &window.dilations}) list->insert(list->begin(), 1);
  for (auto* list : {&window.begin, &window.end}) list->insert(list->begin(), 0);
  return window;
}

/// The spatial dims of the weights, which the attribute kernel_shape may only repeat.
std::vector<int64_t> kernel_of(const OnnxNode& node, const Dims& weights) {
  if (weights.rank < 3) throw Invalid(text("the weights: expected rank 3 or more, found ", to_text(weights)));
  std::vector<int64_t> kernel(weights.begin() + 2, weights.end());
  if (node.has("kernel_shape") && node.i64s("kernel_shape") != kernel) {
    throw Invalid(text("attribute kernel_shape differs from the weights ", to_text(weights)));
  }
  return kernel;
}

void conv(OnnxNode& node) {
  Window window = window_over(node, node.dims(0), kernel_of(node, node.dims(1)));
  TnValueId x = node.input(0), weights = node.input(1);
  const bool line = window.rank() == 1;
  if (line) {
    window = as_image(std::move(window));
    x = as_image(node, x);
    weights = as_image(node, weights);
  }
  const NewAttrs attrs = std::move(node.attrs()
                                       .i64s("strides", window.strides)
                                       .i64s("pads", window.pads())
                                       .i64s("dilations", window.dilations)
                                       .i64("groups", node.i64("group", 1)));
  const TnValueId y =
      node.add(window.rank() == 2 ? "tenon.conv2d/1" : "tenon.conv/1", attrs, {x, weights, node.optional_input(2)});
  node.output(0, line ? from_image(node, y) : y);
}

/// Pads and output_padding of a transposed convolution over `in` pixels of an axis so that it gives `out`. Where pads
/// would be negative, the output is longer than the sum of windows and ends with pixels that only have the bias.
void fit_output(int64_t in, int64_t out, bool upper, size_t axis, Window* window, std::vector<int64_t>* more) {
  if (out < 1 || out > INT32_MAX) throw Invalid(text("attribute output_shape: found ", out));
  const int64_t total = window->strides[axis] * (in - 1) + (*more)[axis] + window->extent(axis) - out;
  split_pads(std::max<int64_t>(total, 0), upper, &window->begin[axis], &window->end[axis]);
  if (total < 0) (*more)[axis] -= total;
}

void conv_transpose(OnnxNode& node) {
  const Dims x = node.dims(0);
  Window window = explicit_window(node, kernel_of(node, node.dims(1)));
  const size_t rank = window.rank();
  if (static_cast<size_t>(x.rank) != rank + 2) {
    throw Invalid(text("expected x and weights of one rank, found ", to_text(x), " and ", to_text(node.dims(1))));
  }
  std::vector<int64_t> more = window_list(node, "output_padding", rank, 0, 0);
  const std::string auto_pad = auto_pad_of(node);
  const bool upper = auto_pad == "SAME_UPPER", same = upper || auto_pad == "SAME_LOWER";
  if (auto_pad == "VALID") {
    window.begin.assign(rank, 0);
    window.end.assign(rank, 0);
  }
  if (node.has("output_shape") || same) {
    std::vector<int64_t> out;
    for (size_t n = 0; n < rank; ++n) out.push_back(x[static_cast<int>(n) + 2] * window.strides[n]);
    if (node.has("output_shape")) out = node.i64s("output_shape");
    // Some exporters write batch and channels too.
    if (out.size() == rank + 2) out.erase(out.begin(), out.begin() + 2);
    if (out.size() != rank)
      throw Invalid(text("attribute output_shape: expected ", rank, " sizes, found ", out.size()));
    for (size_t n = 0; n < rank; ++n) fit_output(x[static_cast<int>(n) + 2], out[n], upper, n, &window, &more);
  }
  node.output(0, node.add("tenon.conv_transpose/1",
                          node.attrs()
                              .i64s("strides", window.strides)
                              .i64s("pads", window.pads())
                              .i64s("dilations", window.dilations)
                              .i64s("output_padding", more)
                              .i64("groups", node.i64("group", 1)),
                          {node.input(0), node.input(1), node.optional_input(2)}));
}

void deform_conv(OnnxNode& node) {
  const Window window = explicit_window(node, kernel_of(node, node.dims(1)));
  node.output(0,
              node.add("tenon.deform_conv/1",
                       node.attrs()
                           .i64s("strides", window.strides)
                           .i64s("pads", window.pads())
                           .i64s("dilations", window.dilations)
                           .i64("groups", node.i64("group", 1))
                           .i64("offset_groups", node.i64("offset_group", 1)),
                       {node.input(0), node.input(1), node.input(2), node.optional_input(3), node.optional_input(4)}));
}

void col2im(OnnxNode& node) {
  NewAttrs attrs = node.attrs();
  for (const char* name : {"strides", "pads", "dilations"}) {
    if (node.has(name)) attrs.i64s(name, node.i64s(name));
  }
  node.output(0, node.add("tenon.col2im/1", attrs, {node.input(0), node.input(1), node.input(2)}));
}

const Rule kRules[] = {
    {"Conv", {1, 11, 22}, conv},
    {"ConvTranspose", {1, 11, 22}, conv_transpose},
    {"DeformConv", {19, 22}, deform_conv},
    {"Col2Im", {18}, col2im},
};

}  // namespace

std::span<const Rule> convolution_rules() { return kRules; }

}  // namespace tenon::onnx
