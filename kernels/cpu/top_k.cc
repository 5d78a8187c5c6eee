#include "kernels/cpu/top_k.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

namespace tenon::cpu {
namespace {

// Candidates of one lane. When they are full, the best k stay.
int64_t capacity(const TopKShape& shape) { return std::min(shape.size, 2 * shape.k + 32); }

// A number whose order as an integer is that of the float: the sign bit tells which half, and negative floats are
// ordered by magnitude. Zeros are one, NaNs are one and the largest.
uint32_t ordered(float value) {
  if (value != value) return UINT32_MAX;
  value += 0.0f;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

int64_t index_of(uint64_t candidate) { return UINT32_MAX - static_cast<uint32_t>(candidate); }

// Whether an element that comes later cannot be better than `least`. Neither holds for NaN.
template <bool largest>
bool cannot_beat(float value, float least) {
  return largest ? value <= least : value >= least;
}

// The first element from `begin` on that may beat `least`; elements of a lane are `step` apart.
template <bool largest>
int64_t next_candidate(const float* input, int64_t step, int64_t begin, int64_t end, float least) {
  constexpr int64_t kBlock = 32;
  for (; step == 1 && begin + kBlock <= end; begin += kBlock) {
    int better = 0;
    for (int64_t i = 0; i < kBlock; ++i) better |= cannot_beat<largest>(input[begin + i], least) ? 0 : 1;
    if (better != 0) break;
  }
  while (begin < end && cannot_beat<largest>(input[begin * step], least)) ++begin;
  return begin;
}

template <bool largest>
void run_lane(const TopKShape& shape, const float* input, float* values, int64_t* indices, uint64_t* best) {
  const int64_t room = capacity(shape);
  int64_t count = 0;
  float least = NAN;  // what a candidate has to beat; NaN: anything may be good enough
  for (int64_t i = 0; i < shape.size; ++i) {
    if (!std::isnan(least)) i = next_candidate<largest>(input, shape.inner, i, shape.size, least);
    if (i == shape.size) break;
    if (count == room) {
      std::nth_element(best, best + shape.k - 1, best + count, std::greater<>());
      count = shape.k;
      least = input[index_of(best[count - 1]) * shape.inner];
      if (cannot_beat<largest>(input[i * shape.inner], least)) continue;
    }
    // Of equal values the lower index is the larger number.
    best[count++] = static_cast<uint64_t>(ordered(input[i * shape.inner]) ^ (largest ? 0 : UINT32_MAX)) << 32 |
                    (UINT32_MAX - static_cast<uint32_t>(i));
  }
  if (count > shape.k) std::nth_element(best, best + shape.k - 1, best + count, std::greater<>());
  std::sort(best, best + shape.k, std::greater<>());
  for (int64_t n = 0; n < shape.k; ++n) {
    const int64_t at = index_of(best[n]);
    values[n * shape.inner] = input[at * shape.inner];
    indices[n * shape.inner] = at;
  }
}

}  // namespace

uint64_t top_k_workspace(const TopKShape& shape, int threads) {
  return static_cast<uint64_t>(std::max(threads, 1)) * static_cast<uint64_t>(capacity(shape)) * sizeof(uint64_t);
}

void top_k(const TopKShape& shape, const float* input, float* values, int64_t* indices, void* workspace,
           const Parallel& parallel) noexcept {
  if (shape.k == 0) return;
  parallel_tasks(parallel, shape.outer * shape.inner, [&](int64_t slot, int64_t lane) {
    const int64_t outer = lane / shape.inner, inner = lane % shape.inner;
    const int64_t to = outer * shape.k * shape.inner + inner;
    const auto run = shape.largest ? run_lane<true> : run_lane<false>;
    run(shape, input + outer * shape.size * shape.inner + inner, values + to, indices + to,
        static_cast<uint64_t*>(workspace) + slot * capacity(shape));
  });
}

}  // namespace tenon::cpu
