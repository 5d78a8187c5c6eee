// pointwise for one instruction set: contiguous runs of unary functions, rows of binary arithmetic.
#include "kernels/cpu/internal/pointwise_isa.h"

#include "kernels/cpu/internal/math.h"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

template <class Function>
TENON_CPU_INLINE void map(int64_t count, const float* x, float* y, const Function& function) {
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store(y + i, function(load(x + i)));
  if (i < count) store_first(y + i, function(load_first(x + i, count - i)), count - i);
}

void unary(UnaryKind kind, float alpha, float beta, int64_t count, const float* x, float* y) {
  const Vec a = broadcast(alpha);
  const Vec b = broadcast(beta);
  const Vec zeros = zero();
  const Vec six = broadcast(6.0f);
  const Vec one = broadcast(1.0f);
  switch (kind) {
    case UnaryKind::kLinear:
      return map(count, x, y, [=](Vec v) { return add(mul(a, v), b); });
    case UnaryKind::kRelu:
      return map(count, x, y, [=](Vec v) { return at_least(zeros, v); });
    case UnaryKind::kRelu6:
      return map(count, x, y, [=](Vec v) { return at_most(six, at_least(zeros, v)); });
    case UnaryKind::kClip:
      return map(count, x, y, [=](Vec v) { return at_most(b, at_least(a, v)); });
    case UnaryKind::kLeakyRelu:
      if (alpha == 0.0f) return unary(UnaryKind::kRelu, alpha, beta, count, x, y);
      return map(count, x, y, [=](Vec v) { return select(less(zeros, v), v, mul(a, v)); });
    case UnaryKind::kLogistic:
      return map(count, x, y, [](Vec v) { return logistic(v); });
    case UnaryKind::kTanh:
      return map(count, x, y, [](Vec v) { return tanh(v); });
    case UnaryKind::kElu:
      return map(count, x, y, [=](Vec v) { return select(less(zeros, v), v, mul(a, expm1(at_most(zeros, v)))); });
    case UnaryKind::kMish:
      return map(count, x, y, [](Vec v) { return mish(v); });
    case UnaryKind::kSwish:
      return map(count, x, y, [](Vec v) { return swish(v); });
    case UnaryKind::kHardSwish:
      return map(count, x, y, [=](Vec v) {
        const Vec gate = at_most(six, at_least(zeros, add(v, broadcast(3.0f))));
        // -inf * 0 would be NaN; below -3 the result is 0 anyway.
        return div(mul(at_least(broadcast(-3.0f), v), gate), six);
      });
    case UnaryKind::kHardSigmoid:
      return map(count, x, y, [=](Vec v) { return at_most(one, at_least(zeros, add(mul(a, v), b))); });
    case UnaryKind::kExp:
      return map(count, x, y, [](Vec v) { return exp(v); });
    case UnaryKind::kLog:
      return map(count, x, y, [](Vec v) { return log(v); });
    case UnaryKind::kLog1p:
      return map(count, x, y, [](Vec v) { return log1p(v); });
    case UnaryKind::kSqrt:
      return map(count, x, y, [](Vec v) { return sqrt(v); });
    case UnaryKind::kAbs:
      return map(count, x, y, [](Vec v) { return absolute(v); });
    case UnaryKind::kNeg:
      return map(count, x, y, [](Vec v) {
        const VecI sign = broadcast_i(static_cast<int32_t>(0x80000000u));
        return from_bits(add_i(bits(v), sign));
      });
    case UnaryKind::kReciprocal:
      return map(count, x, y, [=](Vec v) { return div(one, v); });
    case UnaryKind::kSign:
      return map(count, x, y,
                 [=](Vec v) { return select(less(zeros, v), one, select(less(v, zeros), sub(zeros, one), v)); });
    case UnaryKind::kFloor:
      return map(count, x, y, [](Vec v) { return floor(v); });
    case UnaryKind::kCeil:
      return map(count, x, y, [](Vec v) { return ceil(v); });
    case UnaryKind::kRoundEven:
      return map(count, x, y, [](Vec v) { return round_even(v); });
    case UnaryKind::kSin:
      return map(count, x, y, [](Vec v) { return sin_quarter(v, 0); });
    case UnaryKind::kCos:
      return map(count, x, y, [](Vec v) { return sin_quarter(v, 1); });
    case UnaryKind::kErf:
      return map(count, x, y, [](Vec v) { return erf(v); });
    case UnaryKind::kGelu:
      return map(count, x, y, [](Vec v) { return gelu(v); });
    case UnaryKind::kGeluTanh:
      return map(count, x, y, [](Vec v) { return gelu_tanh(v); });
    case UnaryKind::kSoftplus:
      return map(count, x, y, [](Vec v) { return softplus(v); });
    case UnaryKind::kSoftsign:
      return map(count, x, y, [=](Vec v) {
        const Vec bounded = at_most(broadcast(1e30f), at_least(broadcast(-1e30f), v));
        return div(bounded, add(one, absolute(bounded)));
      });
    case UnaryKind::kSelu:
      return map(count, x, y,
                 [=](Vec v) { return mul(b, select(less(zeros, v), v, mul(a, expm1(at_most(zeros, v))))); });
    case UnaryKind::kCelu:
      return map(count, x, y,
                 [=](Vec v) { return select(less(zeros, v), v, mul(a, expm1(div(at_most(zeros, v), a)))); });
    case UnaryKind::kThresholdedRelu:
      return map(count, x, y, [=](Vec v) { return select(less(a, v), v, zeros); });
    case UnaryKind::kShrink:
      return map(count, x, y, [=](Vec v) {
        const Vec above = select(less(a, v), sub(v, b), zeros);
        return select(less(v, sub(zeros, a)), add(v, b), above);
      });
  }
}

