// Times the CUDA kernels alone: launches captured in a graph, between two events. One line for each case and tactic.
//   kernels_cuda_bench           cases of each family
//   kernels_cuda_bench clusters  convolutions of networks: split_k with two launches and with clusters, same tile
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/conv2d.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/pointwise.h"
#include "kernels/cuda/softmax.h"

namespace tenon::cuda {
namespace {

void must(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

// Zeroed device memory.
class Memory {
 public:
  explicit Memory(size_t bytes) {
    must(cudaMalloc(&data_, bytes));
    must(cudaMemset(data_, 0, bytes));
  }
  ~Memory() { cudaFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  float* data() const { return static_cast<float*>(data_); }

 private:
  void* data_ = nullptr;
};

// Microseconds of one call: the best of five graphs of 20.
double time_call(cudaStream_t stream, const std::function<cudaError_t(cudaStream_t)>& call) {
  constexpr int kCalls = 20;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t begin;
  cudaEvent_t end;
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kCalls; ++i) must(call(stream));
  must(cudaStreamEndCapture(stream, &graph));
  must(cudaGraphInstantiate(&exec, graph, 0));
  must(cudaEventCreate(&begin));
  must(cudaEventCreate(&end));
  double best = 1e30;
  for (int round = 0; round < 6; ++round) {
    must(cudaEventRecord(begin, stream));
    must(cudaGraphLaunch(exec, stream));
    must(cudaEventRecord(end, stream));
    must(cudaEventSynchronize(end));
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, begin, end));
    if (round > 0 && milliseconds * 1e3 / kCalls < best) best = milliseconds * 1e3 / kCalls;
  }
  must(cudaEventDestroy(begin));
  must(cudaEventDestroy(end));
  must(cudaGraphExecDestroy(exec));
  must(cudaGraphDestroy(graph));
  return best;
}

void report(const std::string& name, double microseconds, double flops, double bytes) {
  std::printf("%-64s %10.2f us %8.2f TFLOP/s %8.0f GB/s\n", name.c_str(), microseconds, flops / microseconds * 1e-6,
              bytes / microseconds * 1e-3);
}

std::string tactic_name(const GemmTactic& tactic) {
  static const char* const kTiles[] = {"128x128", "128x64", "64x128", "64x64", "32x32", "skinny"};
  std::string name = kTiles[static_cast<int>(tactic.tile)];
  if (tactic.split_k > 1) name += " split " + std::to_string(tactic.split_k);
  return tactic.cluster ? name + " cluster" : name;
}

bool runs_here(const GemmTactic& tactic) {
  int ordinal = 0;
  must(cudaGetDevice(&ordinal));
  return !tactic.cluster || tactic.split_k <= gemm_cluster_limit(ordinal);
}

void bench_gemm(cudaStream_t stream, int64_t m, int64_t n, int64_t k, bool trans_b) {
  const GemmShape shape = GemmShape::dense(m, n, k, false, trans_b);
  const Memory a(m * k * 4);
  const Memory b(k * n * 4);
  const Memory c(m * n * 4);
  for (int i = 0; i < gemm_tactic_count(); ++i) {
    const GemmTactic tactic = gemm_tactic(i);
    if (!gemm_supports(shape, tactic) || !runs_here(tactic)) continue;
    const Memory workspace(gemm_workspace_bytes(shape, tactic));
    GemmOutput output;
    output.c = c.data();
    const double time = time_call(
        stream, [&](cudaStream_t s) { return gemm(shape, a.data(), b.data(), output, tactic, workspace.data(), s); });
    report("gemm " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + (trans_b ? " tb " : " ") +
               tactic_name(tactic),
           time, 2.0 * m * n * k, 4.0 * (m * k + k * n + m * n));
  }
}

Conv2dGeometry same_padded(int64_t n, int64_t c, int64_t size, int64_t k, int64_t kernel, int64_t stride,
                           int64_t groups = 1) {
  Conv2dGeometry g;
  g.n = n;
  g.c = c;
  g.h = g.w = size;
  g.k = k;
  g.r = g.s = kernel;
  g.stride_h = g.stride_w = stride;
  g.pad_top = g.pad_left = g.pad_bottom = g.pad_right = kernel / 2;
  g.groups = groups;
  g.oh = g.ow = conv2d_output_size(size, kernel, stride, 1, kernel / 2, kernel / 2);
  return g;
}

void bench_conv(cudaStream_t stream, int64_t n, int64_t c, int64_t size, int64_t k, int64_t kernel, int64_t stride,
                int64_t groups = 1) {
  const Conv2dGeometry g = same_padded(n, c, size, k, kernel, stride, groups);
  const int64_t inputs = n * c * size * size;
  const int64_t outputs = n * k * g.oh * g.ow;
  const Memory x(inputs * 4);
  const Memory y(outputs * 4);
  static const char* const kNames[] = {"implicit_gemm", "gemm1x1", "depthwise"};
  for (const auto algorithm :
       {Conv2dAlgorithm::kImplicitGemm, Conv2dAlgorithm::kGemm1x1, Conv2dAlgorithm::kDepthwise}) {
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
      for (int i = 0; i < (algorithm == Conv2dAlgorithm::kDepthwise ? 1 : gemm_tactic_count()); ++i) {
        const Conv2dConfig config = {algorithm, layout, gemm_tactic(i)};
        if (!conv2d_supports(g, config) || !runs_here(config.tactic)) continue;
        const Memory weights(conv2d_packed_bytes(g, config));
        const Memory workspace(conv2d_workspace_bytes(g, config));
        const Conv2dBuffers buffers = {x.data(), weights.data(), nullptr, nullptr, y.data(), workspace.data()};
        const double time =
            time_call(stream, [&](cudaStream_t s) { return conv2d(g, config, buffers, Epilogue::relu(), s); });
        report("conv n" + std::to_string(n) + " c" + std::to_string(c) + " " + std::to_string(size) + " k" +
                   std::to_string(k) + " r" + std::to_string(kernel) + "/" + std::to_string(stride) + " " +
                   kNames[static_cast<int>(algorithm)] + (layout == Layout::kNhwc ? " nhwc " : " nchw ") +
                   (algorithm == Conv2dAlgorithm::kDepthwise ? "" : tactic_name(config.tactic)),
               time, 2.0 * outputs * (c / groups) * kernel * kernel, 4.0 * (inputs + outputs));
      }
    }
  }
}

