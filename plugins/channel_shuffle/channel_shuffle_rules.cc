// Shuffles as networks spell them, and those that a convolution can do by itself.
#include "plugins/channel_shuffle/channel_shuffle.h"
#include "plugins/common/permutation.h"
#include "plugins/common/reshape_form.h"

namespace tenon::plugins {
namespace {

// The groups of reshape(transpose(reshape(x))). Declined unless the first reshape splits channels in two, the transpose
// swaps the parts, and the last reshape gives x's dims again.
int64_t groups_of(const GraphView& graph, const Match& match) {
  const Dims x = graph.value_dims(match.value("x"));
  const Dims split = graph.value_dims(graph.output(match.node(2)));
  if (x.rank < 2 || graph.value_dims(graph.output(match.node(0))) != x) throw Declined("the dims change");
  const std::vector<NewDim> first = reshape_form(graph, match.node(2)), last = reshape_form(graph, match.node(0));
  if (!keeps_batch(first) || !keeps_batch(last)) throw Declined("another batch would give other dims");
  // Two neighbours are swapped and all behind them stay: [batch,] groups, channels of a group [, pixels].
  const std::vector<int> perm = permutation(graph.node_attrs(match.node(1)), split.rank);
  int at = 0;
  while (at < split.rank && perm[static_cast<size_t>(at)] == at) ++at;
  if (at + 1 >= split.rank) throw Declined("nothing is swapped");
  const auto swapped = [&](int axis) { return axis == at ? at + 1 : axis == at + 1 ? at : axis; };
  for (int axis = at; axis < split.rank; ++axis) {
    if (perm[static_cast<size_t>(axis)] != swapped(axis)) throw Declined("more than two neighbours are swapped");
  }
  const auto is_number = [&](int axis) { return first[static_cast<size_t>(axis)].kind == NewDim::Kind::kNumber; };
  if (!is_number(at) || !is_number(at + 1)) throw Declined("the groups depend on sizes");
  if (split.product(0, at) != x[0] || split[at] * split[at + 1] != x[1] || x[1] == 0) {
    throw Declined("other axes than the channels are split");
  }
  return split[at];
}

// The rows of a convolution's weights, or the numbers of its bias, in the order of the shuffled channels.
TnValueId shuffled(GraphView& graph, TnValueId constant, int64_t groups) {
  if (constant == TN_NO_ID) return TN_NO_ID;
  const TnTensor from = *graph.value_const(constant);
  const Dims dims = from.dims;
  const auto row = static_cast<size_t>(dims.product(1, dims.rank) * dtype_size(from.dtype));
  std::vector<char> rows(row * static_cast<size_t>(dims[0]));
  for (int64_t k = 0; k < dims[0]; ++k) {
    const char* source =
        static_cast<const char*>(from.data) + static_cast<size_t>(shuffled_from(k, dims[0], groups)) * row;
    std::copy(source, source + row, rows.data() + static_cast<size_t>(k) * row);
  }
  return graph.add_const("", host_tensor(from.dtype, dims, rows.data()));
}

void check_dense(const GraphView& graph, TnNodeId conv) {
  if (graph.node_attrs(conv).i64("groups") != 1) throw Declined("the convolution has groups");
}

TnValueId shuffled_conv(GraphView& graph, const Match& match, TnNodeId conv) {
  const int64_t groups = graph.node_attrs(match.node(0)).i64("groups");
  return graph.add_node(
      "tenon.conv2d/1", "", graph.attrs(graph.node_attrs(conv)),
      {match.value("x"), shuffled(graph, match.value("w"), groups), shuffled(graph, match.value("b"), groups)});
}

}  // namespace

Definitions channel_shuffle_rules() {
  const std::string conv = "tenon.conv2d/1($x,$w:const,$b:const?)";
  Definitions all;
  all.add(fusion("tenon.find_channel_shuffle/1")
              .doc("channels split in groups, transposed and joined again: a shuffle of channels")
              .always()
              .pattern("tenon.reshape/1(tenon.transpose/1(tenon.reshape/1($x,$split:const?)),$joined:const?)")
              .check([](const GraphView& graph, const Match& match) { groups_of(graph, match); })
              .rewrite([](GraphView& graph, const Match& match) {
                const int64_t groups = groups_of(graph, match);
                graph.replace(graph.output(match.node(0)),
                              graph.add_node("tenon.channel_shuffle/1", "", graph.attrs().i64("groups", groups),
                                             {match.value("x")}));
              }));
  all.add(fusion("tenon.fold_channel_shuffle/1")
              .doc("a shuffle of a convolution's channels into the order of its filters")
              .always()
              .pattern("tenon.channel_shuffle/1(" + conv + ")")
              .check([](const GraphView& graph, const Match& match) { check_dense(graph, match.node(1)); })
              .rewrite([](GraphView& graph, const Match& match) {
                graph.replace(graph.output(match.node(0)), shuffled_conv(graph, match, match.node(1)));
              }));
  all.add(fusion("tenon.fold_activated_channel_shuffle/1")
              .doc("a shuffle of a convolution's activated channels into the order of its filters")
              .always()
              .pattern("tenon.channel_shuffle/1(tenon.relu/1|tenon.relu6/1|tenon.leaky_relu/1|tenon.swish/1|"
                       "tenon.hard_swish/1(" +
                       conv + "))")
              .check([](const GraphView& graph, const Match& match) { check_dense(graph, match.node(2)); })
              .rewrite([](GraphView& graph, const Match& match) {
                const TnNodeId activation = match.node(1);
                const TnValueId y = shuffled_conv(graph, match, match.node(2));
                graph.replace(
                    graph.output(match.node(0)),
                    graph.add_node(graph.node_op(activation), "", graph.attrs(graph.node_attrs(activation)), {y}));
              }));
  return all;
}

}  // namespace tenon::plugins
