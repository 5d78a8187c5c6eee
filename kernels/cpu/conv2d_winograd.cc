// The Winograd convolution F(2x2, 3x3): a tile of 4 x 4 inputs becomes 16 points, 16 matrix products over the channels
// follow, and 2 x 2 outputs come back; 16 multiplications in place of 36.
#include <algorithm>

#include "kernels/cpu/internal/conv2d_algorithms.h"
#include "kernels/cpu/internal/conv2d_winograd_isa.h"
#include "kernels/cpu/internal/gemm_isa.h"

namespace tenon::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

const WinogradTable& winograd_table(Isa isa) {
  return isa == Isa::kAvx512 ? avx512::kWinogradTable
         : isa == Isa::kAvx2 ? avx2::kWinogradTable
                             : baseline::kWinogradTable;
}

struct Plan {
  int64_t channels;  // with filling
  int64_t pitch;     // of a tile's points; off the powers of two, which would fall on few cache sets
  int64_t tile_columns;
  int64_t panels;
  int64_t tiles;       // of an image
  int64_t task_tiles;  // of a task
};

Plan make_plan(const Conv2dGeometry& g, const Conv2dConfig& config) {
  const GemmTable& table = gemm_table(config.isa);
  Plan plan;
  plan.channels = round_up(g.c, layout_block(config.input_layout));
  plan.pitch = plan.channels + 16;
  plan.tile_columns = table.tile_columns;
  plan.panels = ceil_div(g.k, plan.tile_columns);
  plan.tiles = ceil_div(g.oh, 2) * ceil_div(g.ow, 2);
  constexpr int64_t kScratchFloats = 96 * 1024;  // of points: less than half of a second-level cache of 1 MiB
  const int64_t fitting = kScratchFloats / (kWinogradPoints * plan.pitch) / table.tile_rows * table.tile_rows;
  plan.task_tiles = std::clamp<int64_t>(fitting, table.tile_rows, 8 * table.tile_rows);
  return plan;
}

bool supports(const Conv2dGeometry& g, const Conv2dConfig& config) {
  return g.r == 3 && g.s == 3 && g.stride_h == 1 && g.stride_w == 1 && g.dilation_h == 1 && g.dilation_w == 1 &&
         g.groups == 1 && config.input_layout == config.output_layout && layout_block(config.input_layout) > 1;
}

size_t packed_bytes(const Conv2dGeometry& g, const Conv2dConfig& config) {
  const Plan plan = make_plan(g, config);
  return kWinogradPoints * plan.panels * plan.channels * plan.tile_columns * sizeof(float);
}

// G g G^T of one kernel.
void transform_weights(const float* weights, double (&points)[kWinogradPoints]) {
  constexpr double kG[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 4; ++x) {
      double sum = 0;
      for (int r = 0; r < 3; ++r) {
        for (int s = 0; s < 3; ++s) sum += kG[y][r] * weights[r * 3 + s] * kG[x][s];
      }
      points[y * 4 + x] = sum;
    }
  }
}

// [panel][point][channel][tile column]
void pack(const Conv2dGeometry& g, const Conv2dConfig& config, const float* weights, float* packed) {
  const Plan plan = make_plan(g, config);
  const int64_t point_floats = plan.channels * plan.tile_columns;
  for (int64_t panel = 0; panel < plan.panels; ++panel, packed += kWinogradPoints * point_floats) {
    for (int64_t c = 0; c < plan.channels; ++c) {
      for (int64_t column = 0; column < plan.tile_columns; ++column) {
        const int64_t k = panel * plan.tile_columns + column;
        double points[kWinogradPoints] = {};
        if (c < g.c && k < g.k) transform_weights(weights + (k * g.c + c) * 9, points);
        for (int64_t point = 0; point < kWinogradPoints; ++point) {
          packed[point * point_floats + c * plan.tile_columns + column] = static_cast<float>(points[point]);
        }
      }
    }
  }
}

