// normalize for one instruction set.
#include "kernels/cpu/internal/normalize_isa.h"

#include "kernels/cpu/internal/math.h"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int kChains = 4;
// Elements whose sum is kept apart before it joins the total, so that rounding errors do not grow with the length.
constexpr int64_t kSumBlock = 8 * 1024;

enum class Term { kValue, kMagnitude, kSquare };

template <Term kTerm>
TENON_CPU_INLINE Vec add_term(Vec sum, Vec v) {
  if constexpr (kTerm == Term::kSquare) return fma(v, v, sum);
  return add(sum, kTerm == Term::kMagnitude ? absolute(v) : v);
}

// The mean of x - mean, of its magnitudes, or of its squares.
template <Term kTerm>
float mean_of(int64_t length, const float* x, float mean) {
  const Vec shift = broadcast(mean);
  double total = 0;
  for (int64_t begin = 0; begin < length; begin += kSumBlock) {
    const int64_t end = min_of(length, begin + kSumBlock);
    Vec sums[kChains];
    for (Vec& sum : sums) sum = zero();
    int64_t i = begin;
    for (; i + kChains * kWidth <= end; i += kChains * kWidth) {
      for (int c = 0; c < kChains; ++c) {
        sums[c] = add_term<kTerm>(sums[c], sub(load(x + i + c * kWidth), shift));
      }
    }
    for (; i + kWidth <= end; i += kWidth) {
      sums[0] = add_term<kTerm>(sums[0], sub(load(x + i), shift));
    }
    float lanes[kWidth];
    store(lanes, add(add(sums[0], sums[1]), add(sums[2], sums[3])));
    float sum = 0;
    for (int lane = 0; lane < kWidth; ++lane) sum += lanes[lane];
    for (; i < end; ++i) {
      const float v = x[i] - mean;
      sum += kTerm == Term::kSquare ? v * v : kTerm == Term::kMagnitude ? __builtin_fabsf(v) : v;
    }
    total += static_cast<double>(sum);
  }
  return static_cast<float>(total / static_cast<double>(length));
}

Moments moments(NormKind kind, int64_t length, float epsilon, const float* input) {
  const float mean = kind == NormKind::kRms ? 0.0f : mean_of<Term::kValue>(length, input, 0.0f);
  const float variance = mean_of<Term::kSquare>(length, input, mean);
  return {mean, 1.0f / __builtin_sqrtf(variance + epsilon)};
}

void row(const Moments& moments, int64_t length, const float* input, const float* scale, const float* bias,
         float* output) {
  const Vec mean = broadcast(moments.mean);
  const Vec inverse = broadcast(moments.inverse);
  for (int64_t i = 0; i < length; i += kWidth) {
    const int64_t valid = length - i;
    Vec y = mul(sub(load_first(input + i, valid), mean), inverse);
    if (scale != nullptr) y = mul(y, load_first(scale + i, valid));
    if (bias != nullptr) y = add(y, load_first(bias + i, valid));
    store_first(output + i, y, valid);
  }
}

void channel(const Moments& moments, int64_t length, const float* input, float scale, float bias, float* output) {
  const Vec mean = broadcast(moments.mean);
  const Vec factor = broadcast(moments.inverse * scale);
  const Vec offset = broadcast(bias);
  for (int64_t i = 0; i < length; i += kWidth) {
    const int64_t valid = length - i;
    store_first(output + i, fma(sub(load_first(input + i, valid), mean), factor, offset), valid);
  }
}

void length_row(int p, int64_t axis, const float* input, float* output) {
  const float mean = p == 2 ? mean_of<Term::kSquare>(axis, input, 0.0f) : mean_of<Term::kMagnitude>(axis, input, 0.0f);
  const float sum = mean * static_cast<float>(axis);
  const float norm = p == 2 ? __builtin_sqrtf(sum) : sum;
  const Vec factor = broadcast(norm == 0.0f ? 0.0f : 1.0f / norm);
  for (int64_t i = 0; i < axis; i += kWidth) {
    store_first(output + i, mul(load_first(input + i, axis - i), factor), axis - i);
  }
}

void length_columns(int p, int64_t axis, int64_t inner, int64_t columns, const float* input, float* output) {
  for (int64_t column = 0; column < columns; column += kWidth) {
    const int64_t valid = columns - column;
    Vec sum = zero();
    for (int64_t i = 0; i < axis; ++i) {
      const Vec x = load_first(input + i * inner + column, valid);
      sum = p == 2 ? add_term<Term::kSquare>(sum, x) : add_term<Term::kMagnitude>(sum, x);
    }
    const Vec norm = p == 2 ? sqrt(sum) : sum;
    // NaN stays; 0 gives 0.
    const Vec factor = select(less(zero(), norm), div(broadcast(1.0f), norm), norm);
    for (int64_t i = 0; i < axis; ++i) {
      const int64_t at = i * inner + column;
      store_first(output + at, mul(load_first(input + at, valid), factor), valid);
    }
  }
}

// x / (bias + factor * sum)^beta. exp(log) costs more than two square roots and a division, and is less exact.
struct LrnPower {
  Vec factor, bias;
  float beta;

