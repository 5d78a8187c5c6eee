// softmax for one instruction set.
#include "kernels/cpu/internal/softmax_isa.h"

#include "kernels/cpu/internal/math.h"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

TENON_CPU_INLINE float first_lane(Vec v) {
  float lanes[kWidth];
  store(lanes, v);
  return lanes[0];
}

// All lanes as one number, in each of them.
template <class Combine>
TENON_CPU_INLINE Vec fold_lanes(Vec v, const Combine& combine) {
  for (int lanes = kWidth; lanes > 1; lanes /= 2) {
    Vec even, odd;
    deinterleave(v, v, &even, &odd);
    v = combine(even, odd);
  }
  return v;
}

// The maximum of value(i, n), n numbers from i on, in each lane. NaN may be passed over.
template <class Value>
TENON_CPU_INLINE Vec maximum(int64_t count, const Value& value) {
  Vec most[2] = {broadcast(-__builtin_inff()), broadcast(-__builtin_inff())};
  int64_t i = 0;
  for (; i + 2 * kWidth <= count; i += 2 * kWidth) {
    most[0] = max_second(most[0], value(i, kWidth));
    most[1] = max_second(most[1], value(i + kWidth, kWidth));
  }
  for (; i + kWidth <= count; i += kWidth) most[0] = max_second(most[0], value(i, kWidth));
  if (i < count) {
    alignas(64) float lanes[kWidth];
    store(lanes, value(i, count - i));
    for (int64_t lane = count - i; lane < kWidth; ++lane) lanes[lane] = -__builtin_inff();
    most[1] = max_second(most[1], load(lanes));
  }
  return fold_lanes(max_second(most[0], most[1]), [](Vec x, Vec y) { return max_second(x, y); });
}

// The sum of exp(x - most) in each lane; the terms go to y unless it is null.
TENON_CPU_INLINE Vec exponentials(int64_t count, const float* x, Vec most, float* y) {
  Vec sums[2] = {zero(), zero()};
  const auto term = [&](int64_t i) {
    const Vec e = exp(sub(load(x + i), most));
    if (y != nullptr) store(y + i, e);
    return e;
  };
  int64_t i = 0;
  for (; i + 2 * kWidth <= count; i += 2 * kWidth) {
    sums[0] = add(sums[0], term(i));
    sums[1] = add(sums[1], term(i + kWidth));
  }
  for (; i + kWidth <= count; i += kWidth) sums[0] = add(sums[0], term(i));
  if (i < count) {
    const Vec e = exp(sub(load_first(x + i, count - i), most));
    if (y != nullptr) store_first(y + i, e, count - i);
    alignas(64) float lanes[kWidth];
    store(lanes, e);
    for (int64_t lane = count - i; lane < kWidth; ++lane) lanes[lane] = 0.0f;
    sums[1] = add(sums[1], load(lanes));
  }
  return fold_lanes(add(sums[0], sums[1]), [](Vec a, Vec b) { return add(a, b); });
}

TENON_CPU_INLINE void multiply(int64_t count, Vec factor, float* x) {
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store(x + i, mul(load(x + i), factor));
  if (i < count) store_first(x + i, mul(load_first(x + i, count - i), factor), count - i);
}

void rows(SoftmaxKind kind, int64_t count, int64_t axis, const float* input, float* output) {
  const bool keep = kind == SoftmaxKind::kSoftmax;
  for (int64_t row = 0; row < count; ++row, input += axis, output += axis) {
    const Vec most = maximum(axis, [&](int64_t i, int64_t n) { return load_first(input + i, n); });
    const Vec sum = exponentials(axis, input, most, keep ? output : nullptr);
    if (keep) {
      multiply(axis, div(broadcast(1.0f), sum), output);
      continue;
    }
    const Vec shift = log(sum);
    for (int64_t i = 0; i < axis; i += kWidth) {
      store_first(output + i, sub(sub(load_first(input + i, axis - i), most), shift), axis - i);
    }
  }
}

void scores(int64_t count, float scale, const float* bias, float* x) {
  const Vec factor = broadcast(scale), lowest = broadcast(-__builtin_inff()), least = broadcast(-__FLT_MAX__);
  const Vec most = maximum(count, [&](int64_t i, int64_t n) {
    Vec v = mul(factor, load_first(x + i, n));
    if (bias != nullptr) {
      const Vec b = load_first(bias + i, n);
      v = select(less(b, least), lowest, add(v, b));
    }
    store_first(x + i, v, n);
    return v;
  });
  if (first_lane(most) == -__builtin_inff()) {
    bool none = true;
    for (int64_t i = 0; none && i < count; ++i) none = x[i] == -__builtin_inff();  // NaN is something
    for (int64_t i = 0; none && i < count; ++i) x[i] = 0.0f;
    if (none) return;
  }
  multiply(count, div(broadcast(1.0f), exponentials(count, x, most, x)), x);
}

// kVecs vectors of columns at a time, so that a cache line is used whole.
template <int kVecs>
TENON_CPU_INLINE void column_block(SoftmaxKind kind, int64_t axis, int64_t inner, int64_t lanes, const float* input,
                                   float* output) {
  Vec most[kVecs];
  Vec sum[kVecs];
  for (int v = 0; v < kVecs; ++v) {
    most[v] = broadcast(-__builtin_inff());
    sum[v] = zero();
  }
  for (int64_t i = 0; i < axis; ++i) {
    for (int v = 0; v < kVecs; ++v) {
      most[v] = max_second(most[v], load_first(input + i * inner + v * kWidth, lanes - v * kWidth));
    }
  }
  const bool keep = kind == SoftmaxKind::kSoftmax;
  for (int64_t i = 0; i < axis; ++i) {
    for (int v = 0; v < kVecs; ++v) {
      const int64_t at = i * inner + v * kWidth;
      const Vec e = exp(sub(load_first(input + at, lanes - v * kWidth), most[v]));
      if (keep) store_first(output + at, e, lanes - v * kWidth);
      sum[v] = add(sum[v], e);
    }
  }
  for (int v = 0; v < kVecs; ++v) sum[v] = keep ? div(broadcast(1.0f), sum[v]) : log(sum[v]);
  for (int64_t i = 0; i < axis; ++i) {
    for (int v = 0; v < kVecs; ++v) {
      const int64_t at = i * inner + v * kWidth;
      const int64_t valid = lanes - v * kWidth;
      const Vec y =
          keep ? mul(load_first(output + at, valid), sum[v]) : sub(sub(load_first(input + at, valid), most[v]), sum[v]);
      store_first(output + at, y, valid);
    }
  }
}

void columns(SoftmaxKind kind, int64_t axis, int64_t inner, int64_t begin, int64_t end, const float* input,
             float* output) {
  constexpr int kVecs = 4;
  int64_t column = begin;
  for (; column + kVecs * kWidth <= end; column += kVecs * kWidth) {
    column_block<kVecs>(kind, axis, inner, kVecs * kWidth, input + column, output + column);
  }
  for (; column < end; column += kWidth) {
    column_block<1>(kind, axis, inner, min_of(kWidth, end - column), input + column, output + column);
  }
}

}  // namespace

const SoftmaxTable kSoftmaxTable = {rows, columns, scores};

}  // namespace tenon::cpu::TENON_CPU_ISA
