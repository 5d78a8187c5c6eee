// MatMul, Gemm, Einsum, Det.
#include <algorithm>
#include <cstring>
#include <optional>
#include <tenon/sdk/box.hpp>

#include "importers/onnx/rules.h"
#include "plugins/common/einsum_terms.h"

namespace tenon::onnx {
namespace {

using plugins::EinsumTerms;
using Labels = EinsumTerms::Labels;

std::vector<int64_t> to_list(const Dims& dims) { return {dims.begin(), dims.end()}; }

void matmul_rule(OnnxNode& node) {
  TnValueId a = node.input(0), b = node.input(1);
  const Dims a_dims = node.dims(0), b_dims = node.dims(1);
  if (a_dims.rank == 0 || b_dims.rank == 0) throw Invalid("inputs: expected ranks of at least 1, found a scalar");
  // A vector is a row on the left and a column on the right; that axis is no part of the result.
  if (a_dims.rank == 1) a = node.reshape(a, {1, a_dims[0]});
  if (b_dims.rank == 1) b = node.reshape(b, {b_dims[0], 1});
  TnValueId y = node.add("tenon.matmul/1", {a, b});
  if (a_dims.rank == 1 || b_dims.rank == 1) {
    std::vector<int64_t> shape = to_list(node.dims_of(y));
    if (b_dims.rank == 1) shape.pop_back();
    if (a_dims.rank == 1) shape.erase(shape.end() - (b_dims.rank == 1 ? 1 : 2));
    y = node.reshape(y, shape);
  }
  node.output(0, y);
}

/// A constant matrix with rows and columns exchanged, as a new constant.
TnValueId transposed(OnnxNode& node, const TnTensor& matrix) {
  const Dims dims = matrix.dims;
  const auto size = static_cast<size_t>(dtype_size(matrix.dtype));
  std::vector<char> bytes(static_cast<size_t>(dims.elements()) * size);
  const char* from = static_cast<const char*>(matrix.data);
  for (int64_t row = 0; !bytes.empty() && row < dims[0]; ++row) {
    for (int64_t column = 0; column < dims[1]; ++column, from += size) {
      std::memcpy(bytes.data() + static_cast<size_t>(column * dims[0] + row) * size, from, size);
    }
  }
  return node.constant(host_tensor(matrix.dtype, Dims{dims[1], dims[0]}, bytes.data()));
}

/// A constant that is the same in every row of [m, n] as a vector of n; nothing if it is no such thing.
std::optional<TnValueId> bias_row(OnnxNode& node, const std::optional<TnTensor>& c, int64_t n) {
  if (!c) return std::nullopt;
  const Dims dims = c->dims;
  const int64_t count = dims.elements();
  const bool row = dims.rank > 0 && dims[dims.rank - 1] == n && count == n;
  if (dims.rank > 2 || (count != 1 && !row)) return std::nullopt;
  const auto size = static_cast<size_t>(dtype_size(c->dtype));
  std::vector<char> bytes(static_cast<size_t>(node.made_elements({n})) * size);
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    std::memcpy(bytes.data() + i * size, static_cast<const char*>(c->data) + (count == 1 ? 0 : i * size), size);
  }
  return node.constant(host_tensor(c->dtype, Dims{n}, bytes.data()));
}

TnValueId scaled(OnnxNode& node, TnValueId value, double factor) {
  if (factor == 1.0) return value;
  const int32_t dtype = node.dtype_of(value);
  if (!is_floating(dtype) && factor != static_cast<double>(static_cast<int64_t>(factor))) {
    throw Unsupported{text("integers times ", factor)};
  }
  return node.add("tenon.mul/1", {value, node.scalar(dtype, factor)});
}

void gemm_rule(OnnxNode& node) {
  const bool transpose_a = node.flag("transA", false), transpose_b = node.flag("transB", false);
  const double alpha = node.f64("alpha", 1.0), beta = node.f64("beta", 1.0);
  const TnValueId a = node.input(0), b = node.input(1);
  if (node.rank(0) != 2 || node.rank(1) != 2) {
    throw Invalid(text("inputs: expected matrices, found ", to_text(node.dims(0)), " and ", to_text(node.dims(1))));
  }
  const int64_t m = node.dims(0)[transpose_a ? 1 : 0], n = node.dims(1)[transpose_b ? 0 : 1];
  const bool has_c = node.has_input(2) && beta != 0.0;
  if (has_c && broadcast_dims(node.dims(2), Dims{m, n}) != Dims{m, n}) {
    throw Invalid(
        text("input C: expected a shape that broadcasts to [", m, ",", n, "], found ", to_text(node.dims(2))));
  }
  // The usual case, a dense layer: constant weights and bias.
  const std::optional<TnTensor> weights = node.graph_view().value_const(b);
  if (weights && !transpose_a && alpha == 1.0 && is_floating(node.dtype(0)) && (!has_c || beta == 1.0)) {
    const std::optional<TnValueId> bias =
        has_c ? bias_row(node, node.graph_view().value_const(node.input(2)), n) : TnValueId{TN_NO_ID};
    if (bias) {
      const TnValueId rows = transpose_b ? b : transposed(node, *weights);
      return node.output(0, node.add("tenon.fully_connected/1", {a, rows, *bias}));
    }
  }
  TnValueId y =
      node.add("tenon.matmul/1", node.attrs().i64("transpose_a", transpose_a).i64("transpose_b", transpose_b), {a, b});
  y = scaled(node, y, alpha);
  if (has_c) y = node.add("tenon.add/1", {y, scaled(node, node.input(2), beta)});
  node.output(0, y);
}

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

Labels joined(const Labels& a, const Labels& b) {
  Labels all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

/// A tensor with a label for each axis.
struct Labelled {
  TnValueId value;
  Labels labels;
};

Labelled in_order(OnnxNode& node, const Labelled& x, const Labels& order) {
  std::vector<int64_t> perm;
  for (const int label : order) {
    perm.push_back(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin());
  }
  return {node.transpose(x.value, perm), order};
}

bool has_repeats(const Labels& labels) {
  for (const int label : labels) {
    if (std::count(labels.begin(), labels.end(), label) > 1) return true;
  }
  return false;
}

/// What the labels of a product of two are for.
struct Roles {
  Labels batch, rows, columns, summed;
};

/// Nothing if the product is no plain matmul: an axis is summed in one operand alone, or has size 1 in one of them.
std::optional<Roles> roles_of(const Labels& a, const Labels& b, const Labels& kept) {
  Roles roles;
  for (const int label : a) {
    const bool both = contains(b, label), keep = contains(kept, label);
    if (!both && !keep) return std::nullopt;
    (both ? (keep ? roles.batch : roles.summed) : roles.rows).push_back(label);
  }
  for (const int label : b) {
    if (contains(a, label)) continue;
    if (!contains(kept, label)) return std::nullopt;
    roles.columns.push_back(label);
  }
  return roles;
}

/// [batch, outer, inner] or, if that spares a transpose, [batch, inner, outer]; the latter sets `swapped`.
TnValueId as_matrices(OnnxNode& node, const Labelled& x, const Labels& batch, const Labels& outer, const Labels& inner,
                      bool* swapped) {
  *swapped = x.labels == joined(batch, joined(inner, outer)) && !outer.empty() && !inner.empty();
  const Labels& first = *swapped ? inner : outer;
  const Labels& second = *swapped ? outer : inner;
  const Labelled ordered = in_order(node, x, joined(batch, joined(first, second)));
  const Dims dims = node.dims_of(ordered.value);
  const int split = static_cast<int>(batch.size()), last = split + static_cast<int>(first.size());
  std::vector<int64_t> shape(dims.begin(), dims.begin() + split);
  shape.push_back(dims.product(split, last));
  shape.push_back(dims.product(last, dims.rank));
  return shape == to_list(dims) ? ordered.value : node.reshape(ordered.value, shape);
}

Labelled product(OnnxNode& node, const Labelled& a, const Labelled& b, const Roles& roles, const int64_t* sizes) {
  bool transpose_a = false, transpose_b = false;
  const TnValueId x = as_matrices(node, a, roles.batch, roles.rows, roles.summed, &transpose_a);
  const TnValueId w = as_matrices(node, b, roles.batch, roles.summed, roles.columns, &transpose_b);
  const TnValueId y =
      node.add("tenon.matmul/1", node.attrs().i64("transpose_a", transpose_a).i64("transpose_b", transpose_b), {x, w});
  const Labels labels = joined(roles.batch, joined(roles.rows, roles.columns));
  std::vector<int64_t> shape;
  for (const int label : labels) shape.push_back(sizes[label]);
  return {shape == to_list(node.dims_of(y)) ? y : node.reshape(y, shape), labels};
}

/// The operands multiplied from left to right, each label summed as soon as nobody else needs it. Empty if one of the
/// steps is no matmul; known before anything is added.
std::vector<Roles> plan(const EinsumTerms& terms) {
  std::vector<Roles> steps;
  Labels left = terms.operands[0];
  for (size_t n = 1; n < terms.operands.size(); ++n) {
    Labels kept = terms.output;
    for (size_t later = n + 1; later < terms.operands.size(); ++later) kept = joined(kept, terms.operands[later]);
    const std::optional<Roles> roles = roles_of(left, terms.operands[n], kept);
    if (!roles) return {};
    left = joined(roles->batch, joined(roles->rows, roles->columns));
    // The product has to be a tensor too.
    if (left.size() > TN_MAX_RANK || roles->batch.size() + 2 > TN_MAX_RANK) return {};
    steps.push_back(*roles);
  }
  return steps;
}

/// The axes of operand n that are summed alone: nobody else has their labels. They are taken out of its labels.
std::vector<int64_t> take_own_sums(EinsumTerms* terms, size_t n) {
  std::vector<int64_t> axes;
  Labels others = terms->output, kept;
  for (size_t m = 0; m < terms->operands.size(); ++m) {
    if (m != n) others = joined(others, terms->operands[m]);
  }
  for (size_t axis = 0; axis < terms->operands[n].size(); ++axis) {
    const int label = terms->operands[n][axis];
    if (contains(others, label)) {
      kept.push_back(label);
    } else {
      axes.push_back(static_cast<int64_t>(axis));
    }
  }
  terms->operands[n] = kept;
  return axes;
}

/// A sum over several constants is evaluated while the model is read, however many products it has.
void refuse_endless_sum(const OnnxNode& node, const EinsumTerms& terms, const std::vector<TnValueId>& inputs) {
  constexpr int64_t kMost = int64_t{1} << 28;
  for (const TnValueId input : inputs) {
    if (!node.graph_view().value_const(input)) return;
  }
  int64_t count = 1;
  for (const int64_t size : terms.sizes) {
    if (size > kMost / count) throw Unsupported{text("a sum of more than ", kMost, " products of constants")};
    count *= std::max<int64_t>(size, 1);
  }
}

void einsum_rule(OnnxNode& node) {
  std::vector<TnValueId> inputs = node.inputs_from(0);
  std::vector<Dims> shapes;
  for (const TnValueId input : inputs) shapes.push_back(node.dims_of(input));
  const std::string equation = node.str("equation");
  EinsumTerms terms = EinsumTerms::make(equation, shapes);
  bool plain = true;
  for (size_t n = 0; n < inputs.size(); ++n) {
    plain = plain && !has_repeats(terms.operands[n]) && node.dtype_of(inputs[n]) == node.dtype(0);
    for (int axis = 0; axis < shapes[n].rank; ++axis) {
      plain = plain && shapes[n][axis] == terms.sizes[terms.operands[n][static_cast<size_t>(axis)]];
    }
  }
  std::vector<std::vector<int64_t>> sums;
  if (plain && is_floating(node.dtype(0))) {
    for (size_t n = 0; n < inputs.size(); ++n) sums.push_back(take_own_sums(&terms, n));
  }
  const std::vector<Roles> steps = plain ? plan(terms) : std::vector<Roles>();
  const bool one_operand = inputs.size() == 1 && terms.operands[0].size() == terms.output.size();
  if (!plain || (steps.empty() && !one_operand)) {
    refuse_endless_sum(node, terms, inputs);
    return node.output(0, node.add("tenon.einsum/1", node.attrs().str("equation", equation), inputs));
  }
  for (size_t n = 0; n < sums.size(); ++n) {
    if (sums[n].empty()) continue;
    inputs[n] = node.add("tenon.reduce_sum/1", node.attrs().i64("keepdims", 0), {inputs[n], node.constant(sums[n])});
  }
  Labelled result = {inputs[0], terms.operands[0]};
  for (size_t n = 0; n < steps.size(); ++n) {
    result = product(node, result, {inputs[n + 1], terms.operands[n + 1]}, steps[n], terms.sizes);
  }
  node.output(0, in_order(node, result, terms.output).value);
}

void det_rule(OnnxNode& node) { node.output(0, node.add("tenon.determinant/1", {node.input(0)})); }

const Rule kRules[] = {
    {"MatMul", {1, 9, 13}, matmul_rule},
    {"Gemm", {7, 9, 11, 13}, gemm_rule},
    {"Einsum", {12}, einsum_rule},
    {"Det", {11, 22}, det_rule},
};

}  // namespace

std::span<const Rule> matmul_rules() { return kRules; }

}  // namespace tenon::onnx
