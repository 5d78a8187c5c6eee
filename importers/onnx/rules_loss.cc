// Losses.
#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

TnValueId nll_loss(OnnxNode& node, TnValueId x) {
  NewAttrs attrs = node.attrs();
  attrs.str("reduction", node.str("reduction", "mean"));
  if (node.has("ignore_index")) attrs.i64s("ignore_index", {node.i64("ignore_index")});
  std::vector<TnValueId> inputs = {x, node.input(1)};
  if (node.has_input(2)) inputs.push_back(node.input(2));
  return node.add("tenon.nll_loss/1", attrs, inputs);
}

void negative_log_likelihood_loss(OnnxNode& node) { node.output(0, nll_loss(node, node.input(0))); }

void softmax_cross_entropy_loss(OnnxNode& node) {
  normalize_axis(1, node.rank(0));
  const TnValueId x = node.add("tenon.log_softmax/1", node.attrs().i64("axis", 1), {node.input(0)});
  node.output(0, nll_loss(node, x));
  node.output(1, x);
}

const Rule kRules[] = {
    {"NegativeLogLikelihoodLoss", {12, 13, 22}, negative_log_likelihood_loss},
    {"SoftmaxCrossEntropyLoss", {12, 13}, softmax_cross_entropy_loss},
};

}  // namespace

std::span<const Rule> loss_rules() { return kRules; }

}  // namespace tenon::onnx
