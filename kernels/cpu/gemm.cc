#include "kernels/cpu/gemm.h"

#include <algorithm>

#include "kernels/cpu/internal/gemm_isa.h"

namespace tenon::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Workspace slots start at multiples of 64 bytes.
// A load of an operand that is used once takes as long as a few multiply-adds.
int64_t gemm_work(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kLoad = 4;
  return m * n * k + kLoad * k * (m + n);
}

int64_t round_up_slot(int64_t floats) { return round_up(floats, 16); }

struct MatrixB {
  const float* data;
  int64_t k_stride;
  int64_t column_stride;
  const GemmTable* table;
};

void pack_matrix_b(const void* context, int64_t k_begin, int64_t k_end, int64_t n_begin, int64_t n_end, float* panel) {
  const MatrixB& b = *static_cast<const MatrixB*>(context);
  b.table->pack_b(n_end - n_begin, k_end - k_begin, b.data + k_begin * b.k_stride + n_begin * b.column_stride,
                  b.k_stride, b.column_stride, 0, 1, panel);
}

MatrixB matrix_b(const GemmShape& shape, const float* b, Isa isa) {
  return {b, shape.trans_b ? 1 : shape.ldb, shape.trans_b ? shape.ldb : 1, &gemm_table(isa)};
}

GemmJob make_job(const GemmShape& shape, const GemmOutput& output, const GemmTactic& tactic, Isa isa) {
  GemmJob job;
  job.m = shape.m;
  job.n = shape.n;
  job.k = shape.k;
  job.a_row_stride = shape.trans_a ? 1 : shape.lda;
  job.a_k_stride = shape.trans_a ? shape.lda : 1;
  job.ldb = shape.ldb;
  job.output = output;
  job.ldc = shape.ldc;
  gemm_set_blocks(tactic, isa, &job);
  return job;
}

// Packing a block of A pays when several column panels reuse it.
bool worth_packing_a(const GemmShape& shape, Isa isa) {
  const GemmTable& table = gemm_table(isa);
  return shape.trans_a || (shape.m >= table.tile_rows && shape.n >= 4 * table.tile_columns);
}

GemmJob prepacked_b_job(const GemmShape& shape, const GemmOutput& output, const GemmTactic& tactic, Isa isa) {
  GemmJob job = make_job(shape, output, tactic, isa);
  job.b_packed = true;
  job.pack_a_blocks = worth_packing_a(shape, isa);
  return job;
}

GemmJob prepacked_a_job(const GemmShape& shape, const GemmOutput& output, const GemmTactic& tactic, Isa isa) {
  GemmJob job = make_job(shape, output, tactic, isa);
  job.a_packed = true;
  job.pack_b = pack_matrix_b;
  return job;
}

}  // namespace

const GemmTable& gemm_table(Isa isa) noexcept {
  return isa == Isa::kAvx512 ? avx512::kGemmTable : isa == Isa::kAvx2 ? avx2::kGemmTable : baseline::kGemmTable;
}

void gemm_set_blocks(const GemmTactic& tactic, Isa isa, GemmJob* job) noexcept {
  const GemmTable& table = gemm_table(isa);
  job->mc = round_up(std::clamp<int64_t>(tactic.mc, 1, std::max<int64_t>(job->m, 1)), table.tile_rows);
  job->nc = round_up(std::clamp<int64_t>(tactic.nc, 1, std::max<int64_t>(job->n, 1)), table.tile_columns);
  job->kc = std::clamp<int64_t>(tactic.kc, 1, std::max<int64_t>(job->k, 1));
}

int64_t gemm_slot_floats(const GemmJob& job) noexcept {
  return round_up_slot((job.pack_b != nullptr ? job.kc * job.nc : 0) + (job.pack_a_blocks ? job.kc * job.mc : 0));
}

void gemm_run(const GemmJob& job, float* scratch, const Parallel& given, Isa isa) noexcept {
  if (job.m <= 0 || job.n <= 0) return;
  const Parallel parallel = parallel_if_worth(given, gemm_work(job.m, job.n, job.k));
  const GemmTable& table = gemm_table(isa);
  const int64_t slot_floats = gemm_slot_floats(job);
  // Blocks shrink until every thread has some; the sums do not depend on it.
  GemmJob sized = job;
  const int64_t wanted = parallel_threads(parallel) == 1 ? 1 : 2 * parallel_threads(parallel);
  while (ceil_div(job.m, sized.mc) * ceil_div(job.n, sized.nc) < wanted) {
    const int64_t half_m = round_up(ceil_div(sized.mc, 2), table.tile_rows);
    const int64_t half_n = round_up(ceil_div(sized.nc, 2), table.tile_columns);
    const bool can_m = half_m < sized.mc;
    const bool can_n = half_n < sized.nc;
    if (!can_m && !can_n) break;
    // Splitting columns repeats the packing of A, splitting rows that of B.
    const bool prefer_n = job.pack_b != nullptr || (!job.pack_a_blocks && sized.nc > 2 * sized.mc);
    if (can_n && (prefer_n || !can_m)) {
      sized.nc = half_n;
    } else {
      sized.mc = half_m;
    }
  }
  const int64_t row_blocks = ceil_div(job.m, sized.mc);
  const int64_t column_blocks = ceil_div(job.n, sized.nc);
  parallel_tasks(parallel, row_blocks * column_blocks, [&](int64_t slot, int64_t task) {
    const int64_t m = task % row_blocks * sized.mc;
    const int64_t n = task / row_blocks * sized.nc;
    table.block(sized, m, std::min(m + sized.mc, job.m), n, std::min(n + sized.nc, job.n),
                scratch + slot * slot_floats);
  });
}

