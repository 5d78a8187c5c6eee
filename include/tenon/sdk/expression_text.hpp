/// The text form of pointwise expressions, read: what hosts write into attributes, keys and plans.
///   text       = { name "=" term ";" } term               name: t1, t2, ... in this order
///   term       = name | "x" number [suffix] | number | "constant" suffix "(" number ")"
///              | primitive [suffix] "(" term { "," term } ")"
///   suffix     = "." dtype, the compute dtype; none: f32. A cast always has one.
///   primitive  = "add", "less_equal", ...: the words of TN_EX_* in small letters
/// For example "t1=exp(x0);div(t1,add(t1,1))".
#ifndef TENON_SDK_EXPRESSION_TEXT_HPP
#define TENON_SDK_EXPRESSION_TEXT_HPP

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../plugin/ext/expression.h"
#include "dtype.hpp"

namespace tenon {
inline namespace sdk {

/// Name and number of arguments of a primitive.
struct ExprPrimitive {
  int32_t primitive;
  const char* name;
  int arity;
};

/// NULL for a number that this header does not know.
inline const ExprPrimitive* find_primitive(int32_t primitive) {
  static constexpr ExprPrimitive kAll[] = {{TN_EX_INPUT, "x", 0},     {TN_EX_CONSTANT, "constant", 0},
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
                                           {TN_EX_CAST, "cast", 1}};
  const bool known = primitive >= 1 && primitive <= TN_EX_CAST;
  return known ? &kAll[primitive - 1] : nullptr;
}

/// Reads one text; see parse_expression.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  std::vector<TnExprInstr> parse() {
    while (definition()) {
    }
    const int32_t result = term(0);
    if (at_ < text_.size()) fail(at_, "the end");
    // Only the result may be last; steps after it do not lead to it.
    instrs_.resize(static_cast<size_t>(result) + 1);
    return std::move(instrs_);
  }

 private:
  static constexpr int kMaxDepth = 256;
  static constexpr size_t kMaxSteps = 4096;

  [[noreturn]] void fail(size_t column, const std::string& expected) const {
    const std::string_view rest = text_.substr(std::min(column, text_.size()));
    const std::string found = rest.empty() ? "the end" : "'" + std::string(rest.substr(0, 12)) + "'";
    throw Invalid(text("expression, column ", column + 1, ": expected ", expected, ", found ", found));
  }
  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  void expect(char c) {
    if (!next_is(c)) fail(at_, std::string("'") + c + "'");
    ++at_;
  }
  /// Letters, digits and underscores from here on; may be empty.
  std::string_view word() {
    const auto belongs = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    const size_t begin = at_;
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  double number() {
    double value = 0;
    const char* end = text_.data() + text_.size();
    const auto [stop, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc()) fail(at_, "a number");
    at_ += static_cast<size_t>(stop - (text_.data() + at_));
    return value;
  }
  /// The number in "x12" or "t3"; false if the word has another form.
  static bool numbered(std::string_view word, char letter, uint32_t* number) {
    if (word.size() < 2 || word[0] != letter) return false;
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data() + 1, end, *number);
    return error == std::errc() && stop == end;
  }
  int32_t suffix(bool required) {
    if (!next_is('.')) {
      if (required) fail(at_, "'.' and a dtype");
      return TN_F32;
    }
    const size_t begin = ++at_;
    const std::string_view name = word();
    for (int32_t dtype = 1; dtype < 64; ++dtype) {
      if (name == dtype_name(dtype)) return dtype;
    }
    fail(begin, "a dtype");
  }
  /// Operands and constants are kept once.
  int32_t leaf(const TnExprInstr& instr) {
    for (size_t n = 0; n < instrs_.size(); ++n) {
      if (std::memcmp(&instrs_[n], &instr, sizeof instr) == 0) return static_cast<int32_t>(n);
    }
    return add(instr);
  }
  int32_t add(const TnExprInstr& instr) {
    if (instrs_.size() >= kMaxSteps) fail(at_, text("at most ", kMaxSteps, " steps"));
    instrs_.push_back(instr);
    return static_cast<int32_t>(instrs_.size()) - 1;
  }

  /// "t1=term;", if there is one.
  bool definition() {
    const size_t begin = at_;
    uint32_t index = 0;
    if (!numbered(word(), 't', &index) || !next_is('=')) {
      at_ = begin;
      return false;
    }
    if (index != names_.size() + 1) fail(begin, text("the name t", names_.size() + 1));
    ++at_;
    names_.push_back(term(0));
    expect(';');
    return true;
  }

  int32_t term(int depth) {
    if (depth > kMaxDepth) fail(at_, text("at most ", kMaxDepth, " levels of brackets"));
    const size_t begin = at_;
    const std::string_view name = word();
    uint32_t index = 0;
    const bool digits = name.empty() ? next_is('-') : name[0] >= '0' && name[0] <= '9';
    if (digits || name == "inf" || name == "nan") {
      at_ = begin;
      return leaf({TN_EX_CONSTANT, TN_F32, -1, -1, -1, 0, number()});
    }
    if (numbered(name, 't', &index)) {
      if (index < 1 || index > names_.size()) fail(begin, "a name that was given before");
      return names_[index - 1];
    }
    if (numbered(name, 'x', &index)) {
      const int32_t dtype = suffix(false);
      return leaf({TN_EX_INPUT, dtype, -1, -1, -1, index, 0});
    }
    if (name == "constant") {
      const int32_t dtype = suffix(true);
      expect('(');
      const double value = number();
      expect(')');
      return leaf({TN_EX_CONSTANT, dtype, -1, -1, -1, 0, value});
    }
    for (int32_t primitive = TN_EX_ADD; const ExprPrimitive* known = find_primitive(primitive); ++primitive) {
      if (name != known->name) continue;
      TnExprInstr instr = {primitive, suffix(primitive == TN_EX_CAST), -1, -1, -1, 0, 0};
      int32_t* arguments[] = {&instr.a, &instr.b, &instr.c};
      for (int n = 0; n < known->arity; ++n) {
        expect(n == 0 ? '(' : ',');
        *arguments[n] = term(depth + 1);
      }
      expect(')');
      return add(instr);
    }
    fail(begin, "a primitive, an operand (x0), a name or a number");
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<TnExprInstr> instrs_;
  std::vector<int32_t> names_;
};

/// The steps that a text stands for; the last one is the result. Invalid names the column and what was expected there.
inline std::vector<TnExprInstr> parse_expression(std::string_view text) { return ExpressionParser(text).parse(); }

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_EXPRESSION_TEXT_HPP
