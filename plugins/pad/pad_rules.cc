// Pads of an image become those of the window that slides over it: what a convolution or a pooling takes for the cells
// outside is what the pad would have written there.
#include <cmath>
#include <limits>
#include <tenon/sdk/fusion.hpp>

#include "plugins/pad/pad.h"

namespace tenon::plugins {
namespace {

// Pads of height and width, [top, left, bottom, right], that a pad node (node 1) with this value adds. Declined if it
// does anything else.
std::vector<int64_t> image_pads(const GraphView& graph, const Match& match, double value) {
  const TnNodeId pad = match.node(1);
  if (graph.node_attrs(pad).str("mode") != "constant") throw Declined("the pad repeats contents");
  const TnTensor x = graph.value_desc(match.value("x"));
  if (x.dims.rank != 4 || x.dtype != TN_F32) throw Declined("no image of f32");
  const TnValueId filling = match.value("value");
  const double found = filling == TN_NO_ID ? 0.0 : double{*static_cast<const float*>(graph.value_const(filling)->data)};
  if (!(found == value)) throw Declined(text("the pad's value is ", found));
  const bool some_axes = match.value("axes") != TN_NO_ID;
  const TnTensor pads = *graph.value_const(match.value("pads"));
  const TnTensor axes = some_axes ? *graph.value_const(match.value("axes")) : pads;
  const Tensor list(axes);
  const std::vector<PadAxis> all = pads_from(Tensor(pads), some_axes ? &list : nullptr, 4);
  for (const PadAxis& axis : all) {
    if (axis.begin < 0 || axis.end < 0 || axis.begin > INT32_MAX || axis.end > INT32_MAX) {
      throw Declined("a pad cuts or is huge");
    }
  }
  if (all[0].begin + all[0].end + all[1].begin + all[1].end != 0) throw Declined("pictures or channels are added");
  return {all[2].begin, all[3].begin, all[2].end, all[3].end};
}

// The window's own pads.
List<int64_t> own_pads(const GraphView& graph, const Match& match) {
  return graph.node_attrs(match.node(0)).i64s("pads", 4, -INT32_MAX);
}

// A last window that begins behind the image counts where rounding is up, and the pad is no part of the image then.
void check_rounding(const GraphView& graph, const Match& match) {
  if (graph.node_attrs(match.node(0)).str("rounding") != "floor") throw Declined("the output's size is rounded up");
}

void check_average(const GraphView& graph, const Match& match) {
  image_pads(graph, match, 0);
  check_rounding(graph, match);
  if (graph.node_attrs(match.node(0)).flag("count_include_pad")) return;
  for (const int64_t pad : own_pads(graph, match)) {
    if (pad != 0) throw Declined("the pads would count, and the pooling's own do not");
  }
}

std::string padded() { return "tenon.pad/1($x,$pads:const,$value:const?,$axes:const?)"; }

// Node 0 over x, with the pads of both.
void rewrite(GraphView& graph, const Match& match, double value, bool count_pads,
             const std::vector<TnValueId>& more_inputs) {
  std::vector<int64_t> pads = image_pads(graph, match, value);
  for (int n = 0; n < 4; ++n) pads[static_cast<size_t>(n)] += own_pads(graph, match)[n];
  NewAttrs attrs = graph.attrs(graph.node_attrs(match.node(0)));
  attrs.i64s("pads", pads);
  if (count_pads) attrs.i64("count_include_pad", 1);
  std::vector<TnValueId> inputs = {match.value("x")};
  inputs.insert(inputs.end(), more_inputs.begin(), more_inputs.end());
  graph.replace(graph.output(match.node(0)), graph.add_node(graph.node_op(match.node(0)), "", attrs, inputs));
}

}  // namespace

Definitions pad_rules() {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  Definitions all;
  all.add(fusion("tenon.fold_pad_into_conv2d/1")
              .doc("zeros around an image into the pads of the convolution that reads it")
              .always()
              .pattern("tenon.conv2d/1(" + padded() + ",$weights,$bias?)")
              .check([](const GraphView& graph, const Match& match) { image_pads(graph, match, 0); })
              .rewrite([](GraphView& graph, const Match& match) {
                rewrite(graph, match, 0, false, {match.value("weights"), match.value("bias")});
              }));
  all.add(fusion("tenon.fold_pad_into_max_pool/1")
              .doc("-infinity around an image into the pads of the pooling that reads it")
              .always()
              .pattern("tenon.max_pool/1(" + padded() + ")")
              .check([](const GraphView& graph, const Match& match) {
                image_pads(graph, match, kLowest);
                check_rounding(graph, match);
              })
              .rewrite([](GraphView& graph, const Match& match) { rewrite(graph, match, kLowest, false, {}); }));
  all.add(fusion("tenon.fold_pad_into_avg_pool/1")
              .doc("zeros around an image into the pads of the pooling that reads it, which then count")
              .always()
              .pattern("tenon.avg_pool/1(" + padded() + ")")
              .check(check_average)
              .rewrite([](GraphView& graph, const Match& match) { rewrite(graph, match, 0, true, {}); }));
  return all;
}

}  // namespace tenon::plugins
