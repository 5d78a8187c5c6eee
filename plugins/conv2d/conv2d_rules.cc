// A number for each channel that is added to, or multiplied with, the result of a convolution becomes part of its
// constants: exact up to rounding, since a convolution is linear.
#include <optional>
#include <tenon/sdk/fusion.hpp>
#include <vector>

#include "plugins/conv2d/conv2d.h"

namespace tenon::plugins {
namespace {

// The constant c as one number for each of `channels`. Declined if it is anything else.
std::vector<float> per_channel(const GraphView& graph, const Match& match, int64_t channels) {
  const TnTensor constant = *graph.value_const(match.value("c"));
  const Dims dims = constant.dims;
  if (constant.dtype != TN_F32) throw Declined("the constant is not f32");
  const auto* data = static_cast<const float*>(constant.data);
  if (dims.elements() == 1) return std::vector<float>(static_cast<size_t>(channels), data[0]);
  const int axis = dims.rank - 3;  // of the channels
  if (axis < 0 || dims[axis] != channels || dims.elements() != channels) {
    throw Declined("the constant is not one number for each channel");
  }
  return {data, data + channels};
}

void check_constant(const GraphView& graph, const Match& match) {
  const Dims y = graph.value_dims(graph.output(match.node(1)));
  if (graph.value_const(match.value("w"))->dtype != TN_F32) throw Declined("the weights are not f32");
  if (graph.value_dims(graph.output(match.node(0))) != y) throw Declined("the result has other dims");
  per_channel(graph, match, y[1]);
}

// conv(x, w, b) with a factor for each channel and something added.
void rewrite(GraphView& graph, const Match& match, const std::vector<float>& factor, const std::vector<float>& offset) {
  const TnNodeId conv = match.node(1);
  const TnTensor weights = *graph.value_const(match.value("w"));
  const Dims dims = weights.dims;
  const auto channels = static_cast<int64_t>(factor.size());
  const int64_t taps = channels == 0 ? 0 : dims.elements() / channels;
  const auto* given = static_cast<const float*>(weights.data);
  const TnValueId bias_id = match.value("b");
  const float* bias = bias_id == TN_NO_ID ? nullptr : static_cast<const float*>(graph.value_const(bias_id)->data);
  std::vector<float> scaled(static_cast<size_t>(dims.elements())), shifted(factor.size());
  for (int64_t k = 0; k < channels; ++k) {
    const auto at = static_cast<size_t>(k);
    for (int64_t i = k * taps; i < (k + 1) * taps; ++i) scaled[static_cast<size_t>(i)] = given[i] * factor[at];
    shifted[at] = (bias == nullptr ? 0 : bias[k]) * factor[at] + offset[at];
  }
  const TnValueId w = graph.add_const("", dims, scaled.data());
  const TnValueId b = graph.add_const("", Dims{channels}, shifted.data());
  const TnValueId y =
      graph.add_node("tenon.conv2d/1", "", graph.attrs(graph.node_attrs(conv)), {match.value("x"), w, b});
  graph.replace(graph.output(match.node(0)), y);
}

int64_t channels_of(const GraphView& graph, const Match& match) {
  return graph.value_dims(graph.output(match.node(1)))[1];
}

Fusion fold(const char* id, const char* doc, const std::string& op) {
  return fusion(id)
      .doc(doc)
      .always()
      .check(check_constant)
      .pattern(op + "(tenon.conv2d/1($x,$w:const,$b:const?),$c:const)");
}

}  // namespace

Definitions conv2d_rules() {
  Definitions all;
  all.add(fold("tenon.fold_bias/1", "a constant for each channel, added to a convolution, into its bias", "tenon.add/1")
              .rewrite([](GraphView& graph, const Match& match) {
                const int64_t channels = channels_of(graph, match);
                rewrite(graph, match, std::vector<float>(static_cast<size_t>(channels), 1),
                        per_channel(graph, match, channels));
              }));
  all.add(fold("tenon.fold_scale/1", "a factor for each channel, behind a convolution, into its weights and bias",
               "tenon.mul/1")
              .rewrite([](GraphView& graph, const Match& match) {
                const int64_t channels = channels_of(graph, match);
                rewrite(graph, match, per_channel(graph, match, channels),
                        std::vector<float>(static_cast<size_t>(channels), 0));
              }));
  return all;
}

}  // namespace tenon::plugins
