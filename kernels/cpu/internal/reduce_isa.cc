// reduce for one instruction set.
#include "kernels/cpu/internal/reduce_isa.h"

#include "kernels/cpu/internal/math.h"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Sums are kept apart for so many elements (rows) before they join the total, so that rounding errors do not grow with
// the length.
constexpr int64_t kSumBlock = 512;

// What is added up for an element; `shift` is that of log_sum_exp.
enum class Term { kValue, kMagnitude, kSquare, kExp };
enum class Join { kAdd, kMultiply, kMax, kMin };

template <Term kTerm>
TENON_CPU_INLINE Vec term(Vec x, Vec shift) {
  if constexpr (kTerm == Term::kMagnitude) return absolute(x);
  if constexpr (kTerm == Term::kSquare) return mul(x, x);
  if constexpr (kTerm == Term::kExp) return exp(sub(x, shift));
  return x;
}

template <Join kJoin>
TENON_CPU_INLINE Vec join(Vec a, Vec b) {
  if constexpr (kJoin == Join::kMultiply) return mul(a, b);
  if constexpr (kJoin == Join::kMax) return max_nan(a, b);
  if constexpr (kJoin == Join::kMin) return min_nan(a, b);
  return add(a, b);
}

template <Join kJoin>
TENON_CPU_INLINE Vec neutral() {
  if constexpr (kJoin == Join::kMultiply) return broadcast(1.0f);
  if constexpr (kJoin == Join::kMax) return broadcast(-__builtin_inff());
  if constexpr (kJoin == Join::kMin) return broadcast(__builtin_inff());
  return zero();
}

// The terms of the last, incomplete vector of a row of `length` elements, with neutral lanes where there are none.
template <Term kTerm, Join kJoin>
TENON_CPU_INLINE Vec last_terms(const float* row, int64_t begin, int64_t length, Vec shift) {
  const Vec terms = term<kTerm>(load_first(row + begin, length - begin), shift);
  if constexpr (kJoin == Join::kAdd && kTerm != Term::kExp) return terms;
  float lanes[kWidth];
  store(lanes, terms);
  float none[kWidth];
  store(none, neutral<kJoin>());
  for (int64_t lane = length - begin; lane < kWidth; ++lane) lanes[lane] = none[lane];
  return load(lanes);
}

template <Join kJoin>
TENON_CPU_INLINE float join_scalars(float a, float b) {
  if constexpr (kJoin == Join::kMultiply) return a * b;
  if constexpr (kJoin == Join::kMax) return a != a || a > b ? a : b;
  if constexpr (kJoin == Join::kMin) return a != a || a < b ? a : b;
  return a + b;
}

template <Join kJoin>
TENON_CPU_INLINE Vec join_lanes(Vec v) {
  float lanes[kWidth];
  store(lanes, v);
  for (int half = kWidth / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] = join_scalars<kJoin>(lanes[lane], lanes[lane + half]);
  }
  return broadcast(lanes[0]);
}

// All lanes of the result are equal.
template <Term kTerm, Join kJoin>
Vec fold_row(const ReduceWalk& rows, int64_t length, const float* input, Vec shift) {
  constexpr int kChains = 4;
  Vec total = neutral<kJoin>();
  for (int64_t r = 0; r < rows.count; ++r) {
    const float* x = input + walk_offset(rows, r);
    int64_t i = 0;
    while (i + kChains * kWidth <= length) {
      const int64_t end = min_of(length, i + kSumBlock * kChains);
      Vec sums[kChains];
      for (Vec& sum : sums) sum = neutral<kJoin>();
      for (; i + kChains * kWidth <= end; i += kChains * kWidth) {
        for (int c = 0; c < kChains; ++c) sums[c] = join<kJoin>(sums[c], term<kTerm>(load(x + i + c * kWidth), shift));
      }
      for (int c = 1; c < kChains; ++c) sums[0] = join<kJoin>(sums[0], sums[c]);
      total = join<kJoin>(total, sums[0]);
    }
    for (; i + kWidth <= length; i += kWidth) total = join<kJoin>(total, term<kTerm>(load(x + i), shift));
    if (i < length) total = join<kJoin>(total, last_terms<kTerm, kJoin>(x, i, length, shift));
  }
  return join_lanes<kJoin>(total);
}