int64_t slot_floats(const Plan& plan) { return kWinogradPoints * plan.task_tiles * (plan.pitch + plan.tile_columns); }

size_t workspace_bytes(const Conv2dGeometry& g, const Conv2dConfig& config, int threads) {
  return slot_floats(make_plan(g, config)) * threads * sizeof(float);
}

void run(const Conv2dGeometry& g, const Conv2dConfig& config, const Conv2dBuffers& buffers, const Epilogue& epilogue,
         const Parallel& parallel) {
  const Plan plan = make_plan(g, config);
  const WinogradTable& transforms = winograd_table(config.isa);
  const GemmTable& products = gemm_table(config.isa);
  const int64_t block = layout_block(config.input_layout);
  const int64_t output_channels = round_up(g.k, block);
  const int64_t tile_tasks = ceil_div(plan.tiles, plan.task_tiles);
  // Output channels are split, and inputs transformed again for each part, only where tiles do not keep threads busy.
  const int threads = parallel_threads(parallel);
  const int64_t wanted = threads == 1 ? 1 : 2 * threads;
  const int64_t panel_tasks = std::clamp<int64_t>(ceil_div(wanted, g.n * tile_tasks), 1, plan.panels);
  parallel_tasks(parallel, g.n * tile_tasks * panel_tasks, [&](int64_t slot, int64_t task) {
    const Range panels = split_range(plan.panels, panel_tasks, task % panel_tasks);
    const int64_t begin = task / panel_tasks % tile_tasks * plan.task_tiles;
    const int64_t end = std::min(begin + plan.task_tiles, plan.tiles);
    const int64_t index = task / panel_tasks / tile_tasks;
    const int64_t output_offset = index * output_channels * g.oh * g.ow;
    WinogradImage image = {g,
                           epilogue,
                           block,
                           buffers.input + index * plan.channels * g.h * g.w,
                           buffers.bias,
                           buffers.residual == nullptr ? nullptr : buffers.residual + output_offset,
                           buffers.output + output_offset};
    float* points = static_cast<float*>(buffers.workspace) + slot * slot_floats(plan);
    float* sums = points + kWinogradPoints * plan.task_tiles * plan.pitch;
    transforms.input(image, begin, end, plan.pitch, points);
    GemmJob job;
    job.m = end - begin;
    job.k = plan.channels;
    job.a_row_stride = plan.pitch;
    job.a_k_stride = 1;
    job.b_packed = true;
    job.ldc = plan.tile_columns;
    job.kc = std::max<int64_t>(std::min<int64_t>(plan.channels, 512), 1);
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const int64_t channel = panel * plan.tile_columns;
      const int64_t columns = std::min(plan.tile_columns, output_channels - channel);
      job.n = columns;
      for (int64_t point = 0; point < kWinogradPoints; ++point) {
        job.a = points + point * job.m * plan.pitch;
        job.b = static_cast<const float*>(buffers.packed_weights) +
                (panel * kWinogradPoints + point) * plan.channels * plan.tile_columns;
        job.output.c = sums + point * job.m * plan.tile_columns;
        products.block(job, 0, job.m, 0, columns, nullptr);
      }
      transforms.output(image, begin, end, channel, columns, plan.tile_columns, sums);
      // A block may be wider than the last panel.
      const int64_t written = channel + columns;
      if (panel + 1 == plan.panels && written < output_channels) {
        std::fill_n(sums, kWinogradPoints * job.m * plan.tile_columns, 0.0f);
        for (int64_t k = written; k < output_channels; k += plan.tile_columns) {
          transforms.output(image, begin, end, k, std::min(plan.tile_columns, output_channels - k), plan.tile_columns,
                            sums);
        }
      }
    }
  });
}

}  // namespace

const Conv2dAlgorithmTable kConv2dWinograd2x2 = {supports, packed_bytes, pack, workspace_bytes, run};

}  // namespace tenon::cpu
