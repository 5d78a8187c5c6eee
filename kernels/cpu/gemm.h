// gemm: C[m,n] = act(A[m,k] * B[k,n] + bias + residual), float32, row-major with leading dimensions.
//
// Common rules of this header
// - Nothing is allocated and nothing is thrown. Pointers need float alignment (4 bytes); workspaces and packed buffers
//   need 64 bytes. Inputs must not overlap outputs.
// - `isa` must not exceed detect_isa(), and must be the same in the pack, size and compute calls of one product.
// - Each element of C is one sum in order of k with one accumulator (fused multiply-add where the set has it; C itself
//   holds the partial sum between blocks of kc), so results depend on isa alone: not on thread count, tactic, packing,
//   or position in the matrix.
// - m, n or k of 0 is fine: with k = 0 the product is 0 and bias, residual and epilogue still apply.
#ifndef TENON_KERNELS_CPU_GEMM_H_
#define TENON_KERNELS_CPU_GEMM_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

enum class BiasAxis {
  kNone,
  kPerRow,     // bias[m]: one value for each row of C
  kPerColumn,  // bias[n]: one value for each column of C
};

// REQUIRES: lda >= k (>= m if trans_a), ldb >= n (>= k if trans_b), ldc >= n.
struct GemmShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool trans_a = false;  // A is stored as [k][lda] instead of [m][lda]
  bool trans_b = false;  // B is stored as [n][ldb] instead of [k][ldb]
  int64_t lda = 0;
  int64_t ldb = 0;
  int64_t ldc = 0;

  // Dense row-major operands.
  static GemmShape dense(int64_t m, int64_t n, int64_t k, bool trans_a = false, bool trans_b = false) {
    return {m, n, k, trans_a, trans_b, trans_a ? m : k, trans_b ? k : n, n};
  }
};

// What a product writes to and adds to the sums.
struct GemmOutput {
  float* c = nullptr;           // [m][ldc]; the elements beyond column n are not touched
  const float* bias = nullptr;  // read only if bias_axis is not kNone
  BiasAxis bias_axis = BiasAxis::kNone;
  const float* residual = nullptr;  // null, or [m][ldc], added before the activation; must not overlap c
  Epilogue epilogue;
};

// Cache blocking: a task computes a tile of mc x nc, kc steps of k at a time.
struct GemmTactic {
  int64_t mc = 0;
  int64_t nc = 0;
  int64_t kc = 0;
};

// The blockings worth timing, best guess first. gemm_tactic(i, isa) REQUIRES 0 <= i < gemm_tactic_count(). Any other
// positive numbers work too; they are rounded up to whole register tiles.
int gemm_tactic_count() noexcept;
GemmTactic gemm_tactic(int index, Isa isa) noexcept;

// --- General product; packs both operands. Best from about 256 x 256 x 256 on.
size_t gemm_workspace_bytes(const GemmShape& shape, const GemmTactic& tactic, int threads, Isa isa) noexcept;
void gemm(const GemmShape& shape, const float* a, const float* b, const GemmOutput& output, const GemmTactic& tactic,
          void* workspace, const Parallel& parallel, Isa isa) noexcept;

// --- Product without packing and without workspace: reads A and B in place. For small matrices.
// REQUIRES: !trans_b.
void gemm_direct(const GemmShape& shape, const float* a, const float* b, const GemmOutput& output,
                 const Parallel& parallel, Isa isa) noexcept;

// --- B packed once (constant weights on the right). In the compute call shape.ldb and trans_b are ignored; A is read
// in place, or packed block by block in the workspace where that pays.
size_t gemm_packed_b_bytes(int64_t k, int64_t n, Isa isa) noexcept;
void gemm_pack_b(const GemmShape& shape, const float* b, void* packed, const Parallel& parallel, Isa isa) noexcept;
size_t gemm_prepacked_b_workspace_bytes(const GemmShape& shape, const GemmTactic& tactic, int threads,
                                        Isa isa) noexcept;
void gemm_prepacked_b(const GemmShape& shape, const float* a, const void* packed_b, const GemmOutput& output,
                      const GemmTactic& tactic, void* workspace, const Parallel& parallel, Isa isa) noexcept;

// --- A packed once (constant weights on the left). In the compute call shape.lda and trans_a are ignored.
size_t gemm_packed_a_bytes(int64_t m, int64_t k, Isa isa) noexcept;
void gemm_pack_a(const GemmShape& shape, const float* a, void* packed, const Parallel& parallel, Isa isa) noexcept;
size_t gemm_prepacked_a_workspace_bytes(const GemmShape& shape, const GemmTactic& tactic, int threads,
                                        Isa isa) noexcept;
void gemm_prepacked_a(const GemmShape& shape, const void* packed_a, const float* b, const GemmOutput& output,
                      const GemmTactic& tactic, void* workspace, const Parallel& parallel, Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_GEMM_H_
