#include "kernels/cpu/expression.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cast.h"
#include "kernels/cpu/internal/expression_isa.h"
#include "kernels/cpu/internal/pointwise_isa.h"

namespace tenon::cpu {
namespace {

// Floats for the results of steps: what half of a first-level cache of 48 KiB holds, operands and result beside it.
constexpr int64_t kScratchFloats = 6144;
constexpr int64_t kMaxBlock = 1024;
// Rows from this length on are blocks of their own; shorter ones are put together.
constexpr int64_t kLongRow = 512;
// In rows below this length operands that are repeated in part are written out: a loop for each row would cost more.
constexpr int64_t kShortRow = 64;
// Elements below which another thread costs more than it gives, whatever the steps.
constexpr int64_t kLeastGrain = 2048;

const ExpressionTable& expression_table(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::kExpressionTable
         : isa == Isa::kAvx2 ? avx2::kExpressionTable
                             : baseline::kExpressionTable;
}

bool has_vector_form(ExprKind kind) { return kind == ExprKind::kUnary || kind == ExprKind::kBinary; }

// An operand of a step at the rows of a block.
struct Operand {
  const float* data;
  int64_t stride;    // along a row: 0 or 1
  int64_t row_step;  // from row to row
};

class Evaluator {
 public:
  Evaluator(const Expr& expr, Isa isa)
      : expr_(expr), pointwise_(pointwise_table(isa)), expression_(expression_table(isa)), isa_(isa) {}

  // Elements of a block when `more` blocks are needed beside those of the steps.
  int64_t block(int more) const {
    const int64_t most = kScratchFloats / std::max(expr_.num_slots + more, 1);
    return std::min(most / 16 * 16, kMaxBlock);
  }

  // `scratch` holds blocks of `block` floats. REQUIRES: rows * columns <= block.
  void run(int64_t rows, int64_t columns, int64_t block, const Operand* operands, float* scratch, float* y) const {
    const int64_t count = rows * columns;
    for (int n = 0; n < expr_.num_steps; ++n) {
      const ExprStep& step = expr_.steps[n];
      Operand args[3] = {};
      bool as_one = true;  // the rows follow each other in all arguments
      for (int k = 0; k < expr_arity(step.kind); ++k) {
        const ExprArg& arg = step.args[k];
        args[k] = arg.source == ExprArg::Source::kConstant ? Operand{&arg.value, 0, 0}
                  : arg.source == ExprArg::Source::kOperand
                      ? operands[arg.index]
                      : Operand{scratch + expr_.slots[arg.index] * block, 1, columns};
        as_one = as_one && args[k].row_step == args[k].stride * columns;
      }
      float* to = n + 1 == expr_.num_steps ? y : scratch + expr_.slots[n] * block;
      if (rows > 1 && !as_one) {
        for (int64_t row = 0; row < rows; ++row, to += columns) {
          pointwise_.binary(step.binary, columns, args[0].data + row * args[0].row_step, args[0].stride,
                            args[1].data + row * args[1].row_step, args[1].stride, to);
        }
      } else if (expr_arity(step.kind) == 1 && args[0].stride == 0) {
        float value;
        run_step(step, 1, args, &value);
        std::fill_n(to, count, value);
      } else {
        run_step(step, count, args, to);
      }
    }
  }

 private:
  void run_step(const ExprStep& step, int64_t count, const Operand* args, float* y) const {
    const auto [a, a_stride, a_step] = args[0];
    const auto [b, b_stride, b_step] = args[1];
    const auto [c, c_stride, c_step] = args[2];
    switch (step.kind) {
      case ExprKind::kUnary:
        return pointwise_unary(step.unary, step.alpha, step.beta, count, a, y, Parallel(), isa_);
      case ExprKind::kBinary:
        return pointwise_.binary(step.binary, count, a, a_stride, b, b_stride, y);
      case ExprKind::kPow: {
        const BroadcastShape shape = {1, {count}, {{a_stride}, {b_stride}}};
        return pointwise_pow(shape, a, b, y, Parallel(), isa_);
      }
      case ExprKind::kMod:
        for (int64_t i = 0; i < count; ++i) y[i] = std::fmod(a[i * a_stride], b[i * b_stride]);
        return;
      case ExprKind::kSelect:
        if (a_stride == 1) return expression_.select(count, a, b, b_stride, c, c_stride, y);
        for (int64_t i = 0; i < count; ++i) y[i] = *a != 0.0f ? b[i * b_stride] : c[i * c_stride];
        return;
      case ExprKind::kInteger:
        return expression_.integer(step.alpha, step.beta, count, a, y);
      case ExprKind::kRoundF16:
        return round_to(ElementType::kF16, count, a, y);
      case ExprKind::kRoundBf16:
        return round_to(ElementType::kBf16, count, a, y);
      default:
        return expression_.compare(step.kind, count, a, a_stride, b, b_stride, y);
    }
  }

