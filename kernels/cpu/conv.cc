#include "kernels/cpu/conv.h"

#include <algorithm>

#include "kernels/cpu/gemm.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kColumnFloats = 1 << 20;  // columns made at once: 4 MB, about what an L2 or a share of L3 holds

int64_t aligned(int64_t floats) { return (floats + 15) / 16 * 16; }

// Images times groups. Many of them are spread over the threads, few are computed by all threads together.
bool spread(const ConvShape& shape, int threads) { return shape.n * shape.groups >= 2 * threads; }

// Calls run(index, scratch, parallel) for every image and group.
template <class Run>
void for_each_product(const ConvShape& shape, int64_t slot_floats, void* workspace, const Parallel& parallel,
                      const Run& run) {
  float* scratch = static_cast<float*>(workspace);
  const int64_t count = shape.n * shape.groups;
  if (spread(shape, parallel_threads(parallel))) {
    parallel_tasks(parallel, count,
                   [&](int64_t slot, int64_t index) { run(index, scratch + slot * slot_floats, Parallel{}); });
  } else {
    for (int64_t index = 0; index < count; ++index) run(index, scratch, parallel);
  }
}

// Rows of positions whose columns are made at once.
int64_t conv_rows(const ConvShape& shape) {
  const Windows& w = shape.windows;
  const int64_t floats = shape.inputs / shape.groups * w.taps() * w.count[w.rank - 1];
  return std::clamp<int64_t>(kColumnFloats / std::max<int64_t>(floats, 1), 1, w.rows());
}
GemmShape conv_gemm(const ConvShape& shape, int64_t rows) {
  const Windows& w = shape.windows;
  GemmShape gemm = GemmShape::dense(shape.outputs / shape.groups, rows * w.count[w.rank - 1],
                                    shape.inputs / shape.groups * w.taps());
  gemm.ldc = w.positions();
  return gemm;
}

// Output channels whose columns are made at once.
int64_t transpose_channels(const ConvShape& shape) {
  const int64_t floats = shape.windows.taps() * shape.windows.positions();
  return std::clamp<int64_t>(kColumnFloats / std::max<int64_t>(floats, 1), 1, shape.outputs / shape.groups);
}
GemmShape transpose_gemm(const ConvShape& shape, int64_t channels) {
  const int64_t taps = shape.windows.taps();
  GemmShape gemm =
      GemmShape::dense(channels * taps, shape.windows.positions(), shape.inputs / shape.groups, /*trans_a=*/true);
  gemm.lda = shape.outputs / shape.groups * taps;
  return gemm;
}

// Scratch of one product on `threads` threads: columns, then the matrix product's own.
int64_t slot_floats(const GemmShape& gemm, int64_t columns, int threads, Isa isa) {
  const size_t bytes = gemm_workspace_bytes(gemm, gemm_tactic(0, isa), threads, isa);
  return aligned(columns) + aligned(static_cast<int64_t>(bytes / sizeof(float)) + 1);
}
// Enough for `threads` threads and for fewer, which may spread where more do not.
size_t workspace_bytes(const ConvShape& shape, const GemmShape& gemm, int64_t columns, int threads, Isa isa) {
  const int64_t slots = std::min<int64_t>(threads, shape.n * shape.groups / 2);
  const int64_t floats = std::max(slots * slot_floats(gemm, columns, 1, isa), slot_floats(gemm, columns, threads, isa));
  return static_cast<size_t>(floats) * sizeof(float);
}

}  // namespace

size_t conv_workspace_bytes(const ConvShape& shape, int threads, Isa isa) noexcept {
  const GemmShape gemm = conv_gemm(shape, conv_rows(shape));
  return workspace_bytes(shape, gemm, gemm.k * gemm.n, std::max(threads, 1), isa);
}

void conv(const ConvShape& shape, const float* x, const float* weights, const float* bias, float* y, void* workspace,
          const Parallel& parallel, Isa isa) noexcept {
  const Windows& w = shape.windows;
  const int64_t step = conv_rows(shape), run = w.count[w.rank - 1];
  const GemmShape whole = conv_gemm(shape, step);
  const int64_t floats = slot_floats(whole, whole.k * whole.n, 1, isa);
  for_each_product(shape, floats, workspace, parallel, [&](int64_t index, float* columns, const Parallel& threads) {
    const int64_t group = index % shape.groups;
    const float* images = x + index * (shape.inputs / shape.groups) * w.pixels();
    for (int64_t row = 0; row < w.rows(); row += step) {
      const int64_t end = std::min(row + step, w.rows());
      im2col(w, shape.inputs / shape.groups, row, end, images, columns, threads);
      GemmOutput output;
      output.c = y + index * whole.m * whole.ldc + row * run;
      output.bias = bias == nullptr ? nullptr : bias + group * whole.m;
      output.bias_axis = bias == nullptr ? BiasAxis::kNone : BiasAxis::kPerRow;
      gemm(conv_gemm(shape, end - row), weights + group * whole.m * whole.k, columns, output, gemm_tactic(0, isa),
           columns + aligned(whole.k * whole.n), threads, isa);
    }
  });
}

size_t conv_transpose_workspace_bytes(const ConvShape& shape, int threads, Isa isa) noexcept {
  const GemmShape gemm = transpose_gemm(shape, transpose_channels(shape));
  return workspace_bytes(shape, gemm, gemm.m * gemm.n, std::max(threads, 1), isa);
}

void conv_transpose(const ConvShape& shape, const float* x, const float* weights, const float* bias, float* y,
                    void* workspace, const Parallel& parallel, Isa isa) noexcept {
  const Windows& w = shape.windows;
  const int64_t step = transpose_channels(shape), outputs = shape.outputs / shape.groups;
  const GemmShape whole = transpose_gemm(shape, step);
  const int64_t floats = slot_floats(whole, whole.m * whole.n, 1, isa);
  for_each_product(shape, floats, workspace, parallel, [&](int64_t index, float* columns, const Parallel& threads) {
    const int64_t group = index % shape.groups;
    for (int64_t k = 0; k < outputs; k += step) {
      const int64_t channels = std::min(step, outputs - k);
      GemmOutput output;
      output.c = columns;
      gemm(transpose_gemm(shape, channels), weights + group * whole.k * whole.lda + k * w.taps(),
           x + index * whole.k * w.positions(), output, gemm_tactic(0, isa), columns + aligned(whole.m * whole.n),
           threads, isa);
      const int64_t channel = group * outputs + k;
      col2im(w, channels, columns, bias == nullptr ? nullptr : bias + channel, y + (index * outputs + k) * w.pixels(),
             threads);
    }
  });
}

}  // namespace tenon::cpu