  TENON_CPU_INLINE explicit LrnPower(const LrnParams& params)
      : factor(broadcast(params.alpha / static_cast<float>(params.size))),
        bias(broadcast(params.bias)),
        beta(params.beta) {}
  TENON_CPU_INLINE Vec divide(Vec x, Vec sum) const {
    const Vec divisor = fma(factor, sum, bias);
    if (beta == 0.75f) {
      const Vec root = sqrt(divisor);
      return div(x, mul(root, sqrt(root)));
    }
    if (beta == 0.5f) return div(x, sqrt(divisor));
    if (beta == 1.0f) return div(x, divisor);
    return mul(x, exp(mul(broadcast(-beta), log(divisor))));
  }
};

void lrn(const LrnParams& params, int64_t channels, int64_t inner, int64_t columns, const float* input, float* output) {
  const int64_t before = min_of((params.size - 1) / 2, channels);
  const int64_t after = min_of(params.size / 2, channels);
  const LrnPower power(params);
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t first = max_of(0, c - before);
    const int64_t last = min_of(channels - 1, c + after);
    for (int64_t column = 0; column < columns; column += kWidth) {
      const int64_t valid = columns - column;
      Vec sum = zero();
      for (int64_t i = first; i <= last; ++i) {
        const Vec x = load_first(input + i * inner + column, valid);
        sum = fma(x, x, sum);
      }
      const Vec x = load_first(input + c * inner + column, valid);
      store_first(output + c * inner + column, power.divide(x, sum), valid);
    }
  }
}

template <int kReach>
TENON_CPU_INLINE Vec near_sum(Vec before, Vec square, Vec after) {
  Vec sum = add(shifted<kWidth - 1>(before, square), add(square, shifted<1>(square, after)));
  if constexpr (kReach == 2) {
    sum = add(sum, add(shifted<kWidth - 2>(before, square), shifted<2>(square, after)));
  }
  return sum;
}

// Sums of the kReach channels before and after each one, and itself, by shifting vectors of squares.
template <int kReach>
void lrn_image_near(const LrnPower& power, const LrnImage& image, int64_t begin, int64_t end, const float* input,
                    float* output) {
  const int64_t blocks = ceil_div(image.channels, image.block);
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    Vec before = zero(), square = zero(), x = zero();
    int64_t at = 0, lanes = 0;  // of x; none at first
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t first = (block * image.pixels + pixel) * image.block;
      for (int64_t c = 0; c < image.block; c += kWidth) {
        const int64_t count = min_of(kWidth, image.block - c);
        const Vec next = load_first(input + first + c, count);
        const Vec after = mul(next, next);
        store_first(output + at, power.divide(x, near_sum<kReach>(before, square, after)), lanes);
        before = square, square = after, x = next;
        at = first + c, lanes = count;
      }
    }
    store_first(output + at, power.divide(x, near_sum<kReach>(before, square, zero())), lanes);
  }
}

// Calls function(channel, offset, count) for pieces of [begin, end) of a pixel's channels that are neighbours in
// memory, each at most a vector.
template <class Function>
TENON_CPU_INLINE void for_each_piece(const LrnImage& image, int64_t begin, int64_t end, const Function& function) {
  while (begin < end) {
    const int64_t place = begin % image.block;
    const int64_t stop = min_of(end, begin - place + image.block);
    const int64_t offset = begin / image.block * image.pixels * image.block + place;
    for (int64_t c = begin; c < stop; c += kWidth) function(c, offset + c - begin, min_of(kWidth, stop - c));
    begin = stop;
  }
}

void lrn_image(const LrnParams& params, const LrnImage& image, int64_t begin, int64_t end, const float* input,
               float* output) {
  constexpr int64_t kChunk = 128;  // channels whose squares are kept at a time
  const int64_t before = (params.size - 1) / 2;
  const int64_t stored = round_up(image.channels, image.block);
  const LrnPower power(params);
  // A vector holds neighbours unless blocks are smaller.
  if (image.block == image.channels || image.block >= kWidth) {
    if (params.size == 3) return lrn_image_near<1>(power, image, begin, end, input, output);
    if (params.size == 5) return lrn_image_near<2>(power, image, begin, end, input, output);
  }
  float squares[kChunk + kLrnMaxSize + 2 * kWidth];
  for (int64_t pixel = begin; pixel < end; ++pixel) {
    const float* x = input + pixel * image.block;
    float* y = output + pixel * image.block;
    for (int64_t first = 0; first < stored; first += kChunk) {
      const int64_t last = min_of(first + kChunk, stored);
      // squares[i] is of channel first - before + i, and 0 where there is none.
      const int64_t from = max_of(0, first - before), to = min_of(last + params.size / 2, stored);
      for (int64_t i = 0; i < last - first + params.size + kWidth; i += kWidth) store(squares + i, zero());
      for_each_piece(image, from, to, [&](int64_t c, int64_t offset, int64_t count) {
        const Vec v = load_first(x + offset, count);
        store_first(squares + c - first + before, mul(v, v), count);
      });
      for_each_piece(image, first, last, [&](int64_t c, int64_t offset, int64_t count) {
        Vec sum = zero();
        for (int64_t k = 0; k < params.size; ++k) sum = add(sum, load(squares + c - first + k));
        store_first(y + offset, power.divide(load_first(x + offset, count), sum), count);
      });
    }
  }
}

}  // namespace

const NormalizeTable kNormalizeTable = {moments, row, channel, length_row, length_columns, lrn, lrn_image};

}  // namespace tenon::cpu::TENON_CPU_ISA
