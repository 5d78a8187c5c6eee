// The attributes of recurrent layers and the functions that gates apply.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "plugins/recurrent/recurrent.h"

namespace tenon::plugins {
namespace {

using Kind = GateFunction::Kind;

// Parameters that a model leaves out are those of the ONNX operator of the same name.
struct Known {
  const char* name;
  Kind kind;
  bool takes_alpha, takes_beta;
  double alpha, beta;
};
constexpr Known kKnown[] = {
    {"relu", Kind::kRelu, false, false, 0, 0},
    {"tanh", Kind::kTanh, false, false, 0, 0},
    {"sigmoid", Kind::kSigmoid, false, false, 0, 0},
    {"affine", Kind::kAffine, true, true, 1, 0},
    {"leakyrelu", Kind::kLeakyRelu, true, false, 0.01, 0},
    {"thresholdedrelu", Kind::kThresholdedRelu, true, false, 1, 0},
    {"scaledtanh", Kind::kScaledTanh, true, true, 1, 1},
    {"hardsigmoid", Kind::kHardSigmoid, true, true, 0.2, 0.5},
    {"elu", Kind::kElu, true, false, 1, 0},
    {"softsign", Kind::kSoftsign, false, false, 0, 0},
    {"softplus", Kind::kSoftplus, false, false, 0, 0},
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> names;
  if (list.empty()) return names;
  names.emplace_back();
  for (const char c : list) {
    if (c == ',') {
      names.emplace_back();
    } else {
      names.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return names;
}

List<double> optional_list(const Attrs& attrs, const char* name) {
  const double* data = nullptr;
  uint32_t count = 0;
  return attrs.host()->attrs->get_f64s(attrs.raw(), name, &data, &count) == TN_OK ? List<double>(data, count)
                                                                                  : List<double>();
}

const Known& find_known(const std::string& name) {
  for (const Known& known : kKnown) {
    if (name == known.name) return known;
  }
  throw Invalid(text("attribute 'activations': no such activation: '", name, "'"));
}

}  // namespace

double GateFunction::operator()(double x) const {
  switch (kind) {
    case Kind::kRelu:
      return x < 0 ? 0 : x;
    case Kind::kTanh:
      return std::tanh(x);
    case Kind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Kind::kAffine:
      return alpha * x + beta;
    case Kind::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case Kind::kThresholdedRelu:
      return x >= alpha ? x : 0;
    case Kind::kScaledTanh:
      return alpha * std::tanh(beta * x);
    case Kind::kHardSigmoid:
      return std::min(std::max(alpha * x + beta, 0.0), 1.0);
    case Kind::kElu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case Kind::kSoftsign:
      return x / (1 + std::abs(x));
    case Kind::kSoftplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
  return x;
}

RecurrentForm::RecurrentForm(CellKind cell, const Attrs& attrs) : kind(cell) {
  const std::string direction = attrs.str("direction");
  directions = direction == "bidirectional" ? 2 : 1;
  reverse = direction == "reverse";
  clip = attrs.f64("clip");
  input_forget = cell == CellKind::kLstm && attrs.flag("input_forget");
  linear_before_reset = cell == CellKind::kGru && attrs.flag("linear_before_reset");

  const int count = cell == CellKind::kRnn ? 1 : cell == CellKind::kGru ? 2 : 3;
  std::vector<std::string> names = split(attrs.str("activations"));
  if (names.empty()) {
    for (int n = 0; n < directions * count; ++n) {
      names.emplace_back(cell != CellKind::kRnn && n % count == 0 ? "sigmoid" : "tanh");
    }
  }
  if (static_cast<int>(names.size()) != directions * count) {
    throw Invalid(text("attribute 'activations': expected ", directions * count, " names, found ", names.size()));
  }
  // Parameters are dealt, in order, to the functions that take one.
  const List<double> alphas = optional_list(attrs, "activation_alpha"), betas = optional_list(attrs, "activation_beta");
  int next_alpha = 0, next_beta = 0;
  for (const std::string& name : names) {
    const Known& known = find_known(name);
    GateFunction function = {known.kind, known.alpha, known.beta};
    if (known.takes_alpha && next_alpha < alphas.size()) function.alpha = alphas[next_alpha++];
    if (known.takes_beta && next_beta < betas.size()) function.beta = betas[next_beta++];
    functions.push_back(function);
  }
}

}  // namespace tenon::plugins
