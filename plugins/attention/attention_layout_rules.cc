// Attention reads heads where the products before it leave them, and writes them where the product behind it reads
// them: no transpose moves them. Three products of one value become one.
#include <string>
#include <tenon/sdk/fusion.hpp>
#include <vector>

#include "plugins/attention/attention.h"
#include "plugins/common/constants.h"
#include "plugins/common/permutation.h"

namespace tenon::plugins {
namespace {

constexpr const char* kPorts[] = {"q", "k", "v", "mask", "lengths"};

std::vector<TnValueId> inputs_of(const Match& match) {
  std::vector<TnValueId> inputs;
  for (const char* port : kPorts) inputs.push_back(match.value(port));
  return inputs;
}

bool swaps_rows_and_heads(const GraphView& graph, TnNodeId transpose) {
  const int rank = graph.value_dims(graph.output(transpose)).rank;
  return rank == 4 && permutation(graph.node_attrs(transpose), rank) == std::vector<int>{0, 2, 1, 3};
}

// The value [batch, rows, heads, size] that a transpose makes `value`, [batch, heads, rows, size], of.
TnValueId before_split(const GraphView& graph, TnValueId value) {
  const TnNodeId node = value == TN_NO_ID ? TN_NO_ID : graph.producer(value);
  if (node == TN_NO_ID || graph.node_op(node) != "tenon.transpose/1") return TN_NO_ID;
  return swaps_rows_and_heads(graph, node) ? graph.input(node, 0) : TN_NO_ID;
}

void check_split(const GraphView& graph, const Match& match) {
  for (const int port : {kQuery, kKey, kValue}) {
    if (before_split(graph, match.value(kPorts[port])) != TN_NO_ID) return;
  }
  throw Declined("no input is transposed from [batch, rows, heads, size]");
}

// [batch, rows, heads * size] of [batch, rows, heads, size]; the value that was reshaped to that, if it is one.
TnValueId joined(GraphView& graph, TnValueId value) {
  const Dims dims = graph.value_dims(value);
  const TnNodeId node = graph.producer(value);
  if (node != TN_NO_ID && graph.node_op(node) == "tenon.reshape/1" &&
      graph.value_dims(graph.input(node, 0)) == Dims{dims[0], dims[1], dims[2] * dims[3]}) {
    return graph.input(node, 0);
  }
  return graph.add_node("tenon.reshape/1", "", std::move(graph.attrs().i64s("shape", {0, 0, dims[2] * dims[3]})),
                        {value});
}

void split_heads(GraphView& graph, const Match& match) {
  std::vector<TnValueId> inputs = inputs_of(match);
  NewAttrs attrs = graph.attrs(graph.node_attrs(match.node(0)));
  for (const int port : {kQuery, kKey, kValue}) {
    const TnValueId rows = before_split(graph, inputs[static_cast<size_t>(port)]);
    if (rows == TN_NO_ID) continue;
    attrs.i64(port == kQuery ? "heads" : "key_heads", graph.value_dims(rows)[2]);
    inputs[static_cast<size_t>(port)] = joined(graph, rows);
  }
  graph.replace(graph.output(match.node(0)), graph.add_node("tenon.attention/1", "", attrs, inputs));
}

void check_merge(const GraphView& graph, const Match& match) {
  if (!swaps_rows_and_heads(graph, match.node(0))) throw Declined("the transpose moves other axes");
}

void merge_heads(GraphView& graph, const Match& match) {
  NewAttrs attrs = graph.attrs(graph.node_attrs(match.node(1)));
  attrs.i64("merge_heads", 1);
  const TnValueId y = graph.add_node("tenon.attention/1", "", attrs, inputs_of(match));
  const TnValueId result = graph.output(match.node(0));
  const Dims dims = graph.value_dims(result);
  graph.replace(result, graph.add_node("tenon.reshape/1", "",
                                       std::move(graph.attrs().i64s("shape", {0, 0, dims[2], dims[3]})), {y}));
}

// One of the products that make q, k and v.
struct Projection {
  bool is_matmul, transposed;
  TnTensor weights;  // [outputs, features]; transposed: [features, outputs]
  std::optional<TnTensor> bias;
  int64_t outputs;

