#include "kernels/cpu/pool.h"

#include <algorithm>

#include "kernels/cpu/internal/pool_isa.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kTaskFloats = 8 * 1024;  // outputs of a task: much more work than starting it

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// `lanes` is what a vector can hold: outputs of a row, or channels of a pixel.
const PoolTable& pool_table(Isa isa, int64_t lanes) {
  // Half-filled AVX-512 vectors gain nothing.
  if (lanes <= isa_vector_floats(Isa::kAvx2) && isa == Isa::kAvx512) return avx2::kPoolTable;
  return isa == Isa::kAvx512 ? avx512::kPoolTable : isa == Isa::kAvx2 ? avx2::kPoolTable : baseline::kPoolTable;
}

}  // namespace

size_t pool_workspace_bytes(const PoolGeometry& geometry, Layout layout, int threads, Isa) noexcept {
  if (layout != Layout::kNchw) return 0;
  return pool_slot_floats(geometry) * sizeof(float) * std::max(threads, 1);
}

void pool(PoolKind kind, const PoolGeometry& g, Layout layout, const float* input, float* output, void* workspace,
          const Parallel& parallel, Isa isa) noexcept {
  if (g.n <= 0 || g.c <= 0 || g.oh <= 0 || g.ow <= 0) return;
  const int64_t channels = layout == Layout::kNhwc ? g.c : layout_block(layout);
  const PoolTable& table = pool_table(isa, layout == Layout::kNchw ? g.ow : channels);
  if (layout == Layout::kNchw) {
    const int64_t planes = g.n * g.c;
    const int64_t per_task = std::max<int64_t>(kTaskFloats / (g.oh * g.ow), 1);
    parallel_tasks(parallel, ceil_div(planes, per_task), [&](int64_t slot, int64_t task) {
      float* scratch = static_cast<float*>(workspace) + slot * pool_slot_floats(g);
      const int64_t end = std::min((task + 1) * per_task, planes);
      for (int64_t plane = task * per_task; plane < end; ++plane) {
        table.plane(kind, g, input + plane * g.h * g.w, output + plane * g.oh * g.ow, scratch);
      }
    });
    return;
  }
  const int64_t blocks = ceil_div(g.c, channels);
  const int64_t rows = std::clamp<int64_t>(kTaskFloats / (g.ow * channels), 1, g.oh);
  const int64_t row_tasks = ceil_div(g.oh, rows);
  const int64_t chunk = std::max<int64_t>(kTaskFloats / (rows * g.ow * channels), 1);
  parallel_chunks(parallel, g.n * blocks * row_tasks, chunk, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / row_tasks;
      const int64_t oh = task % row_tasks * rows;
      table.pixels(kind, g, channels, std::min(channels, g.c - image % blocks * channels),
                   input + image * g.h * g.w * channels, output + image * g.oh * g.ow * channels, oh,
                   std::min(oh + rows, g.oh));
    }
  });
}

void pool_global_average(Layout layout, int64_t n, int64_t c, int64_t h, int64_t w, const float* input, float* output,
                         const Parallel& parallel, Isa isa) noexcept {
  if (n <= 0 || c <= 0 || h * w <= 0) return;
  const int64_t channels = layout == Layout::kNhwc ? c : layout_block(layout);
  const PoolTable& table = pool_table(isa, layout == Layout::kNchw ? h * w : channels);
  const int64_t cells = h * w;
  const float divisor = static_cast<float>(cells);
  if (layout == Layout::kNchw) {
    parallel_ranges(parallel, n * c, std::max<int64_t>(kTaskFloats / cells, 1), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane)
        output[plane] = table.sum(cells, input + plane * cells) / divisor;
    });
    return;
  }
  const int64_t blocks = ceil_div(c, channels);
  constexpr int64_t kLanes = 64;  // channels of a task
  const int64_t lane_tasks = ceil_div(channels, kLanes);
  const int64_t chunk = std::max<int64_t>(kTaskFloats / (cells * std::min(channels, kLanes)), 1);
  parallel_chunks(parallel, n * blocks * lane_tasks, chunk, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / lane_tasks;
      const int64_t lane = task % lane_tasks * kLanes;
      const int64_t valid = std::min(channels, c - image % blocks * channels);
      float* to = output + image * channels;
      table.sum_pixels(cells, std::min(valid - lane, kLanes), channels, divisor,
                       input + image * cells * channels + lane, to + lane);
      std::fill(to + valid, to + channels, 0.0f);
    }
  });
}

}  // namespace tenon::cpu
