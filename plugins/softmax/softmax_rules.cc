// Softmax that models spell out.
#include <tenon/sdk/fusion.hpp>

#include "plugins/common/constants.h"
#include "plugins/common/reduction.h"
#include "plugins/softmax/softmax.h"

namespace tenon::plugins {
namespace {

// The only axis that a node reduces, and keeps with size 1. Declined if it is another reduction.
int only_axis(const GraphView& graph, TnNodeId node) {
  const Dims x = graph.value_dims(graph.input(node, 0));
  if (!graph.node_attrs(node).flag("keepdims")) throw Declined("the sum or maximum drops its axis");
  const Reduction reduction = reduction_of(graph, node);
  int found = -1, count = 0;
  for (int axis = 0; axis < x.rank; ++axis) {
    if (reduction.reduced[axis]) found = axis, ++count;
  }
  if (count != 1) throw Declined("the sum or maximum is not along one axis");
  return found;
}

int sum_axis(const GraphView& graph, const Match& match) {
  if (!is_float_or_half(graph.value_desc(match.value("x")).dtype)) throw Declined("expected f32 or f16");
  return only_axis(graph, match.node(2));
}

void check_shift(const GraphView& graph, const Match& match) {
  const int rank = graph.value_dims(match.value("x")).rank;
  if (normalize_axis(graph.node_attrs(match.node(0)).i64("axis"), rank) != only_axis(graph, match.node(2))) {
    throw Declined("the maximum is along another axis than the softmax");
  }
}

}  // namespace

Definitions softmax_rules() {
  Definitions all;
  all.add(fusion("tenon.fuse_softmax/1")
              .doc("exp(x) / sum(exp(x)) is softmax")
              .always()
              .pattern("tenon.div/1(tenon.exp/1($x)*,tenon.reduce_sum/1(tenon.exp/1($x)*,$axes:const?))")
              .check([](const GraphView& graph, const Match& match) { sum_axis(graph, match); })
              .rewrite([](GraphView& graph, const Match& match) {
                NewAttrs attrs = graph.attrs();
                attrs.i64("axis", sum_axis(graph, match));
                graph.replace(graph.output(match.node(0)),
                              graph.add_node("tenon.softmax/1", "", attrs, {match.value("x")}));
              }));
  all.add(fusion("tenon.drop_softmax_shift/1")
              .doc("softmax(x - max(x)) is softmax(x)")
              .always()
              .pattern("tenon.softmax/1(tenon.sub/1($x,tenon.reduce_max/1($x,$axes:const?)))")
              .check(check_shift)
              .rewrite([](GraphView& graph, const Match& match) {
                const TnNodeId softmax = match.node(0);
                graph.replace(
                    graph.output(softmax),
                    graph.add_node("tenon.softmax/1", "", graph.attrs(graph.node_attrs(softmax)), {match.value("x")}));
              }));
  return all;
}

}  // namespace tenon::plugins