  Projection(const GraphView& graph, const Match& match, int port) {
    const TnNodeId node = match.node(1 + static_cast<uint32_t>(port));
    const std::string name = kPorts[port];
    const Attrs attrs = graph.node_attrs(node);
    const Dims x = graph.value_dims(match.value("x")), y = graph.value_dims(graph.output(node));
    weights = *graph.value_const(match.value("w" + name));
    is_matmul = graph.node_op(node) == "tenon.matmul/1";
    transposed = is_matmul && !attrs.flag("transpose_b");
    if (is_matmul && attrs.flag("transpose_a")) throw Declined("x is transposed");
    if (x.rank != 3 || y.rank != 3 || weights.dims.rank != 2) throw Declined("expected rows of rank 3 and matrices");
    if (!is_float_or_half(weights.dtype)) throw Declined("expected weights of f32 or f16");
    outputs = y[2];
    const TnValueId b = match.value("b" + name);
    if (b != TN_NO_ID) bias = graph.value_const(b);
  }
};

std::vector<Projection> projections_of(const GraphView& graph, const Match& match) {
  std::vector<Projection> all;
  for (const int port : {kQuery, kKey, kValue}) all.emplace_back(graph, match, port);
  return all;
}

void check_merge_products(const GraphView& graph, const Match& match) {
  const std::vector<Projection> all = projections_of(graph, match);
  const Attrs attrs = graph.node_attrs(match.node(0));
  const int64_t heads = attrs.i64("heads"), key_heads = attrs.i64("key_heads");
  const int64_t of_keys = key_heads == 0 ? heads : key_heads;
  if (all[kKey].outputs != all[kValue].outputs || all[kQuery].outputs * of_keys != all[kKey].outputs * heads) {
    throw Declined("the heads of q, k and v have other sizes");
  }
}

void merge_products(GraphView& graph, const Match& match) {
  std::vector<char> weights, bias;
  const std::vector<Projection> all = projections_of(graph, match);
  const int32_t dtype = all[0].weights.dtype;
  const auto element = static_cast<size_t>(dtype_size(dtype));
  int64_t outputs = 0;
  bool has_bias = false;
  for (const Projection& one : all) {
    const auto* data = static_cast<const char*>(one.weights.data);
    std::vector<char> rows(data, data + static_cast<size_t>(Dims(one.weights.dims).elements()) * element);
    if (one.transposed) rows = transposed_matrix(one.weights);
    weights.insert(weights.end(), rows.begin(), rows.end());
    std::vector<char> row(static_cast<size_t>(one.outputs) * element, 0);
    if (one.bias)
      row.assign(static_cast<const char*>(one.bias->data), static_cast<const char*>(one.bias->data) + row.size());
    bias.insert(bias.end(), row.begin(), row.end());
    has_bias = has_bias || one.bias;
    outputs += one.outputs;
  }
  const int64_t features = graph.value_dims(match.value("x"))[2];
  std::vector<TnValueId> layer = {match.value("x"),
                                  graph.add_const("", host_tensor(dtype, Dims{outputs, features}, weights.data()))};
  if (has_bias) layer.push_back(graph.add_const("", host_tensor(dtype, Dims{outputs}, bias.data())));
  const TnValueId packed =
      graph.add_node("tenon.fully_connected/1", "", std::move(graph.attrs().i64("axis", -1)), layer);
  const TnNodeId attention = match.node(0);
  const TnValueId y = graph.add_node("tenon.attention/1", "", graph.attrs(graph.node_attrs(attention)),
                                     {packed, TN_NO_ID, TN_NO_ID, match.value("mask"), match.value("lengths")});
  graph.replace(graph.output(attention), y);
}

std::string product_pattern(const std::string& name) {
  return "tenon.fully_connected/1|tenon.matmul/1($x,$w" + name + ":const,$b" + name + ":const?)";
}

}  // namespace

Definitions attention_layout_rules() {
  Definitions all;
  all.add(fusion("tenon.split_heads/1")
              .doc("attention reads heads from rows that hold those of all heads, without a transpose")
              .always()
              .pattern("tenon.attention/1($q,$k?,$v?,$mask?,$lengths?)")
              .check(check_split)
              .rewrite(split_heads));
  all.add(fusion("tenon.merge_heads/1")
              .doc("attention writes rows that hold those of all heads, without a transpose")
              .always()
              .pattern("tenon.transpose/1(tenon.attention/1($q,$k?,$v?,$mask?,$lengths?))")
              .check(check_merge)
              .rewrite(merge_heads));
  all.add(fusion("tenon.merge_qkv/1")
              .doc("the three products that make the inputs of an attention of one value, as one")
              .always()
              .pattern("tenon.attention/1(" + product_pattern("q") + "," + product_pattern("k") + "," +
                       product_pattern("v") + ",$mask?,$lengths?)")
              .check(check_merge_products)
              .rewrite(merge_products));
  return all;
}

}  // namespace tenon::plugins
