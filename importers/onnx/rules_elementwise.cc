// Arithmetic, comparison, logic, mathematical functions and activations, element by element.
#include <cmath>
#include <string>
#include <utility>

#include "importers/onnx/rules.h"

namespace tenon::onnx {
namespace {

void require_plain_elements(const OnnxNode& node) {
  for (int n = 0; n < node.num_inputs(); ++n) {
    if (node.has_input(n) && dtype_size(node.dtype(n)) == 0) {
      throw Unsupported{text("elements of ", dtype_name(node.dtype(n)))};
    }
  }
}

/// The op tenon.<name>/1 of all inputs.
void map(OnnxNode& node, const std::string& name, const NewAttrs& attrs) {
  require_plain_elements(node);
  node.output(0, node.add("tenon." + name + "/1", attrs, node.inputs_from(0)));
}
void map(OnnxNode& node, const std::string& name) { map(node, name, node.attrs()); }

/// The same with the attribute alpha, which the op calls alpha too.
void map_alpha(OnnxNode& node, const std::string& name, double absent) {
  map(node, name, node.attrs().f64("alpha", node.f64("alpha", absent)));
}

/// a > b as b < a.
void map_exchanged(OnnxNode& node, const std::string& name) {
  require_plain_elements(node);
  node.output(0, node.add("tenon." + name + "/1", {node.input(1), node.input(0)}));
}

// --- activations ---

void relu(OnnxNode& node) {
  if (is_floating(node.dtype(0))) return map(node, "relu");
  node.output(0, node.add("tenon.max/1", {node.input(0), node.scalar(node.dtype(0), 0)}));
}

void hard_sigmoid(OnnxNode& node) {
  map(node, "hard_sigmoid", node.attrs().f64("alpha", node.f64("alpha", 0.2)).f64("beta", node.f64("beta", 0.5)));
}

void selu(OnnxNode& node) {
  NewAttrs attrs = node.attrs();
  if (node.has("alpha")) attrs.f64("alpha", node.f64("alpha"));
  if (node.has("gamma")) attrs.f64("gamma", node.f64("gamma"));
  map(node, "selu", attrs);
}

void gelu(OnnxNode& node) {
  const std::string approximate = node.str("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    throw Invalid(text("attribute approximate: expected none or tanh, found ", approximate));
  }
  map(node, approximate == "tanh" ? "gelu_tanh" : "gelu");
}

void swish(OnnxNode& node) {
  const double alpha = node.f64("alpha", 1.0);
  if (alpha == 1.0) return map(node, "swish");
  const TnValueId x = node.input(0);
  const TnValueId scaled = node.add("tenon.mul/1", {x, node.scalar(node.dtype(0), alpha)});
  node.output(0, node.add("tenon.mul/1", {x, node.add("tenon.logistic/1", {scaled})}));
}

/// Integers are computed as f64, because threshold and bias need not be whole, and truncated.
void shrink(OnnxNode& node) {
  const int32_t dtype = node.dtype(0);
  const TnValueId x = is_floating(dtype) ? node.input(0) : node.cast(node.input(0), TN_F64);
  NewAttrs attrs = node.attrs();
  attrs.f64("threshold", node.f64("lambd", 0.5)).f64("bias", node.f64("bias", 0.0));
  node.output(0, node.cast(node.add("tenon.shrink/1", attrs, {x}), dtype));
}

/// Bounds are attributes at 6 and inputs from 11 on.
void clip(OnnxNode& node) {
  require_plain_elements(node);
  TnValueId bounds[] = {node.optional_input(1), node.optional_input(2)};
  if (node.since() < 11) {
    const char* const names[] = {"min", "max"};
    for (int n = 0; n < 2; ++n) {
      if (node.has(names[n])) bounds[n] = node.scalar(node.dtype(0), node.f64(names[n]));
    }
  }
  node.output(0, node.add("tenon.clip/1", {node.input(0), bounds[0], bounds[1]}));
}

/// The mask says which elements are kept: all, because nothing is dropped outside of training.
void dropout(OnnxNode& node) {
  if (node.since() >= 12 && node.has_input(2) && *node.known_scalar(2) != 0) {
    const double ratio = node.known_scalar(1).value_or(0.5);
    if (ratio != 0) throw Unsupported{"Dropout in training mode"};
  }
  node.output(0, node.input(0));
  if (!node.wants(1)) return;
  const Dims dims = node.dims(0);
  const uint8_t kept = 1;
  const TnValueId mask = node.add("tenon.expand/1", {node.constant(host_tensor(TN_BOOL, Dims{}, &kept)),
                                                     node.constant(std::vector<int64_t>(dims.begin(), dims.end()))});
  node.output(1, node.since() < 10 ? node.cast(mask, node.dtype(0)) : mask);
}

// --- arithmetic ---

/// Any number of inputs, two at a time.
TnValueId chain(OnnxNode& node, const std::string& op_id) {
  require_plain_elements(node);
  TnValueId result = node.input(0);
  for (int n = 1; n < node.num_inputs(); ++n) {
    TnValueId next = node.input(n);
    // A constant comes second, where relu and the like have it: max(0, x) is max(x, 0).
    const GraphView& graph = node.graph_view();
    if (graph.value_const(result) && !graph.value_const(next)) std::swap(result, next);
    result = node.add(op_id, {result, next});
  }
  return result;
}

void mean(OnnxNode& node) {
  const TnValueId sum = chain(node, "tenon.add/1");
  const int count = node.num_inputs();
  node.output(0, count == 1 ? sum : node.add("tenon.div/1", {sum, node.scalar(node.dtype(0), count)}));
}

void mod(OnnxNode& node) {
  const bool c_fmod = node.flag("fmod", false);
  if (!c_fmod && is_floating(node.dtype(0))) {
    throw Invalid(text("attribute fmod: expected 1 for ", dtype_name(node.dtype(0)), ", found 0"));
  }
  map(node, "mod", node.attrs().str("sign", c_fmod ? "dividend" : "divisor"));
}

/// Whether a known integer fits f32's 24 bits.
bool small(OnnxNode& node, TnValueId value) {
  const int32_t dtype = node.dtype_of(value);
  if (dtype != TN_I32 && dtype != TN_I64) return false;
  const auto contents = node.contents_i64s(value);
  return contents && contents->size() == 1 && std::abs(contents->front()) < (1 << 24);
}

/// A known integer exponent of floats becomes one of their dtype, for which there are kernels.
void pow(OnnxNode& node) {
  require_plain_elements(node);
  const int32_t dtype = node.dtype(0);
  TnValueId exponent = node.input(1);
  if ((dtype == TN_F32 || dtype == TN_F64) && small(node, exponent)) exponent = node.cast(exponent, dtype);
  node.output(0, node.add("tenon.pow/1", {node.input(0), exponent}));
}

void bit_shift(OnnxNode& node) {
  const std::string direction = node.str("direction");
  if (direction != "LEFT" && direction != "RIGHT") {
    throw Invalid(text("attribute direction: expected LEFT or RIGHT, found ", direction));
  }
  map(node, "bit_shift", node.attrs().str("direction", direction == "LEFT" ? "left" : "right"));
}

void is_inf(OnnxNode& node) {
  map(node, "is_inf",
      node.attrs()
          .i64("negative", node.flag("detect_negative", true))
          .i64("positive", node.flag("detect_positive", true)));
}

const Rule kRules[] = {
    // Mathematical functions.
    {"Abs", {6, 13}, [](OnnxNode& node) { map(node, "abs"); }},
    {"Neg", {6, 13}, [](OnnxNode& node) { map(node, "neg"); }},
    {"Sign", {9, 13}, [](OnnxNode& node) { map(node, "sign"); }},
    {"Floor", {6, 13}, [](OnnxNode& node) { map(node, "floor"); }},
    {"Ceil", {6, 13}, [](OnnxNode& node) { map(node, "ceil"); }},
    {"Round", {11, 22}, [](OnnxNode& node) { map(node, "round_even"); }},
    {"Reciprocal", {6, 13}, [](OnnxNode& node) { map(node, "reciprocal"); }},
    {"Sqrt", {6, 13}, [](OnnxNode& node) { map(node, "sqrt"); }},
    {"Exp", {6, 13}, [](OnnxNode& node) { map(node, "exp"); }},
    {"Log", {6, 13}, [](OnnxNode& node) { map(node, "log"); }},
    {"Erf", {9, 13}, [](OnnxNode& node) { map(node, "erf"); }},
    {"Sin", {7, 22}, [](OnnxNode& node) { map(node, "sin"); }},
    {"Cos", {7, 22}, [](OnnxNode& node) { map(node, "cos"); }},
    {"Tan", {7, 22}, [](OnnxNode& node) { map(node, "tan"); }},
    {"Asin", {7, 22}, [](OnnxNode& node) { map(node, "asin"); }},
    {"Acos", {7, 22}, [](OnnxNode& node) { map(node, "acos"); }},
    {"Atan", {7, 22}, [](OnnxNode& node) { map(node, "atan"); }},
    {"Sinh", {9, 22}, [](OnnxNode& node) { map(node, "sinh"); }},
    {"Cosh", {9, 22}, [](OnnxNode& node) { map(node, "cosh"); }},
    {"Tanh", {6, 13}, [](OnnxNode& node) { map(node, "tanh"); }},
    {"Asinh", {9, 22}, [](OnnxNode& node) { map(node, "asinh"); }},
    {"Acosh", {9, 22}, [](OnnxNode& node) { map(node, "acosh"); }},
    {"Atanh", {9, 22}, [](OnnxNode& node) { map(node, "atanh"); }},
    // Activations.
    {"Relu", {6, 13, 14}, relu},
    {"LeakyRelu", {6, 16}, [](OnnxNode& node) { map_alpha(node, "leaky_relu", 0.01); }},
    {"ThresholdedRelu", {10, 22}, [](OnnxNode& node) { map_alpha(node, "thresholded_relu", 1.0); }},
    {"PRelu", {7, 9, 16}, [](OnnxNode& node) { map(node, "prelu"); }},
    {"Elu", {6, 22}, [](OnnxNode& node) { map_alpha(node, "elu", 1.0); }},
    {"Celu", {12}, [](OnnxNode& node) { map_alpha(node, "celu", 1.0); }},
    {"Selu", {6, 22}, selu},
    {"Gelu", {20}, gelu},
    {"Sigmoid", {6, 13}, [](OnnxNode& node) { map(node, "logistic"); }},
    {"HardSigmoid", {6, 22}, hard_sigmoid},
    {"HardSwish", {14, 22}, [](OnnxNode& node) { map(node, "hard_swish"); }},
    {"Swish", {24}, swish},
    {"Mish", {18, 22}, [](OnnxNode& node) { map(node, "mish"); }},
    {"Softplus", {1, 22}, [](OnnxNode& node) { map(node, "softplus"); }},
    {"Softsign", {1, 22}, [](OnnxNode& node) { map(node, "softsign"); }},
    {"Shrink", {9}, shrink},
    {"Clip", {6, 11, 12, 13}, clip},
    {"Dropout", {7, 10, 12, 13, 22}, dropout},
    // Arithmetic.
    {"Add", {7, 13, 14}, [](OnnxNode& node) { map(node, "add"); }},
    {"Sub", {7, 13, 14}, [](OnnxNode& node) { map(node, "sub"); }},
    {"Mul", {7, 13, 14}, [](OnnxNode& node) { map(node, "mul"); }},
    {"Div", {7, 13, 14}, [](OnnxNode& node) { map(node, "div"); }},
    {"Mod", {10, 13}, mod},
    {"Pow", {7, 12, 13, 15}, pow},
    {"Min", {6, 8, 12, 13}, [](OnnxNode& node) { node.output(0, chain(node, "tenon.min/1")); }},
    {"Max", {6, 8, 12, 13}, [](OnnxNode& node) { node.output(0, chain(node, "tenon.max/1")); }},
    {"Sum", {6, 8, 13}, [](OnnxNode& node) { node.output(0, chain(node, "tenon.add/1")); }},
    {"Mean", {6, 8, 13}, mean},
    // Comparison and selection.
    {"Equal", {7, 11, 13, 19}, [](OnnxNode& node) { map(node, "equal"); }},
    {"Less", {7, 9, 13}, [](OnnxNode& node) { map(node, "less"); }},
    {"LessOrEqual", {12, 16}, [](OnnxNode& node) { map(node, "less_equal"); }},
    {"Greater", {7, 9, 13}, [](OnnxNode& node) { map_exchanged(node, "less"); }},
    {"GreaterOrEqual", {12, 16}, [](OnnxNode& node) { map_exchanged(node, "less_equal"); }},
    {"IsNaN", {9, 13, 20}, [](OnnxNode& node) { map(node, "is_nan"); }},
    {"IsInf", {10, 20}, is_inf},
    {"Where", {9, 16}, [](OnnxNode& node) { map(node, "where"); }},
    // Logic and bits.
    {"Not", {1}, [](OnnxNode& node) { map(node, "not"); }},
    {"And", {7}, [](OnnxNode& node) { map(node, "and"); }},
    {"Or", {7}, [](OnnxNode& node) { map(node, "or"); }},
    {"Xor", {7}, [](OnnxNode& node) { map(node, "xor"); }},
    {"BitwiseNot", {18}, [](OnnxNode& node) { map(node, "bitwise_not"); }},
    {"BitwiseAnd", {18}, [](OnnxNode& node) { map(node, "bitwise_and"); }},
    {"BitwiseOr", {18}, [](OnnxNode& node) { map(node, "bitwise_or"); }},
    {"BitwiseXor", {18}, [](OnnxNode& node) { map(node, "bitwise_xor"); }},
    {"BitShift", {11}, bit_shift},
};

}  // namespace

std::span<const Rule> elementwise_rules() { return kRules; }

}  // namespace tenon::onnx
