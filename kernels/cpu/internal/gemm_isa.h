// The per-instruction-set part of gemm, and the tables through which the common part reaches it.
#ifndef TENON_KERNELS_CPU_INTERNAL_GEMM_ISA_H_
#define TENON_KERNELS_CPU_INTERNAL_GEMM_ISA_H_

#include "kernels/cpu/gemm.h"

namespace tenon::cpu {

// Writes B[k_begin..k_end)[n_begin..n_end) to `panel` as [k][columns of a tile]; columns from n_end on become 0.
using GemmPanelPacker = void (*)(const void* context, int64_t k_begin, int64_t k_end, int64_t n_begin, int64_t n_end,
                                 float* panel);

// One product. A is packed whole, or read with strides (and packed block by block if pack_a_blocks).
// B is packed whole, read in place with row stride ldb, or gathered by `pack_b` into the slot's scratch memory.
struct GemmJob {
  int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  bool a_packed = false;
  bool pack_a_blocks = false;
  int64_t a_row_stride = 0;
  int64_t a_k_stride = 0;
  const float* b = nullptr;
  bool b_packed = false;
  int64_t ldb = 0;
  GemmPanelPacker pack_b = nullptr;
  const void* pack_b_context = nullptr;
  GemmOutput output;
  int64_t ldc = 0;
  int64_t mc = 0, nc = 0, kc = 0;  // whole register tiles
};

struct GemmTable {
  int tile_rows;
  int tile_columns;
  // Packs panels [begin, end) of tile_rows rows of A (or tile_columns columns of B) over all k: [panel][k][tile].
  void (*pack_a)(int64_t m, int64_t k, const float* a, int64_t row_stride, int64_t k_stride, int64_t begin, int64_t end,
                 float* packed);
  void (*pack_b)(int64_t n, int64_t k, const float* b, int64_t k_stride, int64_t column_stride, int64_t begin,
                 int64_t end, float* packed);
  // Computes rows [m_begin, m_end) x columns [n_begin, n_end). m_begin is a multiple of tile_rows if A is packed,
  // n_begin of tile_columns if B is packed. `scratch` holds kc*nc floats if pack_b, plus kc*mc if pack_a_blocks.
  void (*block)(const GemmJob& job, int64_t m_begin, int64_t m_end, int64_t n_begin, int64_t n_end, float* scratch);
};

const GemmTable& gemm_table(Isa isa) noexcept;

// Runs the whole job on the caller's threads; `scratch` has a slot of gemm_slot_floats for each thread.
void gemm_run(const GemmJob& job, float* scratch, const Parallel& parallel, Isa isa) noexcept;
int64_t gemm_slot_floats(const GemmJob& job) noexcept;

// The blocking in whole tiles and not larger than the matrix.
void gemm_set_blocks(const GemmTactic& tactic, Isa isa, GemmJob* job) noexcept;

namespace baseline {
extern const GemmTable kGemmTable;
}
namespace avx2 {
extern const GemmTable kGemmTable;
}
namespace avx512 {
extern const GemmTable kGemmTable;
}

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_INTERNAL_GEMM_ISA_H_
