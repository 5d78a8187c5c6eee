#include "kernels/cpu/pointwise.h"

#include <algorithm>

#include "kernels/cpu/internal/pointwise_isa.h"

namespace tenon::cpu {
namespace {

// Elements below which another thread costs more than it gives.
constexpr int64_t kGrain = 16 * 1024;

const PointwiseTable& pointwise_table(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::kPointwiseTable
         : isa == Isa::kAvx2 ? avx2::kPointwiseTable
                             : baseline::kPointwiseTable;
}

// Drops dimensions of size 1 and joins neighbours that both operands walk as one.
BroadcastShape collapse(const BroadcastShape& shape) {
  BroadcastShape result;
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] == 1) continue;
    const int last = result.rank - 1;
    if (last >= 0 && result.a_strides[last] == shape.a_strides[i] * shape.dims[i] &&
        result.b_strides[last] == shape.b_strides[i] * shape.dims[i]) {
      result.dims[last] *= shape.dims[i];
      result.a_strides[last] = shape.a_strides[i];
      result.b_strides[last] = shape.b_strides[i];
      continue;
    }
    result.dims[result.rank] = shape.dims[i];
    result.a_strides[result.rank] = shape.a_strides[i];
    result.b_strides[result.rank] = shape.b_strides[i];
    ++result.rank;
  }
  if (result.rank == 0) {
    result.rank = 1;
    result.dims[0] = 1;
  }
  return result;
}

}  // namespace

void pointwise_unary(UnaryKind kind, float alpha, float beta, int64_t count, const float* x, float* y,
                     const Parallel& parallel, Isa isa) noexcept {
  const PointwiseTable& table = pointwise_table(isa);
  parallel_ranges(parallel, count, kGrain, [&](int64_t begin, int64_t end) {
    table.unary(kind, alpha, beta, end - begin, x + begin, y + begin);
  });
}

bool broadcast_shape(int a_rank, const int64_t* a_dims, int b_rank, const int64_t* b_dims,
                     BroadcastShape* shape) noexcept {
  if (a_rank < 0 || b_rank < 0 || a_rank > kPointwiseMaxRank || b_rank > kPointwiseMaxRank) return false;
  shape->rank = std::max(a_rank, b_rank);
  int64_t a_stride = 1;
  int64_t b_stride = 1;
  for (int i = shape->rank - 1; i >= 0; --i) {
    const int ai = i - (shape->rank - a_rank);
    const int bi = i - (shape->rank - b_rank);
    const int64_t a = ai >= 0 ? a_dims[ai] : 1;
    const int64_t b = bi >= 0 ? b_dims[bi] : 1;
    if (a != b && a != 1 && b != 1) return false;
    shape->dims[i] = a == 1 ? b : a;
    shape->a_strides[i] = a == 1 ? 0 : a_stride;
    shape->b_strides[i] = b == 1 ? 0 : b_stride;
    a_stride *= a;
    b_stride *= b;
  }
  return true;
}

void pointwise_binary(BinaryKind kind, const BroadcastShape& shape, const float* a, const float* b, float* y,
                      const Parallel& parallel, Isa isa) noexcept {
  const PointwiseTable& table = pointwise_table(isa);
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] == 0) return;
  }
  const BroadcastShape flat = collapse(shape);
  const int inner = flat.rank - 1;
  const int64_t columns = flat.dims[inner];
  const int64_t a_stride = flat.a_strides[inner];
  const int64_t b_stride = flat.b_strides[inner];
  if (flat.rank == 1) {
    parallel_ranges(parallel, columns, kGrain, [&](int64_t begin, int64_t end) {
      table.binary(kind, end - begin, a + begin * a_stride, a_stride, b + begin * b_stride, b_stride, y + begin);
    });
    return;
  }
  int64_t rows = 1;
  for (int i = 0; i < inner; ++i) rows *= flat.dims[i];
  parallel_ranges(parallel, rows, std::max<int64_t>(kGrain / columns, 1), [&](int64_t begin, int64_t end) {
    int64_t index[kPointwiseMaxRank] = {};
    int64_t a_offset = 0;
    int64_t b_offset = 0;
    int64_t rest = begin;
    for (int i = inner - 1; i >= 0; --i) {
      index[i] = rest % flat.dims[i];
      rest /= flat.dims[i];
      a_offset += index[i] * flat.a_strides[i];
      b_offset += index[i] * flat.b_strides[i];
    }
    for (int64_t row = begin; row < end; ++row) {
      table.binary(kind, columns, a + a_offset, a_stride, b + b_offset, b_stride, y + row * columns);
      for (int i = inner - 1; i >= 0; --i) {
        a_offset += flat.a_strides[i];
        b_offset += flat.b_strides[i];
        if (++index[i] < flat.dims[i]) break;
        a_offset -= flat.dims[i] * flat.a_strides[i];
        b_offset -= flat.dims[i] * flat.b_strides[i];
        index[i] = 0;
      }
    }
  });
}

}  // namespace tenon::cpu
