// Convolutions. What has one spatial axis is computed as an image of height 1.
#include <numeric>

#include "importers/onnx/rules.h"
#include "importers/onnx/window.h"

namespace tenon::onnx {
namespace {

std::vector<int64_t> to_vector(const Dims& dims) { return {dims.begin(), dims.end()}; }

/// The value with an axis of 1 before the last.
TnValueId as_image(OnnxNode& node, TnValueId value) {
  std::vector<int64_t> dims = to_vector(node.dims_of(value));
  dims.insert(dims.end() - 1, 1);
  return node.reshape(value, dims);
}
TnValueId from_image(OnnxNode& node, TnValueId value) {
  std::vector<int64_t> dims = to_vector(node.dims_of(value));
  dims.erase(dims.end() - 2);
  return node.reshape(value, dims);
}
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

const Rule kRules[] = {
    {"Conv", {1, 11, 22}, conv},
};

}  // namespace

std::span<const Rule> convolution_rules() { return kRules; }

}  // namespace tenon::onnx
