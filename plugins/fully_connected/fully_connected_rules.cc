// A product with constant weights and the bias behind it, as one dense layer.
//   add(matmul(x, w), b) = fully_connected(x, w with a row for each output, b)
#include <tenon/sdk/fusion.hpp>
#include <utility>
#include <vector>

#include "plugins/common/constants.h"
#include "plugins/fully_connected/fully_connected.h"

namespace tenon::plugins {
namespace {

void check_matmul_bias(const GraphView& graph, const Match& match) {
  const Dims y = graph.value_dims(graph.output(match.node(1)));
  const TnTensor weights = *graph.value_const(match.value("w"));
  const TnTensor bias = *graph.value_const(match.value("b"));
  if (weights.dims.rank != 2) throw Declined("the weights are no matrix");
  if (graph.node_attrs(match.node(1)).i64("transpose_a") != 0) throw Declined("x is transposed");
  if (!is_float_or_half(weights.dtype)) throw Declined("the weights are neither f32 nor f16");
  if (graph.value_dims(graph.output(match.node(0))) != y) throw Declined("the sum has other dims than the product");
  const Dims dims = bias.dims;
  const int64_t columns = y[y.rank - 1];
  if (dims.elements() != columns || dims.empty() || dims[dims.rank - 1] != columns) {
    throw Declined("the constant is not one number for each column");
  }
}

void fuse_matmul_bias(GraphView& graph, const Match& match) {
  const TnTensor weights = *graph.value_const(match.value("w"));
  const TnTensor bias = *graph.value_const(match.value("b"));
  TnValueId w = match.value("w");
  Dims dims = weights.dims;
  if (graph.node_attrs(match.node(1)).i64("transpose_b") == 0) {
    std::swap(dims[0], dims[1]);
    w = graph.add_const("", host_tensor(weights.dtype, dims, transposed_matrix(weights).data()));
  }
  const TnValueId b = graph.add_const("", host_tensor(bias.dtype, Dims{dims[0]}, bias.data));
  NewAttrs attrs = graph.attrs();
  if (graph.value_dims(match.value("x")).rank != 2) attrs.i64("axis", -1);
  const TnValueId y = graph.add_node("tenon.fully_connected/1", "", attrs, {match.value("x"), w, b});
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