struct NetworkLayer {
  const char* network;
  int64_t c, size, k, kernel, stride;
};
constexpr NetworkLayer kNetworkLayers[] = {
    {"resnet50", 3, 224, 64, 7, 2},      {"resnet50", 64, 56, 64, 1, 1},     {"resnet50", 64, 56, 64, 3, 1},
    {"resnet50", 64, 56, 256, 1, 1},     {"resnet50", 256, 56, 64, 1, 1},    {"resnet50", 256, 56, 128, 1, 1},
    {"resnet50", 128, 56, 128, 3, 2},    {"resnet50", 128, 28, 512, 1, 1},   {"resnet50", 512, 28, 128, 1, 1},
    {"resnet50", 128, 28, 128, 3, 1},    {"resnet50", 256, 56, 512, 1, 2},   {"resnet50", 512, 28, 256, 1, 1},
    {"resnet50", 256, 28, 256, 3, 2},    {"resnet50", 256, 14, 1024, 1, 1},  {"resnet50", 1024, 14, 256, 1, 1},
    {"resnet50", 256, 14, 256, 3, 1},    {"resnet50", 512, 28, 1024, 1, 2},  {"resnet50", 1024, 14, 512, 1, 1},
    {"resnet50", 512, 14, 512, 3, 2},    {"resnet50", 512, 7, 2048, 1, 1},   {"resnet50", 2048, 7, 512, 1, 1},
    {"resnet50", 512, 7, 512, 3, 1},     {"resnet50", 1024, 14, 2048, 1, 2}, {"googlenet", 192, 28, 64, 1, 1},
    {"googlenet", 96, 28, 128, 3, 1},    {"googlenet", 16, 28, 32, 5, 1},    {"googlenet", 480, 14, 192, 1, 1},
    {"googlenet", 480, 14, 16, 1, 1},    {"googlenet", 96, 14, 208, 3, 1},   {"googlenet", 528, 14, 256, 1, 1},
    {"googlenet", 160, 14, 320, 3, 1},   {"googlenet", 32, 14, 128, 5, 1},   {"googlenet", 832, 7, 384, 1, 1},
    {"googlenet", 832, 7, 48, 1, 1},     {"googlenet", 192, 7, 384, 3, 1},   {"googlenet", 48, 7, 128, 5, 1},
    {"mobilenetv2", 96, 56, 24, 1, 1},   {"mobilenetv2", 144, 28, 32, 1, 1}, {"mobilenetv2", 192, 28, 32, 1, 1},
    {"mobilenetv2", 192, 14, 64, 1, 1},  {"mobilenetv2", 384, 14, 64, 1, 1}, {"mobilenetv2", 384, 14, 96, 1, 1},
    {"mobilenetv2", 576, 14, 96, 1, 1},  {"mobilenetv2", 576, 7, 160, 1, 1}, {"mobilenetv2", 960, 7, 160, 1, 1},
    {"mobilenetv2", 160, 7, 960, 1, 1},  {"mobilenetv2", 960, 7, 320, 1, 1}, {"mobilenetv2", 320, 7, 1280, 1, 1},
    {"mobilenetv2", 1280, 1, 1000, 1, 1}};

