// Rules of quantized networks, which hold a quantize and a dequantize around every op. All are exact.
// - A dequantize and the quantize behind it go where they have the same numbers.
// - A quantize and the dequantize behind it round, so they stay, as one expression, unless what they read was rounded
// so
//   already. This way round comes first: an expression joins what is around it, integers do not.
// - What is left of quantizes moves in front of what only moves values, of which there are fewer bytes then.
#include <cfloat>
#include <charconv>
#include <tenon/sdk/fusion.hpp>

#include "plugins/common/reshape_form.h"
#include "plugins/quantize/quantize.h"

namespace tenon::plugins {
namespace {

// How a quantize or dequantize node maps numbers, where rules can tell: integers of whole bytes, f32, constant scales.
struct Scheme {
  int32_t dtype = TN_DTYPE_NONE;
  int64_t axis = 0, block = 0;  // the axis is 0 where one scale is for all
  Dims dims;                    // of the scales; none where one is for all
  std::vector<float> scales;
  std::vector<int64_t> zeros;

  bool one_for_all() const { return scales.size() == 1 && block == 0; }
  bool operator==(const Scheme& other) const {
    return dtype == other.dtype && axis == other.axis && block == other.block && dims == other.dims &&
           scales == other.scales && zeros == other.zeros;
  }
};

// Declined if rules cannot tell, or if a scale is not positive or so large that an integer times it is infinite.
Scheme scheme_of(const GraphView& graph, TnNodeId node) {
  const bool back = graph.node_op(node) == "tenon.dequantize/1";
  const Attrs attrs = graph.node_attrs(node);
  const TnTensor x = graph.value_desc(graph.input(node, kQuantizeX));
  const std::optional<TnTensor> scale = graph.value_const(graph.input(node, kQuantizeScale));
  Scheme scheme;
  scheme.dtype = back ? x.dtype : attrs.dtype("to");
  if (!quantized_range(scheme.dtype).is_integer() || dtype_size(scheme.dtype) == 0) {
    throw Declined(text("the dtype is ", dtype_name(scheme.dtype)));
  }
  if (attrs.dtype(back ? "to" : "precision") != TN_F32 || (!back && x.dtype != TN_F32)) {
    throw Declined("the numbers are not f32");
  }
  if (!scale || scale->dtype != TN_F32) throw Declined("the scale is no constant of f32");
  const Dims scale_dims = scale->dims;
  scheme.block = attrs.i64("block_size");
  scheme.scales.assign(static_cast<const float*>(scale->data),
                       static_cast<const float*>(scale->data) + scale_dims.elements());
  if (!scheme.one_for_all()) {
    scheme.axis = normalize_axis(attrs.i64("axis"), x.dims.rank);
    scheme.dims = scale_dims;
  }
  for (const float value : scheme.scales) {
    // The difference of two integers of 16 bits has 17.
    if (!(value >= FLT_MIN && value <= FLT_MAX / 131072)) throw Declined(text("a scale is ", value));
  }
  scheme.zeros.assign(scheme.scales.size(), 0);
  const TnValueId zero = graph.input(node, kQuantizeZeroPoint);
  if (zero == TN_NO_ID) return scheme;
  const std::optional<TnTensor> zeros = graph.value_const(zero);
  if (!zeros) throw Declined("the zero point is not constant");
  for (size_t n = 0; n < scheme.zeros.size(); ++n) scheme.zeros[n] = Tensor(*zeros).integer(static_cast<int64_t>(n));
  return scheme;
}

// x * s / s for an integer x of at most 17 bits is off by at most x * 2^-23, far less than a half, so rounding gives x
// again; what it stands for is in the range, since it came from there.
bool undoes(const GraphView& graph, TnNodeId quantize, TnNodeId dequantize) {
  return scheme_of(graph, quantize) == scheme_of(graph, dequantize);
}

// Ops that give elements of input 0 and nothing else, whatever the elements are.
const char* const kMoving[] = {"tenon.reshape/1", "tenon.transpose/1", "tenon.slice/1", "tenon.channel_shuffle/1"};
bool only_moves(const std::string& op) {
  return std::find(std::begin(kMoving), std::end(kMoving), op) != std::end(kMoving);
}

// Whether a quantize node that moved up to `value` would go: `value` is constant, or a dequantize undone by it, or
// moved from one.
bool meets_its_dequantize(const GraphView& graph, TnNodeId quantize, TnValueId value) {
  while (true) {
    if (graph.value_const(value)) return true;
    const TnNodeId node = graph.producer(value);
    if (node == TN_NO_ID) return false;
    const std::string op = graph.node_op(node);
    if (op == "tenon.dequantize/1") return undoes(graph, quantize, node);
    if (!only_moves(op)) return false;
    value = graph.input(node, 0);
  }
}

// Whether each window holds a cell of the image: one that holds none gives -infinity.
bool has_no_empty_window(const Attrs& pool) {
  const List<int64_t> kernel = pool.i64s("kernel"), pads = pool.i64s("pads"), dilations = pool.i64s("dilations");
  for (int n = 0; n < 2; ++n) {
    if (dilations[n] != 1 || pads[n] >= kernel[n] || pads[n + 2] >= kernel[n]) return false;
  }
  return true;
}

// Whether every element of `value` is one that the quantize node and its dequantize give, so that they would give it
// again: it comes from a dequantize with the same numbers through ops that choose some elements, or 0. False too where
// this takes more than *budget nodes to see.
bool is_rounded(const GraphView& graph, TnNodeId quantize, TnValueId value, int* budget) {
  const TnNodeId node = graph.producer(value);
  if (node == TN_NO_ID || --*budget < 0) return false;
  const std::string op = graph.node_op(node);
  if (op == "tenon.dequantize/1") return undoes(graph, quantize, node);
  if (op == "tenon.concat/1") {
    for (int n = 0; n < graph.num_inputs(node); ++n) {
      if (!is_rounded(graph, quantize, graph.input(node, n), budget)) return false;
    }
    return true;
  }
  const bool chooses = only_moves(op) || op == "tenon.relu/1" ||
                       (op == "tenon.max_pool/1" && has_no_empty_window(graph.node_attrs(node)));
  return chooses && is_rounded(graph, quantize, graph.input(node, 0), budget);
}

void check_pair(const GraphView& graph, const Match& match) {
  if (!undoes(graph, match.node(1), match.node(0))) throw Declined("the numbers differ");
  if (!scheme_of(graph, match.node(0)).one_for_all()) throw Declined("there are several scales");
}

// y = (saturate(round(x / scale) + zero) - zero) * scale. NaN becomes the smallest number, -0 becomes 0.
void fuse_pair(GraphView& graph, const Match& match) {
  const Scheme scheme = scheme_of(graph, match.node(0));
  const IntegerRange range = quantized_range(scheme.dtype);
  const int low = range.low - static_cast<int>(scheme.zeros[0]), high = range.high - static_cast<int>(scheme.zeros[0]);
  char digits[32];  // of a double, which gives the same f32 back
  const std::to_chars_result end = std::to_chars(digits, std::end(digits), static_cast<double>(scheme.scales[0]));
  const std::string scale(digits, end.ptr), least = std::to_string(low), most = std::to_string(high);
  const std::string at_least = "select(less(" + least + ",t1),t1," + least + ")";
  const std::string expression =
      "t1=add(round_even(div(x0," + scale + ")),0);mul(min(" + at_least + "," + most + ")," + scale + ")";
  graph.replace(
      graph.output(match.node(0)),
      graph.add_node("tenon.pointwise/1", "", graph.attrs().str("expression", expression), {match.value("x")}));
}

// Moving up must not mean that more is rounded.
void check_rise(const GraphView& graph, const Match& match) {
  const TnNodeId quantize = match.node(0);
  const TnValueId x = match.value("x");
  if (!scheme_of(graph, quantize).one_for_all()) throw Declined("there are several scales");
  if (graph.value_dims(x).elements() > graph.value_dims(graph.output(quantize)).elements() &&
      !meets_its_dequantize(graph, quantize, x)) {
    throw Declined("more values would be quantized");
  }
}

// `value` as node 0, a quantize, gives it.
TnValueId quantized(GraphView& graph, const Match& match, TnValueId value) {
  return graph.add_node("tenon.quantize/1", "", graph.attrs(graph.node_attrs(match.node(0))),
                        {value, match.value("scale"), match.value("zero")});
}

// The op of node 1 on other inputs, in place of node 0.
void replace_by_moved(GraphView& graph, const Match& match, const std::vector<TnValueId>& inputs) {
  const TnNodeId moving = match.node(1);
  graph.replace(graph.output(match.node(0)),
                graph.add_node(graph.node_op(moving), "", graph.attrs(graph.node_attrs(moving)), inputs));
}

void rise(GraphView& graph, const Match& match) {
  std::vector<TnValueId> inputs = {quantized(graph, match, match.value("x"))};
  for (int n = 1; n < graph.num_inputs(match.node(1)); ++n) inputs.push_back(graph.input(match.node(1), n));
  replace_by_moved(graph, match, inputs);
}

// What a pad writes is quantized too; where it is 0, the zero point.
void rise_above_pad(GraphView& graph, const Match& match) {
  TnValueId filling = match.value("value");
  filling = filling == TN_NO_ID ? match.value("zero") : quantized(graph, match, filling);
  replace_by_moved(graph, match,
                   {quantized(graph, match, match.value("x")), match.value("pads"), filling, match.value("axes")});
}

constexpr int kMostParts = 24;
std::string part_name(int n) { return text("part", n); }

void check_concat(const GraphView& graph, const Match& match) {
  if (!scheme_of(graph, match.node(0)).one_for_all()) throw Declined("there are several scales");
  for (int n = 0; n < kMostParts; ++n) {
    const TnValueId part = match.value(part_name(n));
    if (part != TN_NO_ID && !meets_its_dequantize(graph, match.node(0), part)) {
      throw Declined(text("part ", n, " was not quantized with the same numbers"));
    }
  }
}

void rise_above_concat(GraphView& graph, const Match& match) {
  std::vector<TnValueId> inputs;
  for (int n = 0; n < kMostParts; ++n) {
    const TnValueId part = match.value(part_name(n));
    if (part != TN_NO_ID) inputs.push_back(quantized(graph, match, part));
  }
  replace_by_moved(graph, match, inputs);
}

// The integers stand for nothing below 0.
void check_starts_at_zero(const GraphView& graph, TnNodeId node) {
  const Scheme scheme = scheme_of(graph, node);
  for (const int64_t zero : scheme.zeros) {
    if (zero != quantized_range(scheme.dtype).low) throw Declined("the integers stand for negative numbers too");
  }
}

const char kNumbers[] = "$scale:const,$zero:const?)";

Fusion rule(const char* id, const char* doc, const std::string& pattern) {
  return fusion(id).doc(doc).always().pattern(pattern);
}

}  // namespace

Definitions quantize_rules() {
  const std::string numbers = kNumbers;
  std::string moving, parts;
  for (const char* op : kMoving) moving += (moving.empty() ? "" : "|") + std::string(op);
  for (int n = 0; n < kMostParts; ++n) parts += (n == 0 ? "$" : "?,$") + part_name(n);
  Definitions all;
  all.add(rule("tenon.drop_dequantize_quantize/1",
               "a dequantize and a quantize with the same numbers give the integers that are there already",
               "tenon.quantize/1(tenon.dequantize/1($x,$from:const,$from_zero:const?)*," + numbers)
              .check([](const GraphView& graph, const Match& match) {
                if (!undoes(graph, match.node(0), match.node(1))) throw Declined("the numbers differ");
              })
              .rewrite([](GraphView& graph, const Match& match) {
                replace_by(graph, graph.output(match.node(0)), match.value("x"));
              }));
  const std::string pair = "tenon.dequantize/1(tenon.quantize/1($x,$from:const,$from_zero:const?)," + numbers;
  all.add(rule("tenon.drop_second_rounding/1",
               "a quantize and a dequantize of what was rounded by the same numbers already", pair)
              .check([](const GraphView& graph, const Match& match) {
                check_pair(graph, match);
                int budget = 256;
                if (!is_rounded(graph, match.node(1), match.value("x"), &budget))
                  throw Declined("it is not rounded yet");
              })
              .rewrite([](GraphView& graph, const Match& match) {
                replace_by(graph, graph.output(match.node(0)), match.value("x"));
              }));
  all.add(rule("tenon.fuse_quantize_dequantize/1",
               "a quantize and the dequantize behind it as an expression that rounds", pair)
              .priority(-1)
              .check(check_pair)
              .rewrite(fuse_pair));
  // Behind the rules that make more of what moves.
  all.add(rule("tenon.quantize_before_moving/1", "what is only moved is quantized before",
               "tenon.quantize/1(" + moving + "($x,$a?,$b?,$c?,$d?)," + numbers)
              .priority(-2)
              .check(check_rise)
              .rewrite(rise));
  all.add(rule("tenon.quantize_before_pad/1", "a padded tensor is quantized before",
               "tenon.quantize/1(tenon.pad/1($x,$pads,$value:const?,$axes?)," + numbers)
              .priority(-2)
              .check(check_rise)
              .rewrite(rise_above_pad));
  all.add(rule("tenon.quantize_before_concat/1", "parts that were quantized alike are concatenated as integers",
               "tenon.quantize/1(tenon.concat/1(" + parts + "?)," + numbers)
              .priority(-2)
              .check(check_concat)
              .rewrite(rise_above_concat));
  all.add(rule("tenon.drop_relu_before_quantize/1", "a relu whose negative numbers saturate to 0 anyway",
               "tenon.quantize/1(tenon.relu/1($x)," + numbers)
              .check([](const GraphView& graph, const Match& match) { check_starts_at_zero(graph, match.node(0)); })
              .rewrite([](GraphView& graph, const Match& match) {
                graph.replace(graph.output(match.node(0)), quantized(graph, match, match.value("x")));
              }));
  all.add(rule("tenon.drop_relu_after_dequantize/1", "a relu of integers that stand for nothing below 0",
               "tenon.relu/1(tenon.dequantize/1($x," + numbers + "*)")
              .check([](const GraphView& graph, const Match& match) { check_starts_at_zero(graph, match.node(1)); })
              .rewrite([](GraphView& graph, const Match& match) {
                replace_by(graph, graph.output(match.node(0)), graph.output(match.node(1)));
              }));
  return all;
}

}  // namespace tenon::plugins
