// Layer normalisation and normalisation by the root mean square that models spell out, and the factors behind them.
#include <cmath>
#include <string>
#include <tenon/sdk/fusion.hpp>
#include <utility>
#include <vector>

#include "plugins/common/constants.h"
#include "plugins/common/reduction.h"
#include "plugins/layer_norm/layer_norm.h"

namespace tenon::plugins {
namespace {

const std::string kMean = "tenon.reduce_mean/1($x,$axes:const?)*";
const std::string kCentred = "tenon.sub/1($x," + kMean + ")*";

// sqrt(mean(square of `value`) + epsilon).
std::string deviation(const std::string& value) {
  return "tenon.sqrt/1(tenon.add/1(tenon.reduce_mean/1(tenon.pow/1|tenon.mul/1(" + value +
         ",$square),$square_axes:const?),$epsilon:const))";
}
const std::string kInverse = "tenon.mul/1(tenon.reciprocal/1(" + deviation(kCentred) + "),$scale:const)*";

struct Form {
  const char* id;
  const char* doc;
  std::string pattern;
  const char* op;
  uint32_t square;                                  // number of the node that squares
  uint32_t mean;                                    // of the node that gives the mean of x; 0: the square is that of x
  std::vector<std::pair<uint32_t, uint32_t>> same;  // numbers that name one node
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"tenon.fuse_layer_norm/1",
       "(x - mean) / sqrt(mean((x - mean)^2) + epsilon) is layer_norm",
       "tenon.div/1(" + kCentred + "," + deviation(kCentred) + ")",
       "tenon.layer_norm/1",
       6,
       2,
       {{2, 8}}},
      {"tenon.fuse_layer_norm_inverse/1",
       "x * r + (bias - mean * r), r = scale / sqrt(mean((x - mean)^2) + epsilon), is layer_norm",
       "tenon.add/1(tenon.mul/1($x," + kInverse + "),tenon.sub/1($bias:const,tenon.mul/1(" + kMean + "," + kInverse +
           ")))",
       "tenon.layer_norm/1",
       7,
       9,
       {{2, 13}, {9, 12}}},
      {"tenon.fuse_rms_norm/1",
       "x / sqrt(mean(x^2) + epsilon) is rms_norm",
       "tenon.div/1($x," + deviation("$x") + ")",
       "tenon.rms_norm/1",
       4,
       0,
       {}},
      {"tenon.fuse_rms_norm_inverse/1",
       "x * (1 / sqrt(mean(x^2) + epsilon)) is rms_norm",
       "tenon.mul/1($x,tenon.div/1($one:const," + deviation("$x") + "))",
       "tenon.rms_norm/1",
       5,
       0,
       {}},
      {"tenon.fuse_rms_norm_reciprocal/1",
       "x * reciprocal(sqrt(mean(x^2) + epsilon)) is rms_norm",
       "tenon.mul/1($x,tenon.reciprocal/1(" + deviation("$x") + "))",
       "tenon.rms_norm/1",
       5,
       0,
       {}},
  };
  return all;
}

bool is_number(const GraphView& graph, TnValueId value, double expected) {
  return value == TN_NO_ID || scalar_constant(graph, value) == expected;
}

// A constant as one number for each element of the normalised axes, `axis` and those behind it: its dims. Declined if
// it is anything else.
Dims factor_dims(const GraphView& graph, TnValueId value, const Dims& x, int axis) {
  const Dims dims = graph.value_dims(value);
  Dims wanted;
  for (int n = axis; n < x.rank; ++n) wanted.push_back(x[n]);
  if (dims.rank > x.rank || dims.elements() != wanted.elements()) throw Declined("the factor is not one of a row");
  for (int back = 1; back <= dims.rank; ++back) {
    if (dims[dims.rank - back] != (back <= wanted.rank ? wanted[wanted.rank - back] : 1)) {
      throw Declined("the factor is not one of a row");
    }
  }
  return wanted;
}

TnValueId factor(GraphView& graph, TnValueId value, const Dims& x, int axis) {
  const Dims dims = factor_dims(graph, value, x, axis);
  if (graph.value_dims(value) == dims) return value;
  const TnTensor given = *graph.value_const(value);
  return graph.add_const("", host_tensor(given.dtype, dims, given.data));
}

// The first axis of those that a node reduces, which have to be the innermost ones. Declined otherwise.
int first_axis(const GraphView& graph, TnNodeId node) {
  const Dims x = graph.value_dims(graph.input(node, 0));
  const Attrs attrs = graph.node_attrs(node);
  if (!attrs.flag("keepdims")) throw Declined("a mean drops its axes");
  const Reduction reduction = reduction_of(graph, node);
  int axis = x.rank;
  while (axis > 0 && reduction.reduced[axis - 1]) --axis;
  for (int n = 0; n < axis; ++n) {
    if (reduction.reduced[n]) throw Declined("the axes of a mean are not the innermost ones");
  }
  if (axis == x.rank) throw Declined("a mean of no axes");
  return axis;
}

