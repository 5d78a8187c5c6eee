// Pointwise expressions of the ABI (plugin/ext/expression.h) as values, with text form and a plain evaluator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/plugin/ext/expression.h>
#include <tenon/status.hpp>

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
  /// Canonical text, such as "max(x0,mul(x0,0.1))": part of keys and plans.
  std::string text() const;
  /// Arguments refer to earlier instructions, primitives are known, operands are below num_operands.
  Status verify(std::uint32_t num_operands) const;
  /// `outer` applied to this: operand 0 of outer becomes this result.
  Expression then(const Expression& outer) const;
  bool operator==(const Expression& other) const { return text() == other.text(); }

 private:
  std::vector<TnExprInstr> instrs_;
};

/// y[i] = expression(operands[0][i], operands[1][i], ...) for i in [0, count), in f32, block by block; y may be an
/// operand. REQUIRES: verify(operands.size()) is ok.
void evaluate_f32(const Expression& expression, const std::vector<const float*>& operands, float* y,
                  std::int64_t count);

}  // namespace tenon
