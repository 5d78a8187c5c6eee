#include "kernels/cpu/normalize.h"

#include <algorithm>

#include "kernels/cpu/internal/normalize_isa.h"

namespace tenon::cpu {
namespace {

const NormalizeTable& table_of(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::kNormalizeTable
         : isa == Isa::kAvx2 ? avx2::kNormalizeTable
                             : baseline::kNormalizeTable;
}

constexpr int64_t kGrain = 8 * 1024;  // elements of a task

}  // namespace

void normalize_rows(NormKind kind, int64_t rows, int64_t length, float epsilon, const float* input, const float* scale,
                    const float* bias, float* output, const Parallel& parallel, Isa isa) noexcept {
  if (rows <= 0 || length <= 0) return;
  const NormalizeTable& table = table_of(isa);
  parallel_ranges(parallel, rows, std::max<int64_t>(kGrain / length, 1), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* x = input + row * length;
      table.row(table.moments(kind, length, epsilon, x), length, x, scale, bias, output + row * length);
    }
  });
}

void normalize_groups(const GroupNormShape& shape, float epsilon, const float* input, const float* scale,
                      const float* bias, float* output, const Parallel& parallel, Isa isa) noexcept {
  const int64_t length = shape.channels * shape.pixels;
  if (shape.n <= 0 || length <= 0) return;
  const NormalizeTable& table = table_of(isa);
  const int64_t grain = std::max<int64_t>(kGrain / length, 1);
  parallel_ranges(parallel, shape.n * shape.groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i % shape.groups;
      const Moments moments = table.moments(NormKind::kLayer, length, epsilon, input + i * length);
      for (int64_t c = 0; c < shape.channels; ++c) {
        const int64_t at = i * length + c * shape.pixels;
        const int64_t own = shape.scale_of_group ? group : group * shape.channels + c;
        table.channel(moments, shape.pixels, input + at, scale[own], bias[own], output + at);
      }
    }
  });
}

void normalize_length(int p, int64_t outer, int64_t axis, int64_t inner, const float* input, float* output,
                      const Parallel& parallel, Isa isa) noexcept {
  if (outer <= 0 || axis <= 0 || inner <= 0) return;
  const NormalizeTable& table = table_of(isa);
  constexpr int64_t kColumns = 64;  // of a task
  const int64_t blocks = inner == 1 ? 1 : (inner + kColumns - 1) / kColumns;
  const int64_t grain = std::max<int64_t>(kGrain / (axis * std::min(inner, kColumns)), 1);
  parallel_ranges(parallel, outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t column = task % blocks * kColumns;
      const int64_t at = task / blocks * axis * inner + column;
      if (inner == 1) {
        table.length_row(p, axis, input + at, output + at);
      } else {
        table.length_columns(p, axis, inner, std::min(kColumns, inner - column), input + at, output + at);
      }
    }
  });
}

void local_response_norm(const LrnParams& params, int64_t outer, int64_t channels, int64_t inner, const float* input,
                         float* output, const Parallel& parallel, Isa isa) noexcept {
  if (outer <= 0 || channels <= 0 || inner <= 0) return;
  const NormalizeTable& table = table_of(isa);
  constexpr int64_t kColumns = 64;  // of a task, so that the rows of a window stay in the first cache
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  const int64_t grain = std::max<int64_t>(kGrain / (channels * kColumns), 1);
  parallel_ranges(parallel, outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t column = task % blocks * kColumns;
      const int64_t at = task / blocks * channels * inner + column;
      table.lrn(params, channels, inner, std::min(kColumns, inner - column), input + at, output + at);
    }
  });
}

void local_response_norm_image(const LrnParams& params, const LrnImage& image, const float* input, float* output,
                               const Parallel& parallel, Isa isa) noexcept {
  if (image.n <= 0 || image.channels <= 0 || image.pixels <= 0) return;
  // Blocks of 8 are one AVX2 vector.
  const NormalizeTable& table = table_of(image.block == 8 ? std::min(isa, Isa::kAvx2) : isa);
  constexpr int64_t kPixels = 16;  // of a task
  const int64_t stored = (image.channels + image.block - 1) / image.block * image.block;
  const int64_t chunks = (image.pixels + kPixels - 1) / kPixels;
  const int64_t grain = std::max<int64_t>(kGrain / (stored * kPixels), 1);
  parallel_ranges(parallel, image.n * chunks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t at = task / chunks * stored * image.pixels;
      const int64_t pixel = task % chunks * kPixels;
      table.lrn_image(params, image, pixel, std::min(pixel + kPixels, image.pixels), input + at, output + at);
    }
  });
}

}  // namespace tenon::cpu