  void round_to(ElementType type, int64_t count, const float* x, float* y) const {
    uint16_t rounded[kMaxBlock];
    cast(ElementType::kF32, type, count, x, rounded, Parallel(), isa_);
    cast(type, ElementType::kF32, count, rounded, y, Parallel(), isa_);
  }

  const Expr& expr_;
  const PointwiseTable& pointwise_;
  const ExpressionTable& expression_;
  Isa isa_;
};

// How an operand is read at the rows of a block.
enum class Walk {
  kSingle,      // one element everywhere
  kDense,       // as the output lies
  kSameRow,     // one row, read again
  kRowNumbers,  // an element for each row, gathered
  kExpanded,    // written out
};

// Whether all steps that read operand k go row by row.
bool may_go_by_rows(const Expr& expr, int k) {
  for (int n = 0; n < expr.num_steps; ++n) {
    if (expr.steps[n].kind == ExprKind::kBinary) continue;
    for (const ExprArg& arg : expr.steps[n].args) {
      if (arg.source == ExprArg::Source::kOperand && arg.index == k) return false;
    }
  }
  return true;
}

Walk walk_of(const Expr& expr, const ExprShape& flat, int k) {
  const int inner = flat.rank - 1;
  const int64_t* strides = flat.strides[k];
  bool same_row = true;
  bool dense = true;
  int64_t step = 1;
  for (int i = inner; i >= 0; --i) {
    same_row = same_row && (i == inner || strides[i] == 0);
    dense = dense && strides[i] == step;
    step *= flat.dims[i];
  }
  if (same_row && strides[inner] == 0) return Walk::kSingle;
  if (dense) return Walk::kDense;
  if (flat.dims[inner] < kShortRow || !may_go_by_rows(expr, k)) return Walk::kExpanded;
  return same_row ? Walk::kSameRow : strides[inner] == 0 ? Walk::kRowNumbers : Walk::kExpanded;
}

// The tensors of an evaluation in memory: f32, or bf16 where a bit of `narrow` says so.
struct Tensors {
  const void* const* operands;
  void* y;
  uint32_t narrow;
  bool narrow_y;
  Isa isa;

  bool is_narrow(int k) const { return (narrow >> k & 1) != 0; }
  // Blocks that run() needs for f32 copies.
  int blocks() const { return __builtin_popcount(narrow) + (narrow_y ? 1 : 0); }
  const float* wide(int k) const { return static_cast<const float*>(operands[k]); }
  // f32 of `count` elements of narrow operand k from number `at` on.
  void widen(int k, int64_t at, int64_t count, float* to) const {
    cast(ElementType::kBf16, ElementType::kF32, count, static_cast<const uint16_t*>(operands[k]) + at, to, Parallel(),
         isa);
  }
  // Where the results from number `at` on are to be computed; `block` is for a narrow y.
  float* result(int64_t at, float* block) const { return narrow_y ? block : static_cast<float*>(y) + at; }
  void store(int64_t at, int64_t count, const float* block) const {
    if (!narrow_y) return;
    cast(ElementType::kF32, ElementType::kBf16, count, block, static_cast<uint16_t*>(y) + at, Parallel(), isa);
  }
};

// Several rows to a block.
void evaluate_short_rows(const Expr& expr, const Evaluator& evaluator, const ExpressionTable& table,
                         const ExprShape& flat, int64_t block, int64_t grain, const Tensors& tensors,
                         const Parallel& parallel) {
  Walk walks[kExprMaxOperands];
  for (int k = 0; k < expr.num_operands; ++k) walks[k] = walk_of(expr, flat, k);
  ExprShape numbers = flat;  // an element a row
  numbers.dims[flat.rank - 1] = 1;
  int64_t rows = 1;
  for (int i = 0; i < flat.rank - 1; ++i) rows *= flat.dims[i];
  const int64_t columns = flat.dims[flat.rank - 1];
  const int64_t together = block / columns;
  parallel_ranges(parallel, rows, std::max<int64_t>(grain / columns, 1), [&](int64_t begin, int64_t end) {
    alignas(64) float scratch[kScratchFloats];
    for (int64_t row = begin; row < end; row += together) {
      const int64_t some = std::min(together, end - row);
      Operand blocks[kExprMaxOperands];
      float* free = scratch + expr.num_slots * block;
      for (int k = 0; k < expr.num_operands; ++k, free += block) {
        if (tensors.is_narrow(k)) {
          tensors.widen(k, row * columns, some * columns, free);
          blocks[k] = {free, 1, columns};
          continue;
        }
        const float* const operand = tensors.wide(k);
        switch (walks[k]) {
          case Walk::kSingle:
            blocks[k] = {operand, 0, 0};
            break;
          case Walk::kDense:
            blocks[k] = {operand + row * columns, 1, columns};
            break;
          case Walk::kSameRow:
            blocks[k] = {operand, 1, 0};
            break;
          case Walk::kRowNumbers:
            table.expand(numbers, k, row, some, operand, free);
            blocks[k] = {free, 0, 1};
            break;
          case Walk::kExpanded:
            table.expand(flat, k, row, some, operand, free);
            blocks[k] = {free, 1, columns};
            break;
        }
      }
      float* const to = tensors.result(row * columns, free);
      evaluator.run(some, columns, block, blocks, scratch, to);
      tensors.store(row * columns, some * columns, to);
    }
  });
}

void evaluate(const Expr& expr, const ExprShape& shape, const Tensors& tensors, const Parallel& parallel) {
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] == 0) return;
  }
  const Evaluator evaluator(expr, tensors.isa);
  const ExprShape flat = collapse(shape);
  const int64_t grain = std::max(kPointwiseGrain / expr.num_steps, kLeastGrain);
  const int64_t columns = flat.dims[flat.rank - 1];
  const int64_t short_block = evaluator.block(expr.num_operands + (tensors.narrow_y ? 1 : 0));
  if (flat.rank > 1 && columns < std::min(kLongRow, short_block / 2)) {
    return evaluate_short_rows(expr, evaluator, expression_table(tensors.isa), flat, short_block, grain, tensors,
                               parallel);
  }
  const int64_t block = evaluator.block(tensors.blocks());
  const auto row = [&](int64_t count, const auto& offsets, const auto& strides, int64_t out) {
    alignas(64) float scratch[kScratchFloats];
    for (int64_t begin = 0; begin < count; begin += block) {
      const int64_t some = std::min(block, count - begin);
      Operand blocks[kExprMaxOperands];
      float* free = scratch + expr.num_slots * block;
      for (int k = 0; k < expr.num_operands; ++k) {
        if (tensors.is_narrow(k)) {
          tensors.widen(k, out + begin, some, free);
          blocks[k] = {free, 1, 0};
          free += block;
        } else {
          blocks[k] = {tensors.wide(k) + offsets[k] + begin * strides[k], strides[k], 0};
        }
      }
      float* const to = tensors.result(out + begin, free);
      evaluator.run(1, some, block, blocks, scratch, to);
      tensors.store(out + begin, some, to);
    }
  };
  for_each_row(flat, parallel, row, grain);
}

}  // namespace

