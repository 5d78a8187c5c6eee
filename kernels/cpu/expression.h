// expression: a chain of pointwise functions of several operands in one pass over memory. The steps run one after the
// other over blocks that stay in the first-level cache, so that only operands and result travel further.
// Nothing is allocated or thrown. REQUIRES everywhere: isa <= detect_isa().
#ifndef TENON_KERNELS_CPU_EXPRESSION_H_
#define TENON_KERNELS_CPU_EXPRESSION_H_

#include <cstdint>

#include "kernels/cpu/pointwise.h"

namespace tenon::cpu {

constexpr int kExprMaxOperands = 8;
constexpr int kExprMaxSteps = 64;

enum class ExprKind {
  kUnary,   // `unary` with alpha and beta
  kBinary,  // `binary`
  kPow,     // as std::pow
  kMod,     // as std::fmod
  kAnd,     // logic and comparisons give 0 or 1, and take all but 0 for true
  kOr,
  kXor,
  kLess,       // a < b
  kLessEqual,  // a <= b
  kEqual,      // a == b
  kSelect,     // a != 0 ? b : c
  kInteger,    // truncated toward zero, between alpha and beta; NaN gives 0
  kRoundF16,   // to the nearest f16, ties to even
  kRoundBf16,
};

// What a step reads.
struct ExprArg {
  enum class Source { kStep, kOperand, kConstant } source = Source::kConstant;
  int index = 0;  // of an earlier step, or of an operand
  float value = 0;
};

struct ExprStep {
  ExprKind kind = ExprKind::kUnary;
  UnaryKind unary = UnaryKind::kLinear;
  BinaryKind binary = BinaryKind::kAdd;
  float alpha = 0;
  float beta = 0;
  ExprArg args[3];
};

// The last step is the result. finish_expr sets what follows from the steps.
struct Expr {
  int num_operands = 0;
  int num_steps = 0;
  ExprStep steps[kExprMaxSteps];
  int num_slots = 0;  // blocks that hold results of steps at the same time
  int slots[kExprMaxSteps] = {};
};

// Arguments that a step takes: 1 to 3.
int expr_arity(ExprKind kind) noexcept;

// To be called once when all steps are there. REQUIRES: 1 to kExprMaxSteps steps, at most kExprMaxOperands operands,
// steps refer to earlier ones.
void finish_expr(Expr* expr) noexcept;

using ExprShape = Broadcast<kExprMaxOperands>;

// The shape that dense operands broadcast to. Failure: false, as broadcast_shape.
bool expr_shape(int num_operands, const int* ranks, const int64_t* const* dims, ExprShape* shape) noexcept;

// y = expr(operands). y may be the same buffer as operands that are dense and not repeated; other overlaps are not
// allowed.
void evaluate_expr(const Expr& expr, const ExprShape& shape, const float* const* operands, float* y,
                   const Parallel& parallel, Isa isa) noexcept;

// The same with y in bf16, as are the operands k for which bit k of `narrow` is set; each of these has y's dims.
void evaluate_expr_bf16(const Expr& expr, const ExprShape& shape, const void* const* operands, uint32_t narrow,
                        uint16_t* y, const Parallel& parallel, Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_EXPRESSION_H_
