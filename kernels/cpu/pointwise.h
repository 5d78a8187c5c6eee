// pointwise: unary functions and broadcasting binary arithmetic, float32.
// Nothing is allocated or thrown. Relative error of the transcendental functions: at most 5e-7 against double
// arithmetic (absolute 1e-6 where the true result passes through 0 by cancellation: none below do). Infinities give the
// limit, NaN gives NaN, denormal inputs are exact inputs. REQUIRES everywhere: isa <= detect_isa().
#ifndef TENON_KERNELS_CPU_POINTWISE_H_
#define TENON_KERNELS_CPU_POINTWISE_H_

#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

enum class UnaryKind {
  kLinear,     // alpha * x + beta
  kRelu,       // max(x, 0)
  kRelu6,      // min(max(x, 0), 6)
  kClip,       // min(max(x, alpha), beta)
  kLeakyRelu,  // x > 0 ? x : alpha * x
  kLogistic,   // 1 / (1 + exp(-x))
  kTanh,
  kElu,          // x > 0 ? x : alpha * (exp(x) - 1)
  kMish,         // x * tanh(log(1 + exp(x)))
  kSwish,        // x / (1 + exp(-x)), also called SiLU
  kHardSwish,    // x * min(max(x + 3, 0), 6) / 6
  kHardSigmoid,  // min(max(alpha * x + beta, 0), 1)
  kExp,
  kLog,    // below 0: NaN; 0: -inf
  kLog1p,  // log(1 + x)
  kSqrt,
  kAbs,
  kNeg,
};

// y[i] = f(x[i]), i < count. x and y may be the same buffer, or must not overlap.
void pointwise_unary(UnaryKind kind, float alpha, float beta, int64_t count, const float* x, float* y,
                     const Parallel& parallel, Isa isa) noexcept;

enum class BinaryKind {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,  // NaN if either is NaN
  kMax,  // NaN if either is NaN
};

constexpr int kPointwiseMaxRank = 8;

// Shapes of a broadcasting operation: output dimension i has size dims[i]; a or b walks it with the stride given, in
// elements, and a stride of 0 repeats. The output is dense, row-major. rank 0 is one element.
struct BroadcastShape {
  int rank = 0;
  int64_t dims[kPointwiseMaxRank] = {};
  int64_t a_strides[kPointwiseMaxRank] = {};
  int64_t b_strides[kPointwiseMaxRank] = {};
};

// The shape for dense operands with numpy's rules (aligned at the last dimension, 1 repeats).
// Success: true. Failure: false if the shapes do not fit or a rank is above kPointwiseMaxRank; *shape is unspecified.
bool broadcast_shape(int a_rank, const int64_t* a_dims, int b_rank, const int64_t* b_dims,
                     BroadcastShape* shape) noexcept;

// y = a op b. y may be the same buffer as an operand that is dense and not repeated; other overlaps are not allowed.
void pointwise_binary(BinaryKind kind, const BroadcastShape& shape, const float* a, const float* b, float* y,
                      const Parallel& parallel, Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_POINTWISE_H_
