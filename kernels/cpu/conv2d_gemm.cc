// The convolutions that are matrix products: kGemm1x1 and kIm2col.
#include <algorithm>

#include "kernels/cpu/internal/conv2d_algorithms.h"
#include "kernels/cpu/internal/gemm_isa.h"

namespace tenon::cpu {
namespace {

GemmTactic tactic_of(const Conv2dConfig& config) {
  if (config.tactic.mc > 0 && config.tactic.nc > 0 && config.tactic.kc > 0) return config.tactic;
  // All rows at once: the gathered columns are used for every output channel before they leave the cache.
  GemmTactic tactic = gemm_tactic(0, config.isa);
  tactic.mc = INT64_MAX / 2;
  return tactic;
}

// --- NCHW: weights [k/groups][c/groups*r*s] times patches [c/groups*r*s][oh*ow], for each image and group.

struct Matrix {
  const float* data;
  int64_t ldb;
  const GemmTable* table;
};

void pack_matrix(const void* context, int64_t k_begin, int64_t k_end, int64_t n_begin, int64_t n_end, float* panel) {
  const Matrix& b = *static_cast<const Matrix*>(context);
  b.table->pack_b(n_end - n_begin, k_end - k_begin, b.data + k_begin * b.ldb + n_begin, b.ldb, 1, 0, 1, panel);
}

GemmJob nchw_job(const Conv2dGeometry& g, const Conv2dConfig& config) {
  GemmJob job;
  job.m = g.k / g.groups;
  job.n = g.oh * g.ow;
  job.k = g.c / g.groups * g.r * g.s;
  job.ldc = job.n;
  job.ldb = job.n;
  job.a_packed = true;
  // With few output channels, packing the image costs more than its strided reads.
  const bool in_place = config.algorithm == Conv2dAlgorithm::kGemm1x1 && job.m <= 4 * gemm_table(config.isa).tile_rows;
  if (config.algorithm == Conv2dAlgorithm::kIm2col) {
    job.pack_b = conv2d_table(config.isa).im2col;
  } else if (!in_place) {
    job.pack_b = pack_matrix;
  }
  gemm_set_blocks(tactic_of(config), config.isa, &job);
  return job;
}

size_t nchw_packed_bytes(const Conv2dGeometry& g, const Conv2dConfig& config) {
  return g.groups * gemm_packed_a_bytes(g.k / g.groups, g.c / g.groups * g.r * g.s, config.isa);
}

void nchw_pack(const Conv2dGeometry& g, const Conv2dConfig& config, const float* weights, float* packed) {
  const GemmShape shape = GemmShape::dense(g.k / g.groups, 0, g.c / g.groups * g.r * g.s);
  const size_t group_floats = gemm_packed_a_bytes(shape.m, shape.k, config.isa) / sizeof(float);
  for (int64_t group = 0; group < g.groups; ++group) {
    gemm_pack_a(shape, weights + group * shape.m * shape.k, packed + group * group_floats, Parallel{}, config.isa);
  }
}

size_t nchw_workspace_bytes(const Conv2dGeometry& g, const Conv2dConfig& config, int threads) {
  return gemm_slot_floats(nchw_job(g, config)) * threads * sizeof(float);
}

void nchw_run(const Conv2dGeometry& g, const Conv2dConfig& config, const Conv2dBuffers& buffers,
              const Epilogue& epilogue, const Parallel& parallel) {
  const GemmJob base = nchw_job(g, config);
  const size_t group_floats = gemm_packed_a_bytes(base.m, base.k, config.isa) / sizeof(float);
  const int64_t slot_floats = gemm_slot_floats(base);
  float* workspace = static_cast<float*>(buffers.workspace);
  const auto run_group = [&](int64_t index, float* scratch, const Parallel& threads) {
    const int64_t image = index / g.groups;
    const int64_t group = index % g.groups;
    const float* input = buffers.input + (image * g.c + group * (g.c / g.groups)) * g.h * g.w;
    const int64_t output_offset = (image * g.k + group * base.m) * base.n;
    const Im2colSource patches = {g, input};
    const Matrix matrix = {input, base.n, &gemm_table(config.isa)};
    GemmJob job = base;
    job.a = static_cast<const float*>(buffers.packed_weights) + group * group_floats;
    job.b = input;
    job.pack_b_context = config.algorithm == Conv2dAlgorithm::kIm2col ? static_cast<const void*>(&patches) : &matrix;
    job.output.c = buffers.output + output_offset;
    job.output.residual = buffers.residual == nullptr ? nullptr : buffers.residual + output_offset;
    job.output.bias = buffers.bias == nullptr ? nullptr : buffers.bias + group * base.m;
    job.output.bias_axis = buffers.bias == nullptr ? BiasAxis::kNone : BiasAxis::kPerRow;
    job.output.epilogue = epilogue;
    gemm_run(job, scratch, threads, config.isa);
  };
  const int64_t count = g.n * g.groups;
  if (count >= 4 * parallel_threads(parallel)) {
    parallel_tasks(parallel, count, [&](int64_t slot, int64_t index) {
      run_group(index, workspace == nullptr ? nullptr : workspace + slot * slot_floats, Parallel{});
    });
  } else {
    for (int64_t index = 0; index < count; ++index) run_group(index, workspace, parallel);
  }
}

// --- NHWC 1x1: for each group, its channels of the pixels [n*h*w][c/groups] times weights [c/groups][k/groups].

GemmShape nhwc_shape(const Conv2dGeometry& g) {
  GemmShape shape = GemmShape::dense(g.n * g.oh * g.ow, g.k / g.groups, g.c / g.groups, false, true);
  shape.lda = g.c;
  shape.ldc = g.k;
  return shape;
}

size_t nhwc_group_bytes(const Conv2dGeometry& g, const Conv2dConfig& config) {
  return gemm_packed_b_bytes(g.c / g.groups, g.k / g.groups, config.isa);
}

GemmTactic nhwc_tactic(const Conv2dConfig& config) {
  return config.tactic.mc > 0 && config.tactic.nc > 0 && config.tactic.kc > 0 ? config.tactic
                                                                              : gemm_tactic(0, config.isa);
}

bool is_nhwc(const Conv2dConfig& config) { return config.input_layout == Layout::kNhwc; }

bool gemm1x1_supports(const Conv2dGeometry& g, const Conv2dConfig& config) {
  const bool plain = g.r == 1 && g.s == 1 && g.stride_h == 1 && g.stride_w == 1 && g.pad_top == 0 && g.pad_left == 0 &&
                     g.oh == g.h && g.ow == g.w;
  if (!plain || config.input_layout != config.output_layout) return false;
  return config.input_layout == Layout::kNchw || is_nhwc(config);
}

size_t gemm1x1_packed_bytes(const Conv2dGeometry& g, const Conv2dConfig& config) {
  return is_nhwc(config) ? g.groups * nhwc_group_bytes(g, config) : nchw_packed_bytes(g, config);
}

void gemm1x1_pack(const Conv2dGeometry& g, const Conv2dConfig& config, const float* weights, float* packed) {
  if (!is_nhwc(config)) return nchw_pack(g, config, weights, packed);
  const GemmShape shape = nhwc_shape(g);
  const size_t group_floats = nhwc_group_bytes(g, config) / sizeof(float);
  for (int64_t group = 0; group < g.groups; ++group) {
    gemm_pack_b(shape, weights + group * shape.n * shape.k, packed + group * group_floats, Parallel{}, config.isa);
  }
}

size_t gemm1x1_workspace_bytes(const Conv2dGeometry& g, const Conv2dConfig& config, int threads) {
  if (!is_nhwc(config)) return nchw_workspace_bytes(g, config, threads);
  return gemm_prepacked_b_workspace_bytes(nhwc_shape(g), nhwc_tactic(config), threads, config.isa);
}

void gemm1x1_run(const Conv2dGeometry& g, const Conv2dConfig& config, const Conv2dBuffers& buffers,
                 const Epilogue& epilogue, const Parallel& parallel) {
  if (!is_nhwc(config)) return nchw_run(g, config, buffers, epilogue, parallel);
  const GemmShape shape = nhwc_shape(g);
  const size_t group_floats = nhwc_group_bytes(g, config) / sizeof(float);
  for (int64_t group = 0; group < g.groups; ++group) {
    const int64_t first = group * shape.n;  // of its output channels
    GemmOutput output;
    output.c = buffers.output + first;
    output.bias = buffers.bias == nullptr ? nullptr : buffers.bias + first;
    output.bias_axis = buffers.bias == nullptr ? BiasAxis::kNone : BiasAxis::kPerColumn;
    output.residual = buffers.residual == nullptr ? nullptr : buffers.residual + first;
    output.epilogue = epilogue;
    gemm_prepacked_b(shape, buffers.input + group * shape.k,
                     static_cast<const float*>(buffers.packed_weights) + group * group_floats, output,
                     nhwc_tactic(config), buffers.workspace, parallel, config.isa);
  }
}

bool im2col_supports(const Conv2dGeometry&, const Conv2dConfig& config) {
  return config.input_layout == Layout::kNchw && config.output_layout == Layout::kNchw;
}

}  // namespace

const Conv2dAlgorithmTable kConv2dGemm1x1 = {gemm1x1_supports, gemm1x1_packed_bytes, gemm1x1_pack,
                                             gemm1x1_workspace_bytes, gemm1x1_run};
const Conv2dAlgorithmTable kConv2dIm2col = {im2col_supports, nchw_packed_bytes, nchw_pack, nchw_workspace_bytes,
                                            nchw_run};

}  // namespace tenon::cpu
