// The direct convolutions: kDirect and kFirst.
#include <algorithm>

#include "kernels/cpu/internal/conv2d_algorithms.h"

namespace tenon::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

bool leaves_image(const Conv2dGeometry& g) {
  return g.pad_top > 0 || g.pad_left > 0 || conv2d_padded_height(g, g.oh) > g.h || conv2d_padded_width(g, g.ow) > g.w;
}

// Channels of NHWC that are summed at a time: a power of two keeps the kernel's strides known when compiling.
int64_t nhwc_inner(int64_t channels) { return channels % 64 == 0 ? 64 : channels % 32 == 0 ? 32 : channels; }

// How channels are cut into outer x inner; the weights are packed by it.
void set_channels(const Conv2dGeometry& g, const Conv2dConfig& config, DirectConv* conv) {
  const int64_t channels = g.c / g.groups;
  const int64_t block = layout_block(config.input_layout);
  conv->inner = config.input_layout == Layout::kNchw   ? 1
                : config.input_layout == Layout::kNhwc ? std::max<int64_t>(nhwc_inner(channels), 1)
                                                       : block;
  conv->outer = ceil_div(channels, conv->inner);
}

DirectConv make_conv(const Conv2dGeometry& geometry, const Conv2dConfig& config) {
  DirectConv conv;
  Conv2dGeometry& g = conv.geometry;
  g = geometry;
  set_channels(g, config, &conv);
  conv.pixel_stride = config.input_layout == Layout::kNchw   ? 1
                      : config.input_layout == Layout::kNhwc ? g.c
                                                             : conv.inner;
  conv.row_stride = g.w * conv.pixel_stride;
  conv.plane_stride = config.input_layout == Layout::kNhwc ? conv.inner : g.h * conv.row_stride;
  conv.padded = leaves_image(g);
  conv.block = layout_block(config.output_layout);
  conv.out_pixel_stride = conv.block == 1 ? g.k : conv.block;
  conv.out_block_stride = conv.block == 1 ? 1 : g.oh * g.ow * conv.block;

  const int64_t tile_rows = conv2d_table(config.isa).tile_rows;
  const bool one_row = !conv.padded && g.r == 1 && g.s == 1 && g.stride_h == 1 && g.stride_w == 1 && g.ow == g.w;
  if (one_row) {
    g.ow *= g.oh;
    g.oh = 1;
    conv.task_columns = std::min(16 * tile_rows, g.ow);
    return conv;
  }
  // Enough pixels to use a chunk of weights many times, little enough for the copied rows to stay in the second cache.
  constexpr int64_t kTaskPixels = 256;
  constexpr int64_t kScratchFloats = 48 * 1024;
  conv.task_columns = g.ow;
  conv.task_rows = std::clamp<int64_t>(kTaskPixels / g.ow, 1, g.oh);
  const int64_t row_floats = std::max<int64_t>(conv.outer * conv2d_padded_width(g, g.ow) * conv.inner, 1);
  while (conv.padded && conv.task_rows > 1 && conv2d_padded_height(g, conv.task_rows) * row_floats > kScratchFloats) {
    --conv.task_rows;
  }
  return conv;
}

int64_t slot_floats(const DirectConv& conv) {
  if (!conv.padded) return 0;
  const Conv2dGeometry& g = conv.geometry;
  return round_up(
      conv.outer * conv.inner * conv2d_padded_height(g, conv.task_rows) * conv2d_padded_width(g, conv.task_columns),
      16);
}

int64_t group_floats(const Conv2dGeometry& g, const Conv2dConfig& config) {
  DirectConv conv;
  set_channels(g, config, &conv);
  const int64_t tile_columns = conv2d_table(config.isa).tile_columns;
  return round_up(g.k / g.groups, tile_columns) * conv.outer * g.r * g.s * conv.inner;
}

size_t packed_bytes(const Conv2dGeometry& g, const Conv2dConfig& config) {
  return g.groups * group_floats(g, config) * sizeof(float);
}

void pack(const Conv2dGeometry& g, const Conv2dConfig& config, const float* weights, float* packed) {
  DirectConv conv;
  set_channels(g, config, &conv);
  const int64_t tile_columns = conv2d_table(config.isa).tile_columns;
  const int64_t in_channels = g.c / g.groups;
  const int64_t out_channels = g.k / g.groups;
  for (int64_t group = 0; group < g.groups; ++group) {
    for (int64_t first = 0; first < out_channels; first += tile_columns) {
      for (int64_t outer = 0; outer < conv.outer; ++outer) {
        for (int64_t tap = 0; tap < g.r * g.s; ++tap) {
          for (int64_t inner = 0; inner < conv.inner; ++inner) {
            const int64_t c = outer * conv.inner + inner;
            for (int64_t k = first; k < first + tile_columns; ++k) {
              const bool real = c < in_channels && k < out_channels;
              *packed++ = real ? weights[((group * out_channels + k) * in_channels + c) * g.r * g.s + tap] : 0.0f;
            }
          }
        }
      }
    }
  }
}

