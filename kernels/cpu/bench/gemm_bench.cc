// Arguments: m = n = k, instruction set. The counter is floating point operations a second on one thread.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "kernels/cpu/gemm.h"

namespace tenon::cpu {
namespace {

struct Operands {
  explicit Operands(int64_t size) : a(size * size, 0.5f), b(size * size, 0.25f), c(size * size) {}
  std::vector<float> a, b, c;
};

struct Aligned {
  explicit Aligned(size_t bytes) : data(std::aligned_alloc(64, (bytes + 63) / 64 * 64)) {}
  ~Aligned() { std::free(data); }
  void* data;
};

bool begin(benchmark::State& state, Isa* isa) {
  *isa = static_cast<Isa>(state.range(1));
  state.SetLabel(isa_name(*isa));
  if (*isa > detect_isa()) state.SkipWithError("instruction set not available");
  return *isa <= detect_isa();
}

void end(benchmark::State& state) {
  const double n = static_cast<double>(state.range(0));
  state.counters["flops"] = benchmark::Counter(2 * n * n * n, benchmark::Counter::kIsIterationInvariantRate);
}

void packed(benchmark::State& state) {
  Isa isa;
  if (!begin(state, &isa)) return;
  Operands x(state.range(0));
  const GemmShape shape = GemmShape::dense(state.range(0), state.range(0), state.range(0));
  const GemmTactic tactic = gemm_tactic(static_cast<int>(state.range(2)), isa);
  Aligned workspace(gemm_workspace_bytes(shape, tactic, 1, isa));
  GemmOutput output;
  output.c = x.c.data();
  for (auto _ : state) gemm(shape, x.a.data(), x.b.data(), output, tactic, workspace.data, Parallel{}, isa);
  end(state);
}
BENCHMARK(packed)->ArgsProduct({{256, 1024}, {0, 1, 2}, {0, 1, 2, 3}});

void direct(benchmark::State& state) {
  Isa isa;
  if (!begin(state, &isa)) return;
  Operands x(state.range(0));
  const GemmShape shape = GemmShape::dense(state.range(0), state.range(0), state.range(0));
  GemmOutput output;
  output.c = x.c.data();
  for (auto _ : state) gemm_direct(shape, x.a.data(), x.b.data(), output, Parallel{}, isa);
  end(state);
}
BENCHMARK(direct)->ArgsProduct({{64, 128, 256}, {0, 1, 2}});

void prepacked_b(benchmark::State& state) {
  Isa isa;
  if (!begin(state, &isa)) return;
  Operands x(state.range(0));
  const GemmShape shape = GemmShape::dense(state.range(0), state.range(0), state.range(0));
  const GemmTactic tactic = gemm_tactic(0, isa);
  Aligned packed_b(gemm_packed_b_bytes(shape.k, shape.n, isa));
  Aligned workspace(gemm_prepacked_b_workspace_bytes(shape, tactic, 1, isa));
  gemm_pack_b(shape, x.b.data(), packed_b.data, Parallel{}, isa);
  GemmOutput output;
  output.c = x.c.data();
  for (auto _ : state) {
    gemm_prepacked_b(shape, x.a.data(), packed_b.data, output, tactic, workspace.data, Parallel{}, isa);
  }
  end(state);
}
BENCHMARK(prepacked_b)->ArgsProduct({{64, 128, 1024}, {0, 1, 2}});

}  // namespace
}  // namespace tenon::cpu