// Best of the algorithms and layouts, with bias, residual and relu.
void compare_clusters(cudaStream_t stream, const NetworkLayer& layer) {
  const Conv2dGeometry g = same_padded(1, layer.c, layer.size, layer.k, layer.kernel, layer.stride);
  const Memory x(layer.c * layer.size * layer.size * 4), y(layer.k * g.oh * g.ow * 4), bias(layer.k * 4);
  const Memory residual(layer.k * g.oh * g.ow * 4);
  const auto best = [&](const GemmTactic& tactic) {
    double time = 1e30;
    for (const auto algorithm : {Conv2dAlgorithm::kImplicitGemm, Conv2dAlgorithm::kGemm1x1}) {
      for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
        const Conv2dConfig config = {algorithm, layout, tactic};
        if (!conv2d_supports(g, config) || !runs_here(tactic)) continue;
        const Memory weights(conv2d_packed_bytes(g, config)), workspace(conv2d_workspace_bytes(g, config));
        const Conv2dBuffers buffers = {x.data(),        weights.data(), bias.data(),
                                       residual.data(), y.data(),       workspace.data()};
        time = std::min(
            time, time_call(stream, [&](cudaStream_t s) { return conv2d(g, config, buffers, Epilogue::relu(), s); }));
      }
    }
    return time;
  };
  double one_part = 1e30, two_launches = 1e30, clusters = 1e30;
  for (const GemmTile tile : {GemmTile::k128x128, GemmTile::k128x64, GemmTile::k64x128}) {
    one_part = std::min(one_part, best({tile, 1}));
  }
  const std::string name = std::string(layer.network) + " c" + std::to_string(layer.c) + " " +
                           std::to_string(layer.size) + " k" + std::to_string(layer.k) + " r" +
                           std::to_string(layer.kernel) + "/" + std::to_string(layer.stride);
  for (const GemmTile tile : {GemmTile::k64x64, GemmTile::k32x32}) {
    one_part = std::min(one_part, best({tile, 1}));
    for (const int parts : {2, 4, 8, 16}) {
      const double apart = best({tile, parts}), together = best({tile, parts, true});
      if (apart == 1e30 || together == 1e30) continue;
      std::printf("%-36s %-14s two launches %8.2f us, cluster %8.2f us\n", name.c_str(),
                  tactic_name({tile, parts}).c_str(), apart, together);
      two_launches = std::min(two_launches, apart);
      clusters = std::min(clusters, together);
    }
  }
  std::printf("%-36s best: one part %.2f us", name.c_str(), one_part);
  if (clusters != 1e30) std::printf(", two launches %.2f us, cluster %.2f us", two_launches, clusters);
  std::puts("");
}

void bench_softmax(cudaStream_t stream, int64_t outer, int64_t axis, int64_t inner) {
  const int64_t count = outer * axis * inner;
  const Memory x(count * 4);
  const Memory y(count * 4);
  const double time = time_call(stream, [&](cudaStream_t s) {
    return softmax(ElementType::kF32, SoftmaxKind::kSoftmax, outer, axis, inner, x.data(), y.data(), s);
  });
  report("softmax " + std::to_string(outer) + "x" + std::to_string(axis) + "x" + std::to_string(inner), time, 0,
         8.0 * count);
}

void bench_unary(cudaStream_t stream, UnaryKind kind, const char* name, int64_t count) {
  const Memory x(count * 4);
  const Memory y(count * 4);
  const double time = time_call(stream, [&](cudaStream_t s) {
    return pointwise_unary(ElementType::kF32, kind, 0.1f, 0, count, x.data(), y.data(), s);
  });
  report("unary " + std::string(name) + " " + std::to_string(count), time, 0, 8.0 * count);
}

}  // namespace
}  // namespace tenon::cuda

int main(int argc, char** argv) {
  using namespace tenon::cuda;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device");
    return 0;
  }
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  if (argc == 2 && std::strcmp(argv[1], "clusters") == 0) {
    for (const NetworkLayer& layer : kNetworkLayers) compare_clusters(stream, layer);
    must(cudaStreamDestroy(stream));
    return 0;
  }
  bench_gemm(stream, 4096, 4096, 4096, false);
  bench_gemm(stream, 1024, 1024, 1024, false);
  bench_gemm(stream, 512, 49, 4608, false);
  bench_gemm(stream, 1, 1000, 2048, true);
  bench_gemm(stream, 1, 4096, 4096, false);
  for (const int64_t n : {1, 32}) {
    bench_conv(stream, n, 3, 224, 64, 7, 2);
    bench_conv(stream, n, 64, 56, 64, 3, 1);
    bench_conv(stream, n, 256, 14, 256, 3, 1);
    bench_conv(stream, n, 512, 7, 512, 3, 1);
    bench_conv(stream, n, 256, 56, 64, 1, 1);
    bench_conv(stream, n, 96, 112, 96, 3, 2, 96);
    bench_conv(stream, n, 384, 14, 384, 3, 1, 384);
  }
  bench_softmax(stream, 1, 1000, 1);
  bench_softmax(stream, 8192, 1024, 1);
  bench_softmax(stream, 512, 32768, 1);
  bench_softmax(stream, 64, 80, 2704);
  bench_unary(stream, UnaryKind::kRelu, "relu", int64_t{1} << 26);
  bench_unary(stream, UnaryKind::kMish, "mish", int64_t{1} << 26);
  must(cudaStreamDestroy(stream));
  return 0;
}