template <Term kTerm, Join kJoin, int kVecs>
TENON_CPU_INLINE void fold_columns(const ReduceWalk& rows, int64_t valid, const float* input, const Vec* shift,
                                   Vec* total) {
  for (int v = 0; v < kVecs; ++v) total[v] = neutral<kJoin>();
  for (int64_t r = 0; r < rows.count;) {
    const int64_t end = min_of(rows.count, r + kSumBlock);
    Vec sums[kVecs];
    for (Vec& sum : sums) sum = neutral<kJoin>();
    for (; r < end; ++r) {
      const float* x = input + walk_offset(rows, r);
      for (int v = 0; v < kVecs; ++v) {
        sums[v] = join<kJoin>(sums[v], term<kTerm>(load_first(x + v * kWidth, valid - v * kWidth), shift[v]));
      }
    }
    for (int v = 0; v < kVecs; ++v) total[v] = join<kJoin>(total[v], sums[v]);
  }
}

// What makes the result of the joined terms.
TENON_CPU_INLINE Vec finish(ReduceKind kind, Vec total, Vec count, Vec shift) {
  switch (kind) {
    case ReduceKind::kMean:
      return div(total, count);
    case ReduceKind::kL2:
      return sqrt(total);
    case ReduceKind::kLogSum:
      return log(total);
    case ReduceKind::kLogSumExp:
      return add(shift, log(total));
    default:
      return total;
  }
}

// An infinite maximum cannot be subtracted.
TENON_CPU_INLINE Vec shift_of(Vec most) {
  return select(less(absolute(most), broadcast(__builtin_inff())), most, zero());
}

void row(ReduceKind kind, const ReduceWalk& rows, int64_t length, const float* input, float* output) {
  Vec shift = zero();
  Vec total;
  switch (kind) {
    case ReduceKind::kMax:
      total = fold_row<Term::kValue, Join::kMax>(rows, length, input, shift);
      break;
    case ReduceKind::kMin:
      total = fold_row<Term::kValue, Join::kMin>(rows, length, input, shift);
      break;
    case ReduceKind::kProd:
      total = fold_row<Term::kValue, Join::kMultiply>(rows, length, input, shift);
      break;
    case ReduceKind::kL1:
      total = fold_row<Term::kMagnitude, Join::kAdd>(rows, length, input, shift);
      break;
    case ReduceKind::kL2:
    case ReduceKind::kSumSquare:
      total = fold_row<Term::kSquare, Join::kAdd>(rows, length, input, shift);
      break;
    case ReduceKind::kLogSumExp:
      shift = shift_of(fold_row<Term::kValue, Join::kMax>(rows, length, input, shift));
      total = fold_row<Term::kExp, Join::kAdd>(rows, length, input, shift);
      break;
    default:
      total = fold_row<Term::kValue, Join::kAdd>(rows, length, input, shift);
  }
  const Vec count = broadcast(static_cast<float>(rows.count * length));
  store_first(output, finish(kind, total, count, shift), 1);
}

template <int kVecs>
TENON_CPU_INLINE void column_block(ReduceKind kind, const ReduceWalk& rows, int64_t valid, const float* input,
                                   float* output) {
  Vec shift[kVecs];
  for (Vec& s : shift) s = zero();
  Vec total[kVecs];
  switch (kind) {
    case ReduceKind::kMax:
      fold_columns<Term::kValue, Join::kMax, kVecs>(rows, valid, input, shift, total);
      break;
    case ReduceKind::kMin:
      fold_columns<Term::kValue, Join::kMin, kVecs>(rows, valid, input, shift, total);
      break;
    case ReduceKind::kProd:
      fold_columns<Term::kValue, Join::kMultiply, kVecs>(rows, valid, input, shift, total);
      break;
    case ReduceKind::kL1:
      fold_columns<Term::kMagnitude, Join::kAdd, kVecs>(rows, valid, input, shift, total);
      break;
    case ReduceKind::kL2:
    case ReduceKind::kSumSquare:
      fold_columns<Term::kSquare, Join::kAdd, kVecs>(rows, valid, input, shift, total);
      break;
    case ReduceKind::kLogSumExp:
      fold_columns<Term::kValue, Join::kMax, kVecs>(rows, valid, input, shift, total);
      for (int v = 0; v < kVecs; ++v) shift[v] = shift_of(total[v]);
      fold_columns<Term::kExp, Join::kAdd, kVecs>(rows, valid, input, shift, total);
      break;
    default:
      fold_columns<Term::kValue, Join::kAdd, kVecs>(rows, valid, input, shift, total);
  }
  const Vec count = broadcast(static_cast<float>(rows.count));
  for (int v = 0; v < kVecs; ++v) {
    store_first(output + v * kWidth, finish(kind, total[v], count, shift[v]), valid - v * kWidth);
  }
}

