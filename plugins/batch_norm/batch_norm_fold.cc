// Folding of batch normalisation into the convolution before it: exact up to rounding, since both are linear.
//   norm(conv(x, w, b)) = conv(x, w * factor, b * factor + offset), factor and offset of each output channel
#include <vector>

#include <tenon/sdk/fusion.hpp>

#include "plugins/batch_norm/batch_norm.h"

namespace tenon::plugins {
namespace {

void fold(GraphView& graph, const Match& match) {
  const TnNodeId norm = match.node(0);
  const TnNodeId conv = match.node(1);
  const TnTensor weights = *graph.value_const(match.value("w"));
  if (weights.dtype != TN_F32) throw Declined("the weights are not f32");
  const Dims dims = weights.dims;
  const int64_t channels = dims[0];
  const int64_t taps = channels == 0 ? 0 : dims.elements() / channels;
  const auto constant = [&](const char* name) {
    return static_cast<const float*>(graph.value_const(match.value(name))->data);
  };
  const float *scale = constant("scale"), *shift = constant("shift"), *mean = constant("mean"),
              *variance = constant("variance");
  const TnValueId bias_id = match.value("b");
  const float* bias = bias_id == TN_NO_ID ? nullptr : static_cast<const float*>(graph.value_const(bias_id)->data);

  const NormForm form(graph.node_attrs(norm));
  const float* given = static_cast<const float*>(weights.data);
  std::vector<float> folded(static_cast<size_t>(dims.elements())), folded_bias(static_cast<size_t>(channels));
  for (int64_t k = 0; k < channels; ++k) {
    const Affine affine = form.affine(scale[k], shift[k], mean[k], variance[k]);
    for (int64_t i = k * taps; i < (k + 1) * taps; ++i) {
      folded[static_cast<size_t>(i)] = static_cast<float>(static_cast<double>(given[i]) * affine.factor);
    }
    const double own = bias == nullptr ? 0.0 : static_cast<double>(bias[k]);
    folded_bias[static_cast<size_t>(k)] = static_cast<float>(own * affine.factor + affine.offset);
  }
  const TnValueId w = graph.add_const("", dims, folded.data());
  const TnValueId b = graph.add_const("", Dims{channels}, folded_bias.data());
  const TnValueId y =
      graph.add_node("tenon.conv2d/1", "", graph.attrs(graph.node_attrs(conv)), {match.value("x"), w, b});
  graph.replace(graph.output(norm), y);
}

}  // namespace

Definitions batch_norm_rules() {
  Definitions all;
  all.add(fusion("tenon.fold_batch_norm/1")
              .doc("batch normalisation into the convolution before it")
              .always()
              .pattern("tenon.batch_norm/1(tenon.conv2d/1($x,$w:const,$b:const?),$scale:const,$shift:const,$mean:const,"
                       "$variance:const)")
              .rewrite(fold));
  return all;
}

}  // namespace tenon::plugins