int expr_arity(ExprKind kind) noexcept {
  switch (kind) {
    case ExprKind::kUnary:
    case ExprKind::kInteger:
    case ExprKind::kRoundF16:
    case ExprKind::kRoundBf16:
      return 1;
    case ExprKind::kSelect:
      return 3;
    default:
      return 2;
  }
}

void finish_expr(Expr* expr) noexcept {
  int last_use[kExprMaxSteps] = {};
  for (int n = 0; n < expr->num_steps; ++n) {
    for (const ExprArg& arg : expr->steps[n].args) {
      if (arg.source == ExprArg::Source::kStep) last_use[arg.index] = n;
    }
  }
  bool taken[kExprMaxSteps] = {};
  expr->num_slots = 0;
  for (int n = 0; n + 1 < expr->num_steps; ++n) {  // the last one writes the output
    const auto release = [&] {
      for (const ExprArg& arg : expr->steps[n].args) {
        if (arg.source == ExprArg::Source::kStep && last_use[arg.index] == n) taken[expr->slots[arg.index]] = false;
      }
    };
    // In place only where that does not keep the compiler from vectorising the loop.
    const bool in_place = has_vector_form(expr->steps[n].kind);
    if (in_place) release();
    int slot = 0;
    while (taken[slot]) ++slot;
    taken[slot] = true;
    expr->slots[n] = slot;
    expr->num_slots = std::max(expr->num_slots, slot + 1);
    if (!in_place) release();
  }
}

bool expr_shape(int num_operands, const int* ranks, const int64_t* const* dims, ExprShape* shape) noexcept {
  int all_ranks[kExprMaxOperands] = {};
  const int64_t* all_dims[kExprMaxOperands] = {};
  std::copy_n(ranks, num_operands, all_ranks);
  std::copy_n(dims, num_operands, all_dims);
  return broadcast_shape(all_ranks, all_dims, shape);
}

void evaluate_expr(const Expr& expr, const ExprShape& shape, const float* const* operands, float* y,
                   const Parallel& parallel, Isa isa) noexcept {
  const void* data[kExprMaxOperands] = {};
  std::copy_n(operands, expr.num_operands, data);
  evaluate(expr, shape, {data, y, 0, false, isa}, parallel);
}

void evaluate_expr_bf16(const Expr& expr, const ExprShape& shape, const void* const* operands, uint32_t narrow,
                        uint16_t* y, const Parallel& parallel, Isa isa) noexcept {
  evaluate(expr, shape, {operands, y, narrow, true, isa}, parallel);
}

}  // namespace tenon::cpu
