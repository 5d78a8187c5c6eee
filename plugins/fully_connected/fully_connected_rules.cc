// A product with constant weights and the bias behind it, as one dense layer.
//   add(matmul(x, w), b) = fully_connected(x, transposed w, b)
#include <tenon/sdk/fusion.hpp>
#include <vector>

#include "plugins/fully_connected/fully_connected.h"

namespace tenon::plugins {
namespace {

void check_matmul_bias(const GraphView& graph, const Match& match) {
  const Dims y = graph.value_dims(graph.output(match.node(1)));
  const TnTensor weights = *graph.value_const(match.value("w"));
  const TnTensor bias = *graph.value_const(match.value("b"));
  if (graph.value_dims(match.value("x")).rank != 2 || weights.dims.rank != 2) throw Declined("no product of matrices");
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
  const int64_t rows = weights.dims.d[0], columns = weights.dims.d[1];
  const auto* given = static_cast<const float*>(weights.data);
  std::vector<float> transposed(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      transposed[static_cast<size_t>(column * rows + row)] = given[row * columns + column];
    }
  }
  const TnValueId w = graph.add_const("", Dims{columns, rows}, transposed.data());
  const TnValueId b = graph.add_const("", Dims{columns}, static_cast<const float*>(bias.data));
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
