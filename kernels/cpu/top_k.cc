#include "kernels/cpu/top_k.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace tenon::cpu {
namespace {

// Candidates of one lane. When they are full, the best k stay.
int64_t capacity(const TopKShape& shape) { return std::min(shape.size, 2 * shape.k + 256); }

// A number whose order as an integer is that of the float: the sign bit tells which half, and negative floats are
// ordered by magnitude. Zeros are one, NaNs are one and the largest.
uint32_t ordered(float value) {
  if (value != value) return UINT32_MAX;
  value += 0.0f;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

void run_lane(const TopKShape& shape, const float* input, float* values, int64_t* indices, uint64_t* best) {
  const int64_t room = capacity(shape);
  const uint32_t flip = shape.largest ? 0 : UINT32_MAX;
  int64_t count = 0;
  uint64_t least = 0;  // what a candidate has to exceed
  for (int64_t i = 0; i < shape.size; ++i) {
    // Of equal values the lower index is the larger number.
    const uint64_t candidate =
        static_cast<uint64_t>(ordered(input[i * shape.inner]) ^ flip) << 32 | (UINT32_MAX - static_cast<uint32_t>(i));
    if (candidate <= least) continue;
    if (count == room) {
      std::nth_element(best, best + shape.k - 1, best + count, std::greater<>());
      count = shape.k;
      least = best[count - 1];
      if (candidate <= least) continue;
    }
    best[count++] = candidate;
  }
  if (count > shape.k) std::nth_element(best, best + shape.k - 1, best + count, std::greater<>());
  std::sort(best, best + shape.k, std::greater<>());
  for (int64_t n = 0; n < shape.k; ++n) {
    const int64_t at = UINT32_MAX - static_cast<uint32_t>(best[n]);
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
    run_lane(shape, input + outer * shape.size * shape.inner + inner, values + to, indices + to,
             static_cast<uint64_t*>(workspace) + slot * capacity(shape));
  });
}

}  // namespace tenon::cpu