template <class Function>
TENON_CPU_INLINE void combine(int64_t count, const float* a, int64_t a_stride, const float* b, int64_t b_stride,
                              float* y, const Function& function) {
  int64_t i = 0;
  if (a_stride == 1 && b_stride == 1) {
    for (; i + kWidth <= count; i += kWidth) store(y + i, function(load(a + i), load(b + i)));
    if (i < count) store_first(y + i, function(load_first(a + i, count - i), load_first(b + i, count - i)), count - i);
  } else if (a_stride == 1 && b_stride == 0) {
    const Vec bv = broadcast(*b);
    for (; i + kWidth <= count; i += kWidth) store(y + i, function(load(a + i), bv));
    if (i < count) store_first(y + i, function(load_first(a + i, count - i), bv), count - i);
  } else if (a_stride == 0 && b_stride == 1) {
    const Vec av = broadcast(*a);
    for (; i + kWidth <= count; i += kWidth) store(y + i, function(av, load(b + i)));
    if (i < count) store_first(y + i, function(av, load_first(b + i, count - i)), count - i);
  } else {
    for (; i < count; i += kWidth) {
      const int64_t lanes = min_of(kWidth, count - i);
      float av[kWidth] = {};
      float bv[kWidth] = {};
      for (int64_t lane = 0; lane < lanes; ++lane) {
        av[lane] = a[(i + lane) * a_stride];
        bv[lane] = b[(i + lane) * b_stride];
      }
      store_first(y + i, function(load(av), load(bv)), lanes);
    }
  }
}

void binary(BinaryKind kind, int64_t count, const float* a, int64_t a_stride, const float* b, int64_t b_stride,
            float* y) {
  switch (kind) {
    case BinaryKind::kAdd:
      return combine(count, a, a_stride, b, b_stride, y, [](Vec l, Vec r) { return add(l, r); });
    case BinaryKind::kSub:
      return combine(count, a, a_stride, b, b_stride, y, [](Vec l, Vec r) { return sub(l, r); });
    case BinaryKind::kMul:
      return combine(count, a, a_stride, b, b_stride, y, [](Vec l, Vec r) { return mul(l, r); });
    case BinaryKind::kDiv:
      return combine(count, a, a_stride, b, b_stride, y, [](Vec l, Vec r) { return div(l, r); });
    case BinaryKind::kMin:
      return combine(count, a, a_stride, b, b_stride, y, [](Vec l, Vec r) { return min_nan(l, r); });
    case BinaryKind::kMax:
      return combine(count, a, a_stride, b, b_stride, y, [](Vec l, Vec r) { return max_nan(l, r); });
    case BinaryKind::kPRelu:
      return combine(count, a, a_stride, b, b_stride, y,
                     [](Vec l, Vec r) { return select(less(l, zero()), mul(l, r), l); });
  }
}

}  // namespace

const PointwiseTable kPointwiseTable = {unary, binary};

}  // namespace tenon::cpu::TENON_CPU_ISA
