#include "tests/fusion/transformer_pieces.h"

namespace tenon::fusion {

Value spell_attention(NetworkMaker& make, const Value& q, const Value& k, const Value& v,
                      const AttentionSpelling& spelling) {
  const auto scaled = [&](const Value& x) {
    if (spelling.scale == 1) return x;
    if (spelling.divides) return make.op("div", {x, make.number(1 / spelling.scale)});
    return make.op("mul", {make.number(spelling.scale), x});
  };
  Value keys = k;
  if (!spelling.transposed_b) {
    std::vector<std::int64_t> perm;
    for (int axis = 0; axis < k.rank(); ++axis) perm.push_back(axis);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    keys = make.op("transpose", {k}, {{"perm", perm}});
  }
  const Value first = spelling.scales_q ? scaled(q) : q;
  Value scores = make.op("matmul", {first, keys}, {{"transpose_b", spelling.transposed_b ? 1 : 0}});
  if (!spelling.scales_q) scores = scaled(scores);
  if (spelling.mask.id != TN_NO_TENSOR) scores = make.op("add", {spelling.mask, scores});
  return make.op("matmul", {make.op("softmax", {scores}, {{"axis", -1}}), v});
}

Value split_heads(NetworkMaker& make, const Value& x, std::int64_t heads) {
  const Value rows = make.op("reshape", {x}, {{"shape", {0, 0, heads, x.dims[2] / heads}}});
  return make.op("transpose", {rows}, {{"perm", {0, 2, 1, 3}}});
}

Value merge_heads(NetworkMaker& make, const Value& x) {
  const Value rows = make.op("transpose", {x}, {{"perm", {0, 2, 1, 3}}});
  return make.op("reshape", {rows}, {{"shape", {0, 0, x.dims[1] * x.dims[3]}}});
}

const std::vector<std::string>& norm_forms() {
  static const std::vector<std::string> all = {"layer_norm", "layer_norm_power", "layer_norm_inverse",
                                               "rms_norm",   "rms_norm_inverse", "rms_norm_reciprocal"};
  return all;
}

Value spell_norm(NetworkMaker& make, const std::string& form, const Value& x, double epsilon, const Value& scale,
                 const Value& bias, int axes, double off) {
  std::vector<std::int64_t> numbers;
  for (int axis = axes; axis > 0; --axis) numbers.push_back(-axis);
  const Value innermost = make.integers(numbers);
  const auto mean = [&](const Value& of) { return make.op("reduce_mean", {of, innermost}); };
  const auto root = [&](const Value& square) {
    return make.op("sqrt", {make.op("add", {mean(square), make.number(epsilon)})});
  };
  const auto power = [&](const Value& of) { return make.op("pow", {of, make.number(2 + off)}); };
  if (form == "rms_norm") return make.op("div", {x, root(power(x))});
  if (form == "rms_norm_inverse") {
    return make.op("mul", {x, make.op("div", {make.number(1 + off), root(make.op("mul", {x, x}))})});
  }
  if (form == "rms_norm_reciprocal") return make.op("mul", {make.op("reciprocal", {root(power(x))}), x});
  const Value middle = mean(x), centred = make.op("sub", {x, middle});
  if (form == "layer_norm") return make.op("div", {centred, root(make.op("mul", {centred, centred}))});
  if (form == "layer_norm_power") return make.op("div", {centred, root(power(centred))});
  const Value inverse = make.op("mul", {make.op("reciprocal", {root(make.op("mul", {centred, centred}))}), scale});
  return make.op("add", {make.op("mul", {x, inverse}), make.op("sub", {bias, make.op("mul", {middle, inverse})})});
}

Value spell_softmax(NetworkMaker& make, const Value& x, std::int64_t axis, bool shifted) {
  const Value axes = make.integers({axis});
  const Value from = shifted ? make.op("sub", {x, make.op("reduce_max", {x, axes})}) : x;
  const Value exponential = make.op("exp", {from});
  return make.op("div", {exponential, make.op("reduce_sum", {exponential, axes})});
}

}  // namespace tenon::fusion
