// expression for one instruction set: plain loops, which the compiler vectorises.
#include "kernels/cpu/internal/expression_isa.h"

#include "kernels/cpu/internal/combine.h"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

void compare(ExprKind kind, int64_t count, const float* a, int64_t a_stride, const float* b, int64_t b_stride,
             float* y) {
  const auto run = [&](const auto& holds) {
    combine(count, a, a_stride, b, b_stride, y, [&](float p, float q) { return holds(p, q) ? 1.0f : 0.0f; });
  };
  switch (kind) {
    case ExprKind::kAnd:
      return run([](float p, float q) { return (p != 0.0f) & (q != 0.0f); });
    case ExprKind::kOr:
      return run([](float p, float q) { return (p != 0.0f) | (q != 0.0f); });
    case ExprKind::kXor:
      return run([](float p, float q) { return (p != 0.0f) != (q != 0.0f); });
    case ExprKind::kLess:
      return run([](float p, float q) { return p < q; });
    case ExprKind::kLessEqual:
      return run([](float p, float q) { return p <= q; });
    default:
      return run([](float p, float q) { return p == q; });
  }
}

void select(int64_t count, const float* condition, const float* a, int64_t a_stride, const float* b, int64_t b_stride,
            float* y) {
  if (a_stride == 1 && b_stride == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] = condition[i] != 0.0f ? a[i] : b[i];
  } else if (a_stride == 1) {
    const float second = *b;
    for (int64_t i = 0; i < count; ++i) y[i] = condition[i] != 0.0f ? a[i] : second;
  } else if (b_stride == 1) {
    const float first = *a;
    for (int64_t i = 0; i < count; ++i) y[i] = condition[i] != 0.0f ? first : b[i];
  } else {
    const float first = *a;
    const float second = *b;
    for (int64_t i = 0; i < count; ++i) y[i] = condition[i] != 0.0f ? first : second;
  }
}

void integer(float low, float high, int64_t count, const float* x, float* y) {
  for (int64_t i = 0; i < count; ++i) {
    const float above = x[i] < low ? low : x[i];
    const float bounded = above > high ? high : above;
    // "+ 0" turns the -0 of a truncated -0.3 into the integer's 0.
    y[i] = x[i] != x[i] ? 0.0f : __builtin_truncf(bounded) + 0.0f;
  }
}

void expand(const ExprShape& flat, int k, int64_t row, int64_t rows, const float* x, float* y) {
  const int inner = flat.rank - 1;
  const int64_t columns = flat.dims[inner];
  const int64_t* strides = flat.strides[k];
  int64_t index[kBroadcastMaxRank] = {};
  for (int i = inner - 1; i >= 0; --i) {
    index[i] = row % flat.dims[i];
    row /= flat.dims[i];
    x += index[i] * strides[i];
  }
  for (; rows > 0; --rows, y += columns) {
    if (strides[inner] == 0) {
      for (int64_t i = 0; i < columns; ++i) y[i] = *x;
    } else {
      for (int64_t i = 0; i < columns; ++i) y[i] = x[i];
    }
    for (int i = inner - 1; i >= 0; --i) {
      x += strides[i];
      if (++index[i] < flat.dims[i]) break;
      x -= flat.dims[i] * strides[i];
      index[i] = 0;
    }
  }
}

}  // namespace

const ExpressionTable kExpressionTable = {compare, select, integer, expand};

}  // namespace tenon::cpu::TENON_CPU_ISA
