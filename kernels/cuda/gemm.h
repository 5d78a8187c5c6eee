// gemm: C[m,n] = act(A[m,k] * B[k,n] + bias + residual), float types (element_type.h), row-major with leading
// dimensions, batched.
//
// Common rules of this header
// - Launches on the stream, allocates nothing, does not wait, may be captured. Pointers are device memory, aligned to
//   their element (16, with leading dimensions and strides divisible by 4, is faster); workspaces to 16. Inputs must
//   not overlap outputs.
// - Arithmetic is float32 with fused multiply-add, never tf32. The same shape and tactic give the same bits.
// - batches, m or n of 0 launch nothing; with k = 0 the product is 0 and bias, residual and epilogue still apply.
#ifndef TENON_KERNELS_CUDA_GEMM_H_
#define TENON_KERNELS_CUDA_GEMM_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/element_type.h"
#include "kernels/cuda/epilogue.h"

namespace tenon::cuda {

enum class BiasAxis : int {
  kNone,
  kPerRow,     // bias[m]: one value for each row of C, the same in every batch
  kPerColumn,  // bias[n]: one value for each column of C, the same in every batch
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
  int64_t batches = 1;
  int64_t a_stride = 0;  // elements from one batch to the next; 0 repeats an operand
  int64_t b_stride = 0;
  int64_t c_stride = 0;                  // of C and of the residual
  ElementType type = ElementType::kF32;  // of A, B, C, bias and residual

  // Dense row-major operands.
  static GemmShape dense(int64_t m, int64_t n, int64_t k, bool trans_a = false, bool trans_b = false,
                         int64_t batches = 1, ElementType type = ElementType::kF32) {
    return {m, n, k, trans_a, trans_b, trans_a ? m : k, trans_b ? k : n, n, batches, m * k, k * n, m * n, type};
  }
};

// What a product writes to and adds to the sums.
struct GemmOutput {
  void* c = nullptr;           // [batches][m][ldc]; the elements beyond column n are not touched
  const void* bias = nullptr;  // read only if bias_axis is not kNone
  BiasAxis bias_axis = BiasAxis::kNone;
  const void* residual = nullptr;  // null, or as c, added before the activation; may be c itself
  Epilogue epilogue;
};

// The part of C that a thread block computes, rows x columns.
enum class GemmTile : int {
  k128x128,
  k128x64,
  k64x128,
  k64x64,
  k32x32,
  kSkinny,  // m <= 8 or n <= 8: reads the large operand once, splitting k inside the block
};

struct GemmTactic {
  GemmTile tile = GemmTile::k64x64;
  int split_k = 1;  // parts of k computed apart and then added in order by a second kernel; needs a workspace
  // The parts of a tile are one thread block cluster, which adds them in the same launch, in the same order: the same
  // bits without a workspace. For GPUs where gemm_cluster_limit is at least split_k; elsewhere the call returns
  // cudaErrorNotSupported.
  bool cluster = false;
};

// The tactics worth timing on some GPU. gemm_tactic(i) REQUIRES 0 <= i < gemm_tactic_count(). Others work too.
int gemm_tactic_count() noexcept;
GemmTactic gemm_tactic(int index) noexcept;

// Blocks of the largest cluster that the GPU and this build have for tactics: 0 (none, as before compute capability
// 9.0), 8 or 16. The first call for a GPU of 9.0 or later makes its context.
int gemm_cluster_limit(int ordinal) noexcept;

// Whether the tactic is worth timing on a GPU with this limit: no cluster beyond it, and not what a cluster of up to 8
// blocks does in one launch.
bool gemm_tactic_suits(const GemmTactic& tactic, int cluster_limit) noexcept;

// Whether the tactic computes this shape. False for m, n or k of 2^31 - 1024 or more; for kSkinny where neither m nor
// n is small, or with split_k; for split_k > 1 where a part would have fewer than 32 of k, or split_k > 64; for
// cluster with other tiles than k64x64 and k32x32, or split_k not 2, 4, 8 or 16. kF16 has k64x64 without split_k or
// with cluster and nothing else: it is for what cuBLASLt, which has tensor cores, does not compute.
bool gemm_supports(const GemmShape& shape, const GemmTactic& tactic) noexcept;

// The tactic to take without timing.
GemmTactic gemm_default_tactic(const GemmShape& shape) noexcept;

// 0 unless tactic.split_k > 1 without cluster.
size_t gemm_workspace_bytes(const GemmShape& shape, const GemmTactic& tactic) noexcept;

// cudaErrorInvalidValue if gemm_supports is false.
cudaError_t gemm(const GemmShape& shape, const void* a, const void* b, const GemmOutput& output,
                 const GemmTactic& tactic, void* workspace, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_GEMM_H_
