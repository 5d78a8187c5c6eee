#include "core/graph/expression.h"

#include <fmt/format.h>

#include "core/graph/attributes.h"
#include "core/graph/tensor.h"

namespace tenon {
namespace {

struct Primitive {
  std::int32_t primitive;
  const char* name;
  int arity;
};

constexpr Primitive kPrimitives[] = {
    {TN_EX_INPUT, "input", 0}, {TN_EX_CONSTANT, "constant", 0},
    {TN_EX_ADD, "add", 2},     {TN_EX_SUB, "sub", 2},
    {TN_EX_MUL, "mul", 2},     {TN_EX_DIV, "div", 2},
    {TN_EX_MIN, "min", 2},     {TN_EX_MAX, "max", 2},
    {TN_EX_NEG, "neg", 1},     {TN_EX_ABS, "abs", 1},
    {TN_EX_EXP, "exp", 1},     {TN_EX_LOG, "log", 1},
    {TN_EX_TANH, "tanh", 1},   {TN_EX_ERF, "erf", 1},
    {TN_EX_SQRT, "sqrt", 1},   {TN_EX_RSQRT, "rsqrt", 1},
    {TN_EX_POW, "pow", 2},     {TN_EX_SIN, "sin", 1},
    {TN_EX_COS, "cos", 1},     {TN_EX_FLOOR, "floor", 1},
    {TN_EX_CEIL, "ceil", 1},   {TN_EX_ROUND_EVEN, "round_even", 1},
    {TN_EX_SIGN, "sign", 1},   {TN_EX_MOD, "mod", 2},
    {TN_EX_AND, "and", 2},     {TN_EX_OR, "or", 2},
    {TN_EX_XOR, "xor", 2},     {TN_EX_NOT, "not", 1},
    {TN_EX_LESS, "less", 2},   {TN_EX_LESS_EQUAL, "less_equal", 2},
    {TN_EX_EQUAL, "equal", 2}, {TN_EX_SELECT, "select", 3},
    {TN_EX_CAST, "cast", 1},
};

const Primitive* find_primitive(std::int32_t primitive) {
  const bool known = primitive >= 1 && primitive <= static_cast<std::int32_t>(std::size(kPrimitives));
  return known ? &kPrimitives[primitive - 1] : nullptr;
}

std::int32_t argument(const TnExprInstr& instr, int n) { return n == 0 ? instr.a : n == 1 ? instr.b : instr.c; }

/// How often the result needs each step; 0: not at all.
std::vector<int> count_uses(const std::vector<TnExprInstr>& instrs, std::size_t result) {
  std::vector<int> uses(instrs.size(), 0);
  if (instrs.empty()) return uses;
  uses[result] = 1;
  for (std::size_t i = result + 1; i-- > 0;) {
    if (uses[i] == 0) continue;
    for (int n = 0; n < primitive_arity(instrs[i].primitive); ++n) {
      ++uses[static_cast<std::size_t>(argument(instrs[i], n))];
    }
  }
  return uses;
}

bool castable(std::int32_t dtype) {
  switch (dtype) {
    case TN_F32:
    case TN_F64:
    case TN_F16:
    case TN_BF16:
    case TN_BOOL:
    case TN_U8:
    case TN_I8:
    case TN_U16:
    case TN_I16:
    case TN_U32:
    case TN_I32:
    case TN_U64:
    case TN_I64:
    case TN_U4:
    case TN_I4:
    case TN_U2:
    case TN_I2:
      return true;
    default:
      return false;
  }
}

}  // namespace

int primitive_arity(std::int32_t primitive) {
  const Primitive* known = find_primitive(primitive);
  return known != nullptr ? known->arity : -1;
}

std::string primitive_name(std::int32_t primitive) {
  const Primitive* known = find_primitive(primitive);
  return known != nullptr ? known->name : "primitive" + std::to_string(primitive);
}

TnExpr Expression::abi() const {
  return {TN_HEADER(TnExpr), static_cast<std::uint32_t>(instrs_.size()), instrs_.data()};
}

std::string Expression::text() const {
  if (instrs_.empty()) return "x0";
  const std::vector<int> uses = count_uses(instrs_, instrs_.size() - 1);
  std::vector<std::string> terms(instrs_.size());
  std::string text;
  int named = 0;
  for (std::size_t i = 0; i < instrs_.size(); ++i) {
    if (uses[i] == 0) continue;
    const TnExprInstr& instr = instrs_[i];
    const bool plain = instr.dtype == TN_F32 || instr.dtype == TN_DTYPE_NONE;
    const std::string suffix = plain && instr.primitive != TN_EX_CAST ? "" : "." + dtype_name(instr.dtype);
    std::string& term = terms[i];
    if (instr.primitive == TN_EX_INPUT) {
      term = fmt::format("x{}{}", instr.operand, suffix);
    } else if (instr.primitive == TN_EX_CONSTANT) {
      term = attr_text(instr.value);
      if (!plain) term = fmt::format("constant{}({})", suffix, term);
    } else {
      term = primitive_name(instr.primitive) + suffix + "(";
      const int arity = primitive_arity(instr.primitive);
      for (int n = 0; n < arity; ++n) {
        if (n > 0) term += ',';
        term += terms[static_cast<std::size_t>(argument(instr, n))];
      }
      term += ')';
      if (uses[i] > 1) {
        const std::string name = fmt::format("t{}", ++named);
        text += fmt::format("{}={};", name, term);
        term = name;
      }
    }
  }
  return text + terms.back();
}

Status Expression::verify(std::uint32_t num_operands) const {
  if (instrs_.empty() && num_operands == 0) return {Code::kInvalid, "expression: the identity needs an operand"};
  for (std::size_t i = 0; i < instrs_.size(); ++i) {
    const TnExprInstr& instr = instrs_[i];
    const int arity = primitive_arity(instr.primitive);
    if (arity < 0)
      return {Code::kInvalid, fmt::format("expression: step {}: primitive {} is unknown", i, instr.primitive)};
    const std::string where = fmt::format("expression: step {} ({})", i, primitive_name(instr.primitive));
    for (int n = 0; n < arity; ++n) {
      const std::int32_t from = argument(instr, n);
      if (from < 0 || static_cast<std::size_t>(from) >= i) {
        return {Code::kInvalid,
                fmt::format("{}: argument {} is step {}; expected an earlier step", where, "abc"[n], from)};
      }
    }
    if (instr.primitive == TN_EX_INPUT && instr.operand >= num_operands) {
      return {Code::kInvalid, fmt::format("{}: operand {} of {}", where, instr.operand, num_operands)};
    }
    if (instr.dtype != TN_DTYPE_NONE && dtype_bits(instr.dtype) == 0) {
      return {Code::kInvalid, fmt::format("{}: {} is no compute dtype", where, dtype_name(instr.dtype))};
    }
    if (instr.primitive == TN_EX_CAST && !castable(instr.dtype)) {
      return {Code::kInvalid, fmt::format("{}: a cast to {} is not supported", where, dtype_name(instr.dtype))};
    }
  }
  return {};
}

Expression Expression::then(const Expression& outer) const {
  if (empty()) return outer;
  if (outer.empty()) return *this;
  std::vector<TnExprInstr> all = instrs_;
  const auto inner_result = static_cast<std::int32_t>(instrs_.size()) - 1;
  std::vector<std::int32_t> moved;
  for (const TnExprInstr& step : outer.instrs_) {
    if (step.primitive == TN_EX_INPUT && step.operand == 0) {
      moved.push_back(inner_result);
      continue;
    }
    TnExprInstr instr = step;
    const int arity = primitive_arity(step.primitive);
    if (arity > 0) instr.a = moved[static_cast<std::size_t>(step.a)];
    if (arity > 1) instr.b = moved[static_cast<std::size_t>(step.b)];
    if (arity > 2) instr.c = moved[static_cast<std::size_t>(step.c)];
    moved.push_back(static_cast<std::int32_t>(all.size()));
    all.push_back(instr);
  }
  // The result may be an earlier step (outer returns its operand): steps that it does not need would hide it, so they
  // go.
  const auto result = static_cast<std::size_t>(moved.back());
  const std::vector<int> uses = count_uses(all, result);
  std::vector<TnExprInstr> kept;
  std::vector<std::int32_t> place(all.size(), 0);
  for (std::size_t i = 0; i <= result; ++i) {
    if (uses[i] == 0) continue;
    TnExprInstr instr = all[i];
    const int arity = primitive_arity(instr.primitive);
    if (arity > 0) instr.a = place[static_cast<std::size_t>(instr.a)];
    if (arity > 1) instr.b = place[static_cast<std::size_t>(instr.b)];
    if (arity > 2) instr.c = place[static_cast<std::size_t>(instr.c)];
    place[i] = static_cast<std::int32_t>(kept.size());
    kept.push_back(instr);
  }
  return Expression(std::move(kept));
}

}  // namespace tenon
