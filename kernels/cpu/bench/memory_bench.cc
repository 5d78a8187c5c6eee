// The kernels that memory or transcendental functions bound, on the best instruction set of the machine, one thread.
// The counter is elements a second.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "kernels/cpu/normalize.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/reformat.h"
#include "kernels/cpu/softmax.h"
#include "kernels/cpu/transpose.h"

namespace tenon::cpu {
namespace {

void count(benchmark::State& state, int64_t elements) {
  state.counters["elements"] =
      benchmark::Counter(static_cast<double>(elements), benchmark::Counter::kIsIterationInvariantRate);
}

void unary(benchmark::State& state) {
  const int64_t elements = 16 * 1024;
  std::vector<float> x(elements, 0.7f);
  std::vector<float> y(elements);
  for (auto _ : state) {
    pointwise_unary(static_cast<UnaryKind>(state.range(0)), 0.1f, 0.5f, elements, x.data(), y.data(), {}, detect_isa());
  }
  count(state, elements);
}
BENCHMARK(unary)->DenseRange(0, static_cast<int>(UnaryKind::kNeg));

void binary_per_channel(benchmark::State& state) {
  const int64_t a_dims[] = {64, 784};
  const int64_t b_dims[] = {64, 1};
  BroadcastShape shape;
  if (!broadcast_shape(2, a_dims, 2, b_dims, &shape)) return state.SkipWithError("shapes do not fit");
  std::vector<float> a(64 * 784, 1.0f);
  std::vector<float> b(64, 2.0f);
  std::vector<float> y(a.size());
  for (auto _ : state) pointwise_binary(BinaryKind::kAdd, shape, a.data(), b.data(), y.data(), {}, detect_isa());
  count(state, static_cast<int64_t>(y.size()));
}
BENCHMARK(binary_per_channel);

void softmax_rows(benchmark::State& state) {
  const int64_t axis = state.range(0);
  std::vector<float> x(axis * 128, 0.7f);
  std::vector<float> y(x.size());
  for (auto _ : state) softmax(SoftmaxKind::kSoftmax, 128, axis, 1, x.data(), y.data(), {}, detect_isa());
  count(state, static_cast<int64_t>(x.size()));
}
BENCHMARK(softmax_rows)->Arg(20)->Arg(128)->Arg(1000);

// Arguments: kind, axis of [16,197,768].
void reduce_axis(benchmark::State& state) {
  const int64_t dims[] = {16, 197, 768};
  bool folded[3] = {};
  folded[state.range(1)] = true;
  std::vector<float> x(16 * 197 * 768, 0.7f);
  std::vector<float> y(x.size());
  const ReduceShape shape = reduce_shape(3, dims, folded);
  for (auto _ : state) {
    reduce(static_cast<ReduceKind>(state.range(0)), shape, x.data(), y.data(), {}, detect_isa());
  }
  count(state, static_cast<int64_t>(x.size()));
}
BENCHMARK(reduce_axis)
    ->ArgsProduct({{static_cast<int>(ReduceKind::kMean), static_cast<int>(ReduceKind::kMax),
                    static_cast<int>(ReduceKind::kLogSumExp)},
                   {0, 1, 2}});

// Arguments: kind, length of a row.
void reduce_rows(benchmark::State& state) {
  const int64_t length = state.range(1);
  const int64_t dims[] = {4096, length};
  const bool folded[] = {false, true};
  std::vector<float> x(4096 * length, 0.7f);
  std::vector<float> y(4096);
  const ReduceShape shape = reduce_shape(2, dims, folded);
  for (auto _ : state) {
    reduce(static_cast<ReduceKind>(state.range(0)), shape, x.data(), y.data(), {}, detect_isa());
  }
  count(state, static_cast<int64_t>(x.size()));
}
BENCHMARK(reduce_rows)
    ->ArgsProduct({{static_cast<int>(ReduceKind::kMean), static_cast<int>(ReduceKind::kMax)}, {3, 20, 100}});

// Argument: elements after the axis; 1 is a row.
void arg_max(benchmark::State& state) {
  const int64_t inner = state.range(0);
  std::vector<float> x(inner * 256 * 21, 0.7f);
  std::vector<int64_t> y(inner * 256);
  for (auto _ : state) arg_extreme(false, 256, 21, inner, x.data(), y.data(), {}, detect_isa());
  count(state, static_cast<int64_t>(x.size()));
}
BENCHMARK(arg_max)->Arg(1)->Arg(256);

// Argument: length of a row.
void layer_norm(benchmark::State& state) {
  const int64_t length = state.range(0);
  std::vector<float> x(length * 128, 0.7f), scale(length, 1.0f), y(x.size());
  for (auto _ : state) {
    normalize_rows(NormKind::kLayer, 128, length, 1e-5f, x.data(), scale.data(), scale.data(), y.data(), {},
                   detect_isa());
  }
  count(state, static_cast<int64_t>(x.size()));
}
BENCHMARK(layer_norm)->Arg(64)->Arg(768)->Arg(4096);

void group_norm(benchmark::State& state) {
  const GroupNormShape shape = {1, 32, 10, 1024, false};
  std::vector<float> x(320 * 1024, 0.7f), scale(320, 1.0f), y(x.size());
  for (auto _ : state) {
    normalize_groups(shape, 1e-5f, x.data(), scale.data(), scale.data(), y.data(), {}, detect_isa());
  }
  count(state, static_cast<int64_t>(x.size()));
}
BENCHMARK(group_norm);

void local_response(benchmark::State& state) {
  std::vector<float> x(96 * 55 * 55, 0.7f), y(x.size());
  for (auto _ : state) {
    local_response_norm({5, 1e-4f, 0.75f, 1.0f}, 1, 96, 55 * 55, x.data(), y.data(), {}, detect_isa());
  }
  count(state, static_cast<int64_t>(x.size()));
}
BENCHMARK(local_response);

// Argument: block, 192 for NHWC.
void local_response_image(benchmark::State& state) {
  std::vector<float> x(192 * 55 * 55, 0.7f);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    local_response_norm_image({5, 1e-4f, 0.75f, 1.0f}, {1, 192, 55 * 55, state.range(0)}, x.data(), y.data(), {},
                              detect_isa());
  }
  count(state, static_cast<int64_t>(x.size()));
}
BENCHMARK(local_response_image)->Arg(8)->Arg(16)->Arg(192);

// Arguments: kind, layout, channels, size, kernel, stride.
void pool_windows(benchmark::State& state) {
  PoolGeometry g;
  g.c = state.range(2);
  g.h = g.w = state.range(3);
  g.kernel_h = g.kernel_w = state.range(4);
  g.stride_h = g.stride_w = state.range(5);
  const bool whole = g.kernel_h == g.h;
  g.pad_top = g.pad_left = g.pad_bottom = g.pad_right = whole ? 0 : g.kernel_h / 2;
  g.oh = g.ow = whole ? 1 : g.h / g.stride_h;
  const auto kind = static_cast<PoolKind>(state.range(0));
  const auto layout = static_cast<Layout>(state.range(1));
  std::vector<float> x(g.c * g.h * g.w, 0.7f);
  std::vector<float> y(g.c * g.oh * g.ow);
  void* workspace = std::aligned_alloc(64, (pool_workspace_bytes(g, layout, 1, detect_isa()) + 64) / 64 * 64);
  for (auto _ : state) pool(kind, g, layout, x.data(), y.data(), workspace, {}, detect_isa());
  count(state, static_cast<int64_t>(y.size()));
  std::free(workspace);
}
BENCHMARK(pool_windows)->ArgsProduct({{0}, {0, 1, 2, 3}, {64}, {56}, {2, 3}, {1, 2}});
BENCHMARK(pool_windows)->ArgsProduct({{0, 1}, {0, 1, 2, 3}, {528}, {14}, {3}, {1, 2}});
BENCHMARK(pool_windows)->ArgsProduct({{0, 1}, {0, 1, 2, 3}, {1024}, {7}, {7}, {1}});

// Arguments: from layout, to layout.
void layouts(benchmark::State& state) {
  std::vector<float> x(64 * 56 * 56, 0.7f);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    reformat(static_cast<Layout>(state.range(0)), static_cast<Layout>(state.range(1)), 1, 64, 56, 56, x.data(),
             y.data(), {});
  }
  count(state, static_cast<int64_t>(x.size()));
}
BENCHMARK(layouts)->ArgsProduct({{0, 1, 2, 3}, {0, 1, 2, 3}});

// Argument: element size.
void transpose_matrix(benchmark::State& state) {
  const int64_t dims[] = {512, 512};
  const int perm[] = {1, 0};
  std::vector<uint64_t> x(512 * 512);
  std::vector<uint64_t> y(x.size());
  for (auto _ : state) transpose(2, dims, perm, static_cast<int>(state.range(0)), x.data(), y.data(), {});
  count(state, static_cast<int64_t>(x.size()));
}
BENCHMARK(transpose_matrix)->Arg(1)->Arg(2)->Arg(4)->Arg(8);

}  // namespace
}  // namespace tenon::cpu
