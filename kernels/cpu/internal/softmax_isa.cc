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

TENON_CPU_INLINE float row_max(int64_t axis, const float* x) {
  const Vec lowest = broadcast(-__builtin_inff());
  Vec most = lowest;
  int64_t i = 0;
  for (; i + kWidth <= axis; i += kWidth) most = max_second(most, load(x + i));
  float lanes[kWidth];
  store(lanes, most);
  float result = lanes[0];
  for (int lane = 1; lane < kWidth; ++lane) result = lanes[lane] > result ? lanes[lane] : result;
  for (; i < axis; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

void rows(SoftmaxKind kind, int64_t count, int64_t axis, const float* input, float* output) {
  for (int64_t row = 0; row < count; ++row, input += axis, output += axis) {
    const Vec most = broadcast(row_max(axis, input));
    Vec sums = zero();
    float tail = 0.0f;
    int64_t i = 0;
    const bool keep = kind == SoftmaxKind::kSoftmax;
    for (; i + kWidth <= axis; i += kWidth) {
      const Vec e = exp(sub(load(input + i), most));
      if (keep) store(output + i, e);
      sums = add(sums, e);
    }
    if (i < axis) {
      const Vec e = exp(sub(load_first(input + i, axis - i), most));
      float lanes[kWidth];
      store(lanes, e);
      if (keep) store_first(output + i, e, axis - i);
      for (int64_t lane = 0; lane < axis - i; ++lane) tail += lanes[lane];
    }
    float lanes[kWidth];
    store(lanes, sums);
    float sum = tail;
    for (int lane = 0; lane < kWidth; ++lane) sum += lanes[lane];
    if (keep) {
      const Vec scale = broadcast(1.0f / sum);
      for (i = 0; i < axis; i += kWidth) {
        store_first(output + i, mul(load_first(output + i, axis - i), scale), axis - i);
      }
    } else {
      const Vec shift = broadcast(first_lane(log(broadcast(sum))));
      for (i = 0; i < axis; i += kWidth) {
        store_first(output + i, sub(sub(load_first(input + i, axis - i), most), shift), axis - i);
      }
    }
  }
}

void scores(int64_t count, float scale, const float* bias, float* x) {
  const Vec factor = broadcast(scale), lowest = broadcast(-__builtin_inff()), least = broadcast(-__FLT_MAX__);
  for (int64_t i = 0; i < count; i += kWidth) {
    Vec v = mul(factor, load_first(x + i, count - i));
    if (bias != nullptr) {
      const Vec b = load_first(bias + i, count - i);
      v = select(less(b, least), lowest, add(v, b));
    }
    store_first(x + i, v, count - i);
  }
  const float most = row_max(count, x);
  bool none = most == -__builtin_inff();
  for (int64_t i = 0; none && i < count; ++i) none = x[i] == most;  // NaN is something
  if (none) {
    for (int64_t i = 0; i < count; ++i) x[i] = 0.0f;
    return;
  }
  rows(SoftmaxKind::kSoftmax, 1, count, x, x);
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
