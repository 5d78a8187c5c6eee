// Attention that models spell out: softmax(scale * q k' + mask) v as one tenon.attention.
#include <cmath>
#include <string>
#include <tenon/sdk/fusion.hpp>
#include <utility>
#include <vector>

#include "plugins/attention/attention.h"
#include "plugins/common/constants.h"
#include "plugins/common/permutation.h"

namespace tenon::plugins {
namespace {

constexpr int64_t kMostSize = 256;  // of a head, for kernels of all devices

struct Form {
  const char* id;
  const char* doc;
  bool scaled, masked;

  std::string pattern() const {
    std::string scores = "tenon.matmul/1($q,$k)";
    if (scaled) scores = "tenon.mul/1|tenon.div/1(" + scores + ",$scale:const)";
    if (masked) scores = "tenon.add/1(" + scores + ",$mask)";
    return "tenon.matmul/1(tenon.softmax/1(" + scores + "),$v)";
  }
};

constexpr Form kForms[] = {
    {"tenon.fuse_attention/1", "softmax(q k') v is attention", false, false},
    {"tenon.fuse_attention_masked/1", "softmax(q k' + mask) v is attention", false, true},
    {"tenon.fuse_attention_scaled/1", "softmax(scale * q k') v is attention", true, false},
    {"tenon.fuse_attention_scaled_masked/1", "softmax(scale * q k' + mask) v is attention", true, true},
};

// A value seen with its axes in another order; no axes: as it is.
struct Permuted {
  TnValueId value;
  std::vector<int64_t> perm;
};

struct Found {
  double scale = 1;
  TnValueId q = TN_NO_ID, mask = TN_NO_ID;
  Permuted k;
};

// Changes `scale` by what a node multiplies with.
void multiply(const GraphView& graph, TnNodeId node, double number, double* scale) {
  *scale = graph.node_op(node) == "tenon.div/1" ? *scale / number : *scale * number;
}

// Skips multiplications with one number before a value, and keeps their product.
TnValueId unscaled(const GraphView& graph, TnValueId value, double* scale) {
  const TnNodeId node = graph.producer(value);
  const std::string op = node == TN_NO_ID ? "" : graph.node_op(node);
  if (op != "tenon.mul/1" && op != "tenon.div/1") return value;
  for (int side = 1; side >= (op == "tenon.mul/1" ? 0 : 1); --side) {
    const std::optional<double> number = scalar_constant(graph, graph.input(node, side));
    const TnValueId other = graph.input(node, 1 - side);
    if (!number || graph.value_dims(other) != graph.value_dims(value)) continue;
    multiply(graph, node, *number, scale);
    return unscaled(graph, other, scale);
  }
  return value;
}

// The keys as [..., keys, size].
Permuted keys_of(const GraphView& graph, TnValueId k, bool transposed, double* scale) {
  k = unscaled(graph, k, scale);
  if (transposed) return {k, {}};
  const TnNodeId node = graph.producer(k);
  if (node == TN_NO_ID || graph.node_op(node) != "tenon.transpose/1") throw Declined("k is not transposed");
  Permuted result{unscaled(graph, graph.input(node, 0), scale), {}};
  bool changes = false;
  const int rank = graph.value_dims(k).rank;
  for (const int axis : permutation(graph.node_attrs(node), rank)) result.perm.push_back(axis);
  std::swap(result.perm[static_cast<size_t>(rank) - 1], result.perm[static_cast<size_t>(rank) - 2]);
  for (int axis = 0; axis < rank; ++axis) changes |= result.perm[static_cast<size_t>(axis)] != axis;
  if (!changes) result.perm.clear();
  return result;
}

Found find(const Form& form, const GraphView& graph, const Match& match) {
  const TnNodeId root = match.node(0), softmax = match.node(1);
  const TnNodeId product = match.node(2 + (form.masked ? 1 : 0) + (form.scaled ? 1 : 0));
  const Attrs attrs = graph.node_attrs(product), of_root = graph.node_attrs(root);
  if (attrs.flag("transpose_a") || of_root.flag("transpose_a") || of_root.flag("transpose_b")) {
    throw Declined("a product reads a matrix transposed");
  }
  const Dims scores = graph.value_dims(graph.output(product)), v = graph.value_dims(match.value("v"));
  const Dims q = graph.value_dims(match.value("q")), k = graph.value_dims(match.value("k"));
  const int rank = scores.rank;
  if (rank > 4 || q.rank != rank || k.rank != rank || v.rank != rank) throw Declined("expected equal ranks of up to 4");
  for (int axis = 0; axis < rank - 2; ++axis) {
    if (q[axis] != k[axis] || q[axis] != v[axis]) throw Declined("q, k and v have other batch dims");
  }
  if (!is_float_or_half(graph.value_desc(match.value("q")).dtype)) throw Declined("expected f32 or f16");
  if (q[rank - 1] > kMostSize || v[rank - 1] > kMostSize) throw Declined("the heads are too large");
  if (graph.value_dims(graph.output(softmax)) != scores) throw Declined("the scores get more dims");
  if (normalize_axis(graph.node_attrs(softmax).i64("axis"), rank) != rank - 1) {
    throw Declined("the softmax is not along the keys");
  }
  Found found;
  if (form.scaled) {
    const std::optional<double> number = scalar_constant(graph, match.value("scale"));
    if (!number) throw Declined("the scores are multiplied with more than one number");
    multiply(graph, match.node(form.masked ? 3 : 2), *number, &found.scale);
  }
  if (form.masked) {
    found.mask = match.value("mask");
    // Keys behind the last axis of a mask are hidden; none of size 1 may stand for all.
    const Dims mask = graph.value_dims(found.mask);
    if (mask.rank < 1 || mask[mask.rank - 1] != scores[rank - 1]) throw Declined("the mask is not one of keys");
  }
  found.q = unscaled(graph, match.value("q"), &found.scale);
  found.k = keys_of(graph, match.value("k"), attrs.flag("transpose_b"), &found.scale);
  if (!std::isfinite(found.scale)) throw Declined("the scale is not finite");
  return found;
}

// In rank 4, by axes of size 1 in front, or back in rank `rank`.
TnValueId with_rank(GraphView& graph, TnValueId value, int rank) {
  const int from = graph.value_dims(value).rank;
  if (from == rank) return value;
  std::vector<int64_t> shape, copies;
  for (int axis = 0; axis < rank; ++axis) {
    const int copied = axis + from - rank;
    shape.push_back(copied < 0 ? 1 : 0);
    copies.push_back(copied < 0 ? -1 : copied);
  }
  return graph.add_node("tenon.reshape/1", "", std::move(graph.attrs().i64s("shape", shape).i64s("copies", copies)),
                        {value});
}

void rewrite(const Form& form, GraphView& graph, const Match& match) {
  const Found found = find(form, graph, match);
  const TnValueId result = graph.output(match.node(0));
  const int rank = graph.value_dims(result).rank;
  TnValueId k = found.k.value;
  if (!found.k.perm.empty()) {
    k = graph.add_node("tenon.transpose/1", "", std::move(graph.attrs().i64s("perm", found.k.perm)), {k});
  }
  std::vector<TnValueId> inputs = {with_rank(graph, found.q, 4), with_rank(graph, k, 4),
                                   with_rank(graph, match.value("v"), 4)};
  if (found.mask != TN_NO_ID) inputs.push_back(found.mask);
  const TnValueId y =
      graph.add_node("tenon.attention/1", "", std::move(graph.attrs().f64("scale", found.scale)), inputs);
  graph.replace(result, with_rank(graph, y, rank));
}

}  // namespace

Definitions attention_rules() {
  Definitions all;
  for (const Form& entry : kForms) {
    const Form* form = &entry;
    all.add(fusion(form->id)
                .doc(form->doc)
                .candidate()
                .pattern(form->pattern())
                .check([form](const GraphView& graph, const Match& match) { find(*form, graph, match); })
                .rewrite([form](GraphView& graph, const Match& match) { rewrite(*form, graph, match); }));
  }
  return all;
}

}  // namespace tenon::plugins
