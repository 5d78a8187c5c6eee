// reduce: folding of some axes of a row-major tensor into one number. kF32, kF16, kI32, kI64.
// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch. The same
// sizes give the same bits. Floats are added up in float32, integers in 64 bits. Input and output must not overlap.
#ifndef TENON_KERNELS_CUDA_REDUCE_H_
#define TENON_KERNELS_CUDA_REDUCE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/element_type.h"
#include "kernels/cuda/epilogue.h"

namespace tenon::cuda {

// The same numbers as cpu::ReduceKind.
enum class ReduceKind : int {
  kSum,
  kMean,  // of integers: truncated
  kMax,   // NaN if any element is; of nothing: -inf, or the least integer
  kMin,   // NaN if any element is; of nothing: +inf, or the greatest integer
  kProd,
  kL1,         // sum |x|
  kL2,         // sqrt(sum x^2)
  kLogSum,     // log(sum x)
  kLogSumExp,  // log(sum exp(x)), without overflow
  kSumSquare,  // sum x^2
};

constexpr int kReduceMaxRank = 8;

// Floats: every kind. Integers: those whose result is exact, i.e. not kL2, kLogSum and kLogSumExp.
constexpr bool reduce_supports(ElementType type, ReduceKind kind) {
  if (type == ElementType::kF32 || type == ElementType::kF16) return true;
  return (type == ElementType::kI32 || type == ElementType::kI64) && kind != ReduceKind::kL2 &&
         kind != ReduceKind::kLogSum && kind != ReduceKind::kLogSumExp;
}

// One output for each element of the kept axes, row-major; the epilogue is for floats.
// cudaErrorInvalidValue where reduce_supports is false. REQUIRES: 0 <= rank <= kReduceMaxRank.
cudaError_t reduce(ElementType type, ReduceKind kind, int rank, const int64_t* dims, const bool* folded,
                   const void* input, const Epilogue& epilogue, void* output, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_REDUCE_H_
