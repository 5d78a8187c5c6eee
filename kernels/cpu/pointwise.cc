#include "kernels/cpu/pointwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/internal/pointwise_isa.h"

namespace tenon::cpu {
namespace {

// x to the power of 0.5 as std::pow defines it: -0 gives 0 and -inf gives inf.
float power_half(float x) {
  const float infinity = std::numeric_limits<float>::infinity();
  return x == -infinity ? infinity : std::sqrt(x) + 0.0f;
}

// Blocks with an element that the vector form does not take go to the standard library.
void sin_cos(const PointwiseTable& table, UnaryKind kind, int64_t count, const float* x, float* y) {
  constexpr int64_t kBlock = 256;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    bool inside = true;
    for (int64_t i = begin; i < begin + size; ++i) inside &= std::fabs(x[i]) <= kSinCosRange;
    if (inside) {
      table.unary(kind, 0.0f, 0.0f, size, x + begin, y + begin);
    } else {
      for (int64_t i = begin; i < begin + size; ++i) y[i] = kind == UnaryKind::kSin ? std::sin(x[i]) : std::cos(x[i]);
    }
  }
}

}  // namespace

const PointwiseTable& pointwise_table(Isa isa) noexcept {
  return isa == Isa::kAvx512 ? avx512::kPointwiseTable
         : isa == Isa::kAvx2 ? avx2::kPointwiseTable
                             : baseline::kPointwiseTable;
}

void pointwise_unary(UnaryKind kind, float alpha, float beta, int64_t count, const float* x, float* y,
                     const Parallel& parallel, Isa isa) noexcept {
  const PointwiseTable& table = pointwise_table(isa);
  parallel_ranges(parallel, count, kPointwiseGrain, [&](int64_t begin, int64_t end) {
    if (kind == UnaryKind::kSin || kind == UnaryKind::kCos) {
      sin_cos(table, kind, end - begin, x + begin, y + begin);
    } else {
      table.unary(kind, alpha, beta, end - begin, x + begin, y + begin);
    }
  });
}

void pointwise_map(float (*function)(float), int64_t count, const float* x, float* y,
                   const Parallel& parallel) noexcept {
  parallel_ranges(parallel, count, kPointwiseGrain / 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = function(x[i]);
  });
}

bool broadcast_shape(int a_rank, const int64_t* a_dims, int b_rank, const int64_t* b_dims,
                     BroadcastShape* shape) noexcept {
  const int ranks[] = {a_rank, b_rank};
  const int64_t* const dims[] = {a_dims, b_dims};
  return broadcast_shape(ranks, dims, shape);
}

void pointwise_binary(BinaryKind kind, const BroadcastShape& shape, const float* a, const float* b, float* y,
                      const Parallel& parallel, Isa isa) noexcept {
  const PointwiseTable& table = pointwise_table(isa);
  for_each_row(shape, parallel, [&](int64_t count, const auto& offsets, const auto& strides, int64_t out) {
    table.binary(kind, count, a + offsets[0], strides[0], b + offsets[1], strides[1], y + out);
  });
}

void pointwise_pow(const BroadcastShape& shape, const float* a, const float* b, float* y, const Parallel& parallel,
                   Isa isa) noexcept {
  const PointwiseTable& table = pointwise_table(isa);
  for_each_row(shape, parallel, [&](int64_t count, const auto& offsets, const auto& strides, int64_t out) {
    const float* base = a + offsets[0];
    const float* exponent = b + offsets[1];
    float* to = y + out;
    if (strides[1] == 0 && *exponent == 2.0f) {
      table.binary(BinaryKind::kMul, count, base, strides[0], base, strides[0], to);
    } else if (strides[1] == 0 && *exponent == 0.5f) {
      for (int64_t i = 0; i < count; ++i) to[i] = power_half(base[i * strides[0]]);
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = std::pow(base[i * strides[0]], exponent[i * strides[1]]);
    }
  });
}

}  // namespace tenon::cpu
