/// ExprBuilder: emits a pointwise expression. ExprText: an expression that owns its instructions.
#ifndef TENON_SDK_EXPR_BUILDER_HPP
#define TENON_SDK_EXPR_BUILDER_HPP

#include <cstdint>
#include <vector>

#include "../plugin/ext/expression.h"
#include "error.hpp"

namespace tenon {
inline namespace sdk {

/// How many arguments a primitive takes, 0 to 3; -1 for one that this header does not know.
inline int expr_arity(int32_t primitive) {
  switch (primitive) {
    case TN_EX_INPUT:
    case TN_EX_CONSTANT:
      return 0;
    case TN_EX_NEG:
    case TN_EX_ABS:
    case TN_EX_EXP:
    case TN_EX_LOG:
    case TN_EX_TANH:
    case TN_EX_ERF:
    case TN_EX_SQRT:
    case TN_EX_RSQRT:
    case TN_EX_SIN:
    case TN_EX_COS:
    case TN_EX_FLOOR:
    case TN_EX_CEIL:
    case TN_EX_ROUND_EVEN:
    case TN_EX_SIGN:
    case TN_EX_NOT:
    case TN_EX_CAST:
      return 1;
    case TN_EX_SELECT:
      return 3;
    default:
      return primitive >= TN_EX_ADD && primitive <= TN_EX_EQUAL ? 2 : -1;
  }
}

/// Values are numbers of instructions; each call appends one and returns its number. The last one is the result.
class ExprBuilder {
 public:
  /// Computes in the first input's dtype; 16-bit floats are computed in f32.
  ExprBuilder(TnExprSink* sink, int num_inputs, const int32_t* dtypes)
      : sink_(sink),
        num_inputs_(num_inputs),
        dtypes_(dtypes),
        dtype_(num_inputs > 0 && dtypes[0] != TN_F16 && dtypes[0] != TN_BF16 ? dtypes[0] : TN_F32) {}
  int num_inputs() const { return num_inputs_; }
  /// False for an optional input that is not there.
  bool has_input(int n) const { return n < num_inputs_ && dtypes_[n] != TN_DTYPE_NONE; }
  int32_t dtype() const { return dtype_; }

  int32_t input(uint32_t operand = 0) { return emit({TN_EX_INPUT, dtype_, -1, -1, -1, operand, 0.0}); }
  int32_t constant(double value) { return emit({TN_EX_CONSTANT, dtype_, -1, -1, -1, 0, value}); }
  int32_t unary(int32_t primitive, int32_t a) { return emit({primitive, dtype_, a, -1, -1, 0, 0.0}); }
  int32_t binary(int32_t primitive, int32_t a, int32_t b) { return emit({primitive, dtype_, a, b, -1, 0, 0.0}); }
  int32_t add(int32_t a, int32_t b) { return binary(TN_EX_ADD, a, b); }
  int32_t sub(int32_t a, int32_t b) { return binary(TN_EX_SUB, a, b); }
  int32_t mul(int32_t a, int32_t b) { return binary(TN_EX_MUL, a, b); }
  int32_t div(int32_t a, int32_t b) { return binary(TN_EX_DIV, a, b); }
  int32_t min(int32_t a, int32_t b) { return binary(TN_EX_MIN, a, b); }
  int32_t max(int32_t a, int32_t b) { return binary(TN_EX_MAX, a, b); }
  int32_t less(int32_t a, int32_t b) { return binary(TN_EX_LESS, a, b); }
  int32_t neg(int32_t a) { return unary(TN_EX_NEG, a); }
  int32_t exp(int32_t a) { return unary(TN_EX_EXP, a); }
  int32_t log(int32_t a) { return unary(TN_EX_LOG, a); }
  int32_t tanh(int32_t a) { return unary(TN_EX_TANH, a); }
  int32_t select(int32_t condition, int32_t a, int32_t b) {
    return emit({TN_EX_SELECT, dtype_, condition, a, b, 0, 0.0});
  }
  int32_t emit(const TnExprInstr& instr) {
    const int32_t index = sink_->emit(sink_, &instr);
    if (index < 0) throw Failure(TN_INTERNAL, text("malformed instruction, primitive ", instr.primitive));
    return index;
  }

 private:
  TnExprSink* sink_;
  int num_inputs_;
  const int32_t* dtypes_;
  int32_t dtype_;
};

/// Runs `describe(builder)` and keeps the f32 instructions.
class ExprText {
 public:
  template <class Describe>
  explicit ExprText(Describe&& describe) {
    const int32_t dtype = TN_F32;
    TnExprSink sink = {TN_HEADER(TnExprSink), this, [](TnExprSink* self, const TnExprInstr* instr) {
                         auto& instrs = static_cast<ExprText*>(self->context)->instrs_;
                         instrs.push_back(*instr);
                         return static_cast<int32_t>(instrs.size()) - 1;
                       }};
    ExprBuilder builder(&sink, 1, &dtype);
    describe(builder);
  }
  /// Valid as long as this.
  TnExpr expr() const { return {TN_HEADER(TnExpr), static_cast<uint32_t>(instrs_.size()), instrs_.data()}; }

 private:
  std::vector<TnExprInstr> instrs_;
};

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_EXPR_BUILDER_HPP
