// Pointwise expressions of the ABI (plugin/ext/expression.h) as values, with text form and a plain evaluator.
#pragma once

#include <tenon/plugin/ext/expression.h>

#include <cstdint>
#include <span>
#include <string>
#include <tenon/status.hpp>
#include <vector>

namespace tenon {

/// An owned TnExpr. Empty: the identity.
class Expression {
 public:
  Expression() = default;
  explicit Expression(std::vector<TnExprInstr> instrs) : instrs_(std::move(instrs)) {}
  bool empty() const { return instrs_.empty(); }
  const std::vector<TnExprInstr>& instrs() const { return instrs_; }
  /// View for the ABI; valid as long as this object is neither changed nor destroyed.
  TnExpr abi() const;
  /// Canonical text, such as "max(x0,mul(x0,0.1))": part of keys and plans. A step that several others use is named
  /// once: "t1=exp(x0);div(t1,add(t1,1))"; a compute dtype other than f32 follows the primitive: "add.f16(x0,x1)".
  /// Steps that do not reach the result are left out.
  std::string text() const;
  /// Arguments refer to earlier instructions, primitives are known, operands are below num_operands.
  Status verify(std::uint32_t num_operands) const;
  /// `outer` applied to this: operand 0 of outer becomes this result. REQUIRES: both verify.
  Expression then(const Expression& outer) const;
  bool operator==(const Expression& other) const { return text() == other.text(); }

 private:
  std::vector<TnExprInstr> instrs_;
};

/// Arguments that a primitive takes (0 to 3), -1 for an unknown one.
int primitive_arity(std::int32_t primitive);
/// "add", "round_even"...; "primitive77" for an unknown one.
std::string primitive_name(std::int32_t primitive);

/// y[i] = expression(operands[0][i], operands[1][i], ...) for i in [0, count), in f32, block by block; y may be an
/// operand. Logic and comparisons give 0 or 1 and take any value but 0 for true; min and max pass NaN on; mod has the
/// sign of its first argument (C's fmod); casts truncate and saturate to integers, and round to f16 and bf16.
/// REQUIRES: verify(operands.size()) is ok.
void evaluate_f32(const Expression& expression, std::span<const float* const> operands, float* y, std::int64_t count);

}  // namespace tenon