int gemm_tactic_count() noexcept { return 4; }

GemmTactic gemm_tactic(int index, Isa isa) noexcept {
  const GemmTable& table = gemm_table(isa);
  const int64_t rows = table.tile_rows;
  // A panel of B (kc x tile_columns) lies in the first-level cache, blocks of A and B in the second.
  static constexpr struct {
    int64_t row_tiles, nc, kc;
  } kBlocks[] = {{48, 128, 512}, {24, 256, 256}, {12, 384, 384}, {8, 96, 192}};
  const auto& blocks = kBlocks[std::clamp(index, 0, 3)];
  return {blocks.row_tiles * rows, blocks.nc, blocks.kc};
}

size_t gemm_packed_a_bytes(int64_t m, int64_t k, Isa isa) noexcept {
  return round_up_slot(round_up(m, gemm_table(isa).tile_rows) * k) * sizeof(float);
}

size_t gemm_packed_b_bytes(int64_t k, int64_t n, Isa isa) noexcept {
  return round_up_slot(round_up(n, gemm_table(isa).tile_columns) * k) * sizeof(float);
}

void gemm_pack_a(const GemmShape& shape, const float* a, void* packed, const Parallel& parallel, Isa isa) noexcept {
  const GemmTable& table = gemm_table(isa);
  parallel_ranges(parallel, ceil_div(shape.m, table.tile_rows), 4, [&](int64_t begin, int64_t end) {
    table.pack_a(shape.m, shape.k, a, shape.trans_a ? 1 : shape.lda, shape.trans_a ? shape.lda : 1, begin, end,
                 static_cast<float*>(packed));
  });
}

void gemm_pack_b(const GemmShape& shape, const float* b, void* packed, const Parallel& parallel, Isa isa) noexcept {
  const MatrixB matrix = matrix_b(shape, b, isa);
  parallel_ranges(parallel, ceil_div(shape.n, matrix.table->tile_columns), 2, [&](int64_t begin, int64_t end) {
    matrix.table->pack_b(shape.n, shape.k, b, matrix.k_stride, matrix.column_stride, begin, end,
                         static_cast<float*>(packed));
  });
}

size_t gemm_prepacked_a_workspace_bytes(const GemmShape& shape, const GemmTactic& tactic, int threads,
                                        Isa isa) noexcept {
  return gemm_slot_floats(prepacked_a_job(shape, {}, tactic, isa)) * std::max(threads, 1) * sizeof(float);
}

void gemm_prepacked_a(const GemmShape& shape, const void* packed_a, const float* b, const GemmOutput& output,
                      const GemmTactic& tactic, void* workspace, const Parallel& parallel, Isa isa) noexcept {
  const MatrixB matrix = matrix_b(shape, b, isa);
  GemmJob job = prepacked_a_job(shape, output, tactic, isa);
  job.a = static_cast<const float*>(packed_a);
  job.pack_b_context = &matrix;
  gemm_run(job, static_cast<float*>(workspace), parallel, isa);
}

size_t gemm_prepacked_b_workspace_bytes(const GemmShape& shape, const GemmTactic& tactic, int threads,
                                        Isa isa) noexcept {
  return gemm_slot_floats(prepacked_b_job(shape, {}, tactic, isa)) * std::max(threads, 1) * sizeof(float);
}

void gemm_prepacked_b(const GemmShape& shape, const float* a, const void* packed_b, const GemmOutput& output,
                      const GemmTactic& tactic, void* workspace, const Parallel& parallel, Isa isa) noexcept {
  GemmJob job = prepacked_b_job(shape, output, tactic, isa);
  job.a = a;
  job.b = static_cast<const float*>(packed_b);
  gemm_run(job, static_cast<float*>(workspace), parallel, isa);
}

size_t gemm_workspace_bytes(const GemmShape& shape, const GemmTactic& tactic, int threads, Isa isa) noexcept {
  return gemm_packed_a_bytes(shape.m, shape.k, isa) + gemm_prepacked_a_workspace_bytes(shape, tactic, threads, isa);
}

void gemm(const GemmShape& shape, const float* a, const float* b, const GemmOutput& output, const GemmTactic& tactic,
          void* workspace, const Parallel& parallel, Isa isa) noexcept {
  gemm_pack_a(shape, a, workspace, parallel, isa);
  gemm_prepacked_a(shape, workspace, b, output, tactic,
                   static_cast<char*>(workspace) + gemm_packed_a_bytes(shape.m, shape.k, isa), parallel, isa);
}

void gemm_direct(const GemmShape& shape, const float* a, const float* b, const GemmOutput& output,
                 const Parallel& parallel, Isa isa) noexcept {
  GemmJob job = make_job(shape, output, {shape.m, shape.n, shape.k}, isa);
  job.a = a;
  job.b = b;
  gemm_run(job, nullptr, parallel, isa);
}

}  // namespace tenon::cpu
