// Times the CUDA kernels alone: launches captured in a graph, between two events. One line for each case and tactic.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
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
  return tactic.split_k > 1 ? name + " split " + std::to_string(tactic.split_k) : name;
}

void bench_gemm(cudaStream_t stream, int64_t m, int64_t n, int64_t k, bool trans_b) {
  const GemmShape shape = GemmShape::dense(m, n, k, false, trans_b);
  const Memory a(m * k * 4);
  const Memory b(k * n * 4);
  const Memory c(m * n * 4);
  for (int i = 0; i < gemm_tactic_count(); ++i) {
    const GemmTactic tactic = gemm_tactic(i);
    if (!gemm_supports(shape, tactic)) continue;
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

void bench_conv(cudaStream_t stream, int64_t n, int64_t c, int64_t size, int64_t k, int64_t kernel, int64_t stride,
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
        if (!conv2d_supports(g, config)) continue;
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

int main() {
  using namespace tenon::cuda;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device");
    return 0;
  }
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
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