// The first normalised axis. Declined unless it is a normalisation.
int check(const Form& form, const GraphView& graph, const Match& match) {
  const Dims x = graph.value_dims(match.value("x"));
  if (!is_float_or_half(graph.value_desc(match.value("x")).dtype)) throw Declined("expected f32 or f16");
  const TnNodeId square = match.node(form.square), squares = match.node(form.square - 1);
  const TnValueId second = match.value("square");
  if (graph.node_op(square) == "tenon.pow/1" ? scalar_constant(graph, second) != 2.0
                                             : graph.input(square, 0) != graph.input(square, 1)) {
    throw Declined("it is no square");
  }
  for (const auto& [a, b] : form.same) {
    if (match.node(a) != match.node(b)) throw Declined("two nodes compute what has to be one value");
  }
  const int axis = first_axis(graph, squares);
  if (form.mean != 0 && first_axis(graph, match.node(form.mean)) != axis) {
    throw Declined("mean and variance have other axes");
  }
  if (!scalar_constant(graph, match.value("epsilon"))) throw Declined("epsilon is not one number");
  if (!is_number(graph, match.value("one"), 1)) throw Declined("the root divides another number than 1");
  if (graph.value_dims(graph.output(match.node(0))) != x) throw Declined("the result has other dims");
  for (const char* name : {"scale", "bias"}) {
    if (match.value(name) != TN_NO_ID) factor_dims(graph, match.value(name), x, axis);
  }
  return axis;
}

void rewrite(const Form& form, GraphView& graph, const Match& match) {
  const int axis = check(form, graph, match);
  const Dims x = graph.value_dims(match.value("x"));
  std::vector<TnValueId> inputs = {match.value("x")};
  for (const char* name : {"scale", "bias"}) {
    if (match.value(name) != TN_NO_ID) inputs.push_back(factor(graph, match.value(name), x, axis));
  }
  NewAttrs attrs = graph.attrs();
  attrs.i64("axis", axis - x.rank).f64("epsilon", *scalar_constant(graph, match.value("epsilon")));
  graph.replace(graph.output(match.node(0)), graph.add_node(form.op, "", attrs, inputs));
}

// norm(x) * constant and norm(x) + constant.
Fusion fold_factor(const char* id, const char* doc, const char* pattern, int input) {
  const auto axis_of = [](const GraphView& graph, const Match& match) {
    const Dims x = graph.value_dims(match.value("x"));
    if (graph.value_dims(graph.output(match.node(0))) != x) throw Declined("the result has other dims");
    const int axis = normalize_axis(graph.node_attrs(match.node(1)).i64("axis"), x.rank);
    factor_dims(graph, match.value("c"), x, axis);
    return axis;
  };
  return fusion(id)
      .doc(doc)
      .always()
      .pattern(pattern)
      .check([axis_of](const GraphView& graph, const Match& match) { axis_of(graph, match); })
      .rewrite([axis_of, input](GraphView& graph, const Match& match) {
        const TnNodeId norm = match.node(1);
        const TnValueId c = factor(graph, match.value("c"), graph.value_dims(match.value("x")), axis_of(graph, match));
        std::vector<TnValueId> inputs = {match.value("x"), c};
        if (input == 2) inputs = {match.value("x"), match.value("scale"), c};
        graph.replace(graph.output(match.node(0)),
                      graph.add_node(graph.node_op(norm), "", graph.attrs(graph.node_attrs(norm)), inputs));
      });
}

}  // namespace

Definitions layer_norm_rules() {
  Definitions all;
  for (const Form& entry : forms()) {
    const Form* form = &entry;
    all.add(fusion(form->id)
                .doc(form->doc)
                .always()
                .pattern(form->pattern)
                .check([form](const GraphView& graph, const Match& match) { check(*form, graph, match); })
                .rewrite([form](GraphView& graph, const Match& match) { rewrite(*form, graph, match); }));
  }
  all.add(fold_factor("tenon.fold_norm_scale/1", "a factor for each element of a row, behind a normalisation",
                      "tenon.mul/1(tenon.layer_norm/1|tenon.rms_norm/1($x),$c:const)", 1));
  all.add(fold_factor("tenon.fold_norm_bias/1", "a number for each element of a row, added to a layer normalisation",
                      "tenon.add/1(tenon.layer_norm/1($x,$scale:const?),$c:const)", 2));
  return all;
}

}  // namespace tenon::plugins