void columns(ReduceKind kind, const ReduceWalk& rows, int64_t columns, const float* input, float* output) {
  constexpr int kVecs = 4;
  int64_t column = 0;
  for (; column + kVecs * kWidth <= columns; column += kVecs * kWidth) {
    column_block<kVecs>(kind, rows, kVecs * kWidth, input + column, output + column);
  }
  for (; column < columns; column += kWidth) {
    column_block<1>(kind, rows, min_of(kWidth, columns - column), input + column, output + column);
  }
}

// --- arg_extreme: positions are integers in the lanes of a float vector ---

struct Leader {
  Vec value;
  Vec position;
};

// The first NaN, else the first largest.
TENON_CPU_INLINE void challenge(Leader* leader, Vec x, Vec position) {
  const Vec larger = select(less(leader->value, x), position, leader->position);
  leader->position = select(is_nan(leader->value), leader->position, select(is_nan(x), position, larger));
  leader->value = max_nan(leader->value, x);
}

TENON_CPU_INLINE bool leads(float a, int32_t at_a, float b, int32_t at_b) {
  const bool nan_a = a != a, nan_b = b != b;
  if (nan_a || nan_b) return nan_a && (!nan_b || at_a < at_b);
  return a > b || (a == b && at_a < at_b);
}

TENON_CPU_INLINE Vec signed_by(Vec x, bool smallest) { return smallest ? sub(zero(), x) : x; }

void arg_rows(bool smallest, int64_t rows, int64_t axis, const float* input, int64_t* output) {
  int32_t lanes[kWidth];
  for (int lane = 0; lane < kWidth; ++lane) lanes[lane] = lane;
  const Vec first = load(reinterpret_cast<const float*>(lanes));
  for (int64_t row = 0; row < rows; ++row, input += axis) {
    Leader leader = {signed_by(load_first(input, axis), smallest), first};
    int64_t i = kWidth;
    for (; i + kWidth <= axis; i += kWidth) {
      const Vec position = from_bits(add_i(bits(first), broadcast_i(static_cast<int32_t>(i))));
      challenge(&leader, signed_by(load(input + i), smallest), position);
    }
    float values[kWidth];
    int32_t positions[kWidth];
    store(values, leader.value);
    store(reinterpret_cast<float*>(positions), leader.position);
    float best = values[0];
    int32_t at = positions[0];
    for (int64_t lane = 1; lane < min_of(kWidth, axis); ++lane) {
      if (!leads(values[lane], positions[lane], best, at)) continue;
      best = values[lane];
      at = positions[lane];
    }
    for (; i < axis; ++i) {
      const float x = smallest ? -input[i] : input[i];
      if (!leads(x, static_cast<int32_t>(i), best, at)) continue;
      best = x;
      at = static_cast<int32_t>(i);
    }
    output[row] = at;
  }
}

void arg_columns(bool smallest, int64_t axis, int64_t inner, int64_t columns, const float* input, int64_t* output) {
  for (int64_t column = 0; column < columns; column += kWidth) {
    const int64_t valid = min_of(kWidth, columns - column);
    Leader leader = {signed_by(load_first(input + column, valid), smallest), zero()};
    for (int64_t i = 1; i < axis; ++i) {
      challenge(&leader, signed_by(load_first(input + i * inner + column, valid), smallest),
                from_bits(broadcast_i(static_cast<int32_t>(i))));
    }
    int32_t positions[kWidth];
    store(reinterpret_cast<float*>(positions), leader.position);
    for (int64_t lane = 0; lane < valid; ++lane) output[column + lane] = positions[lane];
  }
}

}  // namespace

const ReduceTable kReduceTable = {row, columns, arg_rows, arg_columns};

}  // namespace tenon::cpu::TENON_CPU_ISA
