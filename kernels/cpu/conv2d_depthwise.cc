// The depthwise convolution.
#include <algorithm>

#include "kernels/cpu/internal/conv2d_algorithms.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kTaskFloats = 8 * 1024;  // outputs of a task: much more work than starting it

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Pixels of NHWC have all channels; a block of a blocked layout is an image of `block` channels.
int64_t pixel_channels(const Conv2dGeometry& g, Layout layout) {
  return layout == Layout::kNhwc ? g.c : layout_block(layout);
}

int64_t weights_pitch(const Conv2dGeometry& g, Layout layout) { return round_up(pixel_channels(g, layout), 8); }

bool supports(const Conv2dGeometry& g, const Conv2dConfig& config) {
  return g.groups == g.c && g.k == g.c && config.input_layout == config.output_layout;
}

size_t packed_bytes(const Conv2dGeometry& g, const Conv2dConfig& config) {
  const Layout layout = config.input_layout;
  if (layout == Layout::kNchw) return g.c * g.r * g.s * sizeof(float);
  const int64_t images = layout == Layout::kNhwc ? 1 : ceil_div(g.c, layout_block(layout));
  return images * g.r * g.s * weights_pitch(g, layout) * sizeof(float);
}

void pack(const Conv2dGeometry& g, const Conv2dConfig& config, const float* weights, float* packed) {
  const Layout layout = config.input_layout;
  const int64_t taps = g.r * g.s;
  if (layout == Layout::kNchw) {
    std::copy_n(weights, g.c * taps, packed);
    return;
  }
  const int64_t channels = pixel_channels(g, layout);
  const int64_t pitch = weights_pitch(g, layout);
  for (int64_t first = 0; first < g.c; first += channels) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t i = 0; i < pitch; ++i) {
        const bool real = i < channels && first + i < g.c;
        *packed++ = real ? weights[(first + i) * taps + tap] : 0.0f;
      }
    }
  }
}

size_t workspace_bytes(const Conv2dGeometry& g, const Conv2dConfig& config, int threads) {
  if (config.input_layout != Layout::kNchw) return 0;
  return round_up(depthwise_plane_floats(g), 16) * threads * sizeof(float);
}

struct PlaneBuffers {
  const float* input;
  const float* weights;
  float bias;
  const float* residual;
  float* output;
};

// Calls function(slot, plane) for the planes of an NCHW tensor.
template <class Function>
void for_each_plane(const Conv2dGeometry& g, const Conv2dBuffers& buffers, const Parallel& parallel,
                    const Function& function) {
  const int64_t planes = g.n * g.c;
  const int64_t per_task = std::max<int64_t>(kTaskFloats / (g.oh * g.ow), 1);
  parallel_tasks(parallel, ceil_div(planes, per_task), [&](int64_t slot, int64_t task) {
    const int64_t end = std::min((task + 1) * per_task, planes);
    for (int64_t plane = task * per_task; plane < end; ++plane) {
      const int64_t channel = plane % g.c;
      const int64_t offset = plane * g.oh * g.ow;
      function(slot, PlaneBuffers{buffers.input + plane * g.h * g.w,
                                  static_cast<const float*>(buffers.packed_weights) + channel * g.r * g.s,
                                  buffers.bias == nullptr ? 0.0f : buffers.bias[channel],
                                  buffers.residual == nullptr ? nullptr : buffers.residual + offset,
                                  buffers.output + offset});
    }
  });
}

void run_nchw(const DepthwiseConv& conv, const Conv2dConfig& config, const Conv2dBuffers& buffers,
              const Parallel& parallel) {
  const Conv2dGeometry& g = conv.geometry;
  const Conv2dTable& table = conv2d_table(config.isa);
  const int64_t slot_floats = round_up(depthwise_plane_floats(g), 16);
  for_each_plane(g, buffers, parallel, [&](int64_t slot, const PlaneBuffers& plane) {
    table.depthwise_plane(conv, plane.input, plane.weights, plane.bias, plane.residual, plane.output,
                          static_cast<float*>(buffers.workspace) + slot * slot_floats);
  });
}

void run(const Conv2dGeometry& g, const Conv2dConfig& config, const Conv2dBuffers& buffers, const Epilogue& epilogue,
         const Parallel& parallel) {
  const DepthwiseConv conv = {g, epilogue};
  const Layout layout = config.input_layout;
  if (layout == Layout::kNchw) return run_nchw(conv, config, buffers, parallel);
  const Conv2dTable& table = conv2d_table(config.isa);
  const int64_t channels = pixel_channels(g, layout);
  const int64_t blocks = ceil_div(g.c, channels);
  const int64_t pitch = weights_pitch(g, layout);
  const int64_t rows = std::clamp<int64_t>(kTaskFloats / (g.ow * channels), 1, g.oh);
  const int64_t row_tasks = ceil_div(g.oh, rows);
  const int64_t chunk = std::max<int64_t>(kTaskFloats / (rows * g.ow * channels), 1);
  const auto run_task = [&](int64_t task) {
    const int64_t image = task / row_tasks;
    const int64_t block = image % blocks;
    const int64_t oh = task % row_tasks * rows;
    const int64_t offset = image * g.oh * g.ow * channels;
    table.depthwise_pixels(conv, channels, std::min(channels, g.c - block * channels), channels, pitch,
                           buffers.input + image * g.h * g.w * channels,
                           static_cast<const float*>(buffers.packed_weights) + block * g.r * g.s * pitch,
                           buffers.bias == nullptr ? nullptr : buffers.bias + block * channels,
                           buffers.residual == nullptr ? nullptr : buffers.residual + offset, buffers.output + offset,
                           oh, std::min(oh + rows, g.oh));
  };
  parallel_chunks(parallel, g.n * blocks * row_tasks, chunk, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) run_task(task);
  });
}

bool rows_supports(const Conv2dGeometry& g, const Conv2dConfig& config) {
  return supports(g, config) && config.input_layout == Layout::kNchw && config.isa >= Isa::kAvx2 && g.r == g.s &&
         (g.s == 3 || g.s == 5) && g.stride_h == g.stride_w && g.stride_w <= 2 && g.dilation_h == 1 &&
         g.dilation_w == 1;
}

size_t rows_workspace_bytes(const Conv2dGeometry&, const Conv2dConfig&, int) { return 0; }

void rows_run(const Conv2dGeometry& g, const Conv2dConfig& config, const Conv2dBuffers& buffers,
              const Epilogue& epilogue, const Parallel& parallel) {
  const DepthwiseConv conv = {g, epilogue};
  const Conv2dTable& table = conv2d_table(g.ow <= isa_vector_floats(Isa::kAvx2) ? Isa::kAvx2 : config.isa);
  for_each_plane(g, buffers, parallel, [&](int64_t, const PlaneBuffers& plane) {
    table.depthwise_rows(conv, plane.input, plane.weights, plane.bias, plane.residual, plane.output);
  });
}

}  // namespace

const Conv2dAlgorithmTable kConv2dDepthwise = {supports, packed_bytes, pack, workspace_bytes, run};
const Conv2dAlgorithmTable kConv2dDepthwiseRows = {rows_supports, packed_bytes, pack, rows_workspace_bytes, rows_run};

}  // namespace tenon::cpu