size_t workspace_bytes(const Conv2dGeometry& g, const Conv2dConfig& config, int threads) {
  return slot_floats(make_conv(g, config)) * threads * sizeof(float);
}

void run(const Conv2dGeometry& geometry, const Conv2dConfig& config, const Conv2dBuffers& buffers,
         const Epilogue& epilogue, const Parallel& parallel) {
  const DirectConv conv = make_conv(geometry, config);
  const Conv2dGeometry& g = conv.geometry;
  const Conv2dTable& table = conv2d_table(config.isa);
  const int64_t panels = ceil_div(g.k / g.groups, table.tile_columns);
  const int64_t row_tasks = ceil_div(g.oh, conv.task_rows);
  const int64_t column_tasks = ceil_div(g.ow, conv.task_columns);
  const int64_t pixel_tasks = g.n * g.groups * row_tasks * column_tasks;
  // Output channels are split only where the pixels alone do not keep the threads busy.
  const int threads = parallel_threads(parallel);
  const int64_t wanted = threads == 1 ? 1 : 4 * threads;
  const int64_t panel_tasks = std::clamp<int64_t>(ceil_div(wanted, pixel_tasks), 1, panels);

  const int64_t in_group = config.input_layout == Layout::kNhwc ? g.c / g.groups : g.c / g.groups * g.h * g.w;
  const int64_t in_image = layout_elements(config.input_layout, 1, g.c, g.h, g.w);
  const int64_t out_group = conv.block == 1 ? g.k / g.groups : g.k / g.groups * g.oh * g.ow;
  const int64_t out_image = layout_elements(config.output_layout, 1, g.k, g.oh, g.ow);
  const int64_t weights_group = group_floats(g, config);
  const int64_t scratch_floats = slot_floats(conv);
  parallel_tasks(parallel, pixel_tasks * panel_tasks, [&](int64_t slot, int64_t index) {
    const Range panel_range = split_range(panels, panel_tasks, index % panel_tasks);
    int64_t rest = index / panel_tasks;
    const int64_t column = rest % column_tasks * conv.task_columns;
    rest /= column_tasks;
    const int64_t row = rest % row_tasks * conv.task_rows;
    rest /= row_tasks;
    const int64_t group = rest % g.groups;
    const int64_t image = rest / g.groups;
    DirectConvTask task;
    task.input = buffers.input + image * in_image + group * in_group;
    task.weights = static_cast<const float*>(buffers.packed_weights) + group * weights_group;
    task.bias = buffers.bias == nullptr ? nullptr : buffers.bias + group * (g.k / g.groups);
    const int64_t output_offset = image * out_image + group * out_group;
    task.residual = buffers.residual == nullptr ? nullptr : buffers.residual + output_offset;
    task.output = buffers.output + output_offset;
    task.panel_begin = panel_range.begin;
    task.panel_end = panel_range.end;
    task.oh_begin = row;
    task.oh_end = std::min(row + conv.task_rows, g.oh);
    task.ow_begin = column;
    task.ow_end = std::min(column + conv.task_columns, g.ow);
    float* scratch = conv.padded ? static_cast<float*>(buffers.workspace) + slot * scratch_floats : nullptr;
    table.direct(conv, epilogue, task, scratch);
  });
}

bool direct_supports(const Conv2dGeometry& g, const Conv2dConfig& config) {
  if (config.input_layout != config.output_layout || config.input_layout == Layout::kNchw) return false;
  if (config.input_layout == Layout::kNhwc) return true;
  const int64_t block = layout_block(config.input_layout);
  const bool whole = g.groups == 1 || (g.c / g.groups % block == 0 && g.k / g.groups % block == 0);
  return whole;
}

bool first_supports(const Conv2dGeometry& g, const Conv2dConfig& config) {
  if (config.input_layout != Layout::kNchw || config.output_layout == Layout::kNchw) return false;
  return g.c <= 4 && g.groups == 1;
}

}  // namespace

const Conv2dAlgorithmTable kConv2dDirect = {direct_supports, packed_bytes, pack, workspace_bytes, run};
const Conv2dAlgorithmTable kConv2dFirst = {first_supports, packed_bytes, pack, workspace_bytes, run};

}  // namespace tenon::cpu
