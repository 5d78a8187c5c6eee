// elementwise: comparison, logic and selection with broadcasting, for several element types. bool is one byte, read as
// "not 0" and written as 0 or 1. Pointers and launches are as in pointwise.h; the result must not overlap an operand.
#ifndef TENON_KERNELS_CUDA_ELEMENTWISE_H_
#define TENON_KERNELS_CUDA_ELEMENTWISE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/pointwise.h"

namespace tenon::cuda {

// The same numbers as cpu::CompareKind.
enum class CompareKind : int {
  kEqual,      // a == b
  kLess,       // a < b
  kLessEqual,  // a <= b
  kUnordered,  // a or b is NaN
  kAnd,        // bool only
  kOr,         // bool only
  kXor,        // bool only
};

// y = a op b for kF32, kF64, kF16, kI32, kI64, kI8, kU8 and kBool; cudaErrorInvalidValue for the others.
cudaError_t compare(CompareKind kind, ElementType type, const BroadcastShape& shape, const void* a, const void* b,
                    void* y, cudaStream_t stream) noexcept;

// y = not x for bool.
cudaError_t logical_not(int64_t count, const void* x, void* y, cudaStream_t stream) noexcept;

// y = condition ? a : b, elements of 1, 2, 4 or 8 bytes; cudaErrorInvalidValue for others. The operands of the shape
// are condition, a and b.
cudaError_t where(int element_size, const Broadcast<3>& shape, const void* condition, const void* a, const void* b,
                  void* y, cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_ELEMENTWISE_H_
