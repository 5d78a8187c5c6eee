// pointwise: unary functions, broadcasting binary arithmetic, and the affine map of batch normalisation; float types
// (element_type.h) where nothing else is said. Relative error of the transcendental functions: at most 1e-6 against
// double arithmetic, before the rounding of the store (gelu far below 0: its absolute error is small). Infinities give
// the limit, NaN gives NaN.
// Every function of the CUDA kernels launches on the stream, allocates nothing, does not
// wait, may be captured into a graph, and returns the error of the launch. Pointers are device memory, aligned to their
// element (16 bytes is faster).
#ifndef TENON_KERNELS_CUDA_POINTWISE_H_
#define TENON_KERNELS_CUDA_POINTWISE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/broadcast.h"
#include "kernels/common/layout.h"
#include "kernels/cuda/element_type.h"
#include "kernels/cuda/epilogue.h"

namespace tenon::cuda {

// y[i] = f(x[i]), i < count. x and y may be the same buffer, or must not overlap.
cudaError_t pointwise_unary(ElementType type, UnaryKind kind, float alpha, float beta, int64_t count, const void* x,
                            void* y, cudaStream_t stream) noexcept;

// y = min(max(x, *lowest), *highest): one element each in device memory, nullptr for none; a bound that is NaN makes
// everything NaN. kF32, kF16, kI32 and kI64. x and y may be the same buffer, or must not overlap.
cudaError_t pointwise_clip(ElementType type, int64_t count, const void* x, const void* lowest, const void* highest,
                           void* y, cudaStream_t stream) noexcept;

enum class BinaryKind : int {
  kAdd,
  kSub,
  kMul,
  kDiv,          // integers are truncated, and divided by 0 they give 0
  kMin,          // NaN if either is NaN
  kMax,          // NaN if either is NaN
  kPRelu,        // a < 0 ? a * b : a
  kPow,          // as std::pow; float types only
  kModDivisor,   // the remainder with b's sign (Python's %); of integers divided by 0, 0
  kModDividend,  // that with a's sign (std::fmod)
};

// The operands a and b.
using BroadcastShape = Broadcast<2>;

// As the general one, for two operands.
bool broadcast_shape(int a_rank, const int64_t* a_dims, int b_rank, const int64_t* b_dims,
                     BroadcastShape* shape) noexcept;

// y = f(a op b). y may be the same buffer as an operand that is dense and not repeated; other overlaps are not allowed.
cudaError_t pointwise_binary(ElementType type, BinaryKind kind, const BroadcastShape& shape, const void* a,
                             const void* b, const Epilogue& epilogue, void* y, cudaStream_t stream) noexcept;

// y = a op b for kI32 and kI64; sums, differences and products wrap. Buffers as above. kPow: cudaErrorInvalidValue.
cudaError_t integer_binary(ElementType type, BinaryKind kind, const BroadcastShape& shape, const void* a, const void* b,
                           void* y, cudaStream_t stream) noexcept;

// y[n,c,i] = f(x[n,c,i] * scale[c] + shift[c]), i < cells, in kNchw or kNhwc; scale and shift are float. x and y may be
// the same buffer, or must not overlap. Other layouts return cudaErrorInvalidValue.
cudaError_t channel_affine(ElementType type, Layout layout, int64_t n, int64_t c, int64_t cells, const void* x,
                           const float* scale, const float* shift, const Epilogue& epilogue, void* y,
                           cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_POINTWISE_H_
