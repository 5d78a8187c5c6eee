// A product with constant weights and the bias behind it, as one dense layer.
//   add(matmul(x, w), b) = fully_connected(x, w with a row for each output, b)
#include <tenon/sdk/fusion.hpp>
#include <utility>
#include <vector>

#include "plugins/fully_connected/fully_connected.h"

namespace tenon::plugins {
namespace {

void check_matmul_bias(const GraphView& graph, const Match& match) {
  const Dims y = graph.value_dims(graph.output(match.node(1)));
  const TnTensor weights = *graph.value_const(match.value("w"));
  const TnTensor bias = *graph.value_const(match.value("b"));
  if (graph.value_dims(match.value("x")).rank != 2 || weights.dims.rank != 2) throw Declined("no product of matrices");
  if (graph.node_attrs(match.node(1)).i64("transpose_a") != 0) throw Declined("x is transposed");
  if (weights.dtype != TN_F32) throw Declined("the weights are not f32");
  if (graph.value_dims(graph.output(match.node(0))) != y) throw Declined("the sum has other dims than the product");
  const Dims dims = bias.dims;
  if (dims.elements() != y[1] || dims.empty() || dims[dims.rank - 1] != y[1]) {
    throw Declined("the constant is not one number for each column");
  }
}

void fuse_matmul_bias(GraphView& graph, const Match& match) {
  const TnTensor weights = *graph.value_const(match.value("w"));
  const TnTensor bias = *graph.value_const(match.value("b"));
  const auto* given = static_cast<const float*>(weights.data);
  TnValueId w = match.value("w");
  Dims dims = weights.dims;
  if (graph.node_attrs(match.node(1)).i64("transpose_b") == 0) {
    std::swap(dims[0], dims[1]);
    std::vector<float> transposed(static_cast<size_t>(dims.elements()));
    for (int64_t k = 0; k < dims[0]; ++k) {
      for (int64_t c = 0; c < dims[1]; ++c) transposed[static_cast<size_t>(k * dims[1] + c)] = given[c * dims[0] + k];
    }
    w = graph.add_const("", dims, transposed.data());
  }
  const TnValueId b = graph.add_const("", Dims{dims[0]}, static_cast<const float*>(bias.data));
  const TnValueId y = graph.add_node("tenon.fully_connected/1", "", graph.attrs(), {match.value("x"), w, b});
  graph.replace(graph.output(match.node(0)), y);
}

}  // namespace

Definitions fully_connected_rules() {
  Definitions all;
  all.add(fusion("tenon.fuse_matmul_bias/1")
              .doc("a product with constant weights and the bias behind it into one dense layer")
              .always()
              .pattern("tenon.add/1(tenon.matmul/1($x,$w:const),$b:const)")
              .check(check_matmul_bias)
              .rewrite(fuse_matmul_bias));
  return all;
}

}  // namespace tenon::plugins
