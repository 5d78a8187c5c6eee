// pointwise: unary functions and broadcasting binary arithmetic, float32.
// Nothing is allocated or thrown. Relative error of the transcendental functions: at most 5e-7 against double
// arithmetic (absolute 1e-6 where the true result passes through 0 by cancellation: none below do). Infinities give the
// limit, NaN gives NaN, denormal inputs are exact inputs. REQUIRES everywhere: isa <= detect_isa().
#ifndef TENON_KERNELS_CPU_POINTWISE_H_
#define TENON_KERNELS_CPU_POINTWISE_H_

#include <cstdint>

#include "kernels/cpu/broadcast.h"
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
  kReciprocal,  // 1 / x
  kSign,        // -1, 0 or 1
  kFloor,
  kCeil,
  kRoundEven,  // to the nearest integer, ties to the even one
  kSin,        // beyond 1000 in magnitude one by one
  kCos,
  kErf,
  kGelu,             // x / 2 * (1 + erf(x / sqrt(2))); below 0 only the absolute error is small, 3e-7
  kGeluTanh,         // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
  kSoftplus,         // log(1 + exp(x))
  kSoftsign,         // x / (1 + |x|)
  kSelu,             // beta * (x > 0 ? x : alpha * (exp(x) - 1))
  kCelu,             // x > 0 ? x : alpha * (exp(x / alpha) - 1)
  kThresholdedRelu,  // x > alpha ? x : 0; NaN gives 0
  kShrink,           // x < -alpha ? x + beta : x > alpha ? x - beta : 0; NaN gives 0
};

// y[i] = f(x[i]), i < count. x and y may be the same buffer, or must not overlap.
void pointwise_unary(UnaryKind kind, float alpha, float beta, int64_t count, const float* x, float* y,
                     const Parallel& parallel, Isa isa) noexcept;

// The same for a function that has no vector form here.
void pointwise_map(float (*function)(float), int64_t count, const float* x, float* y,
                   const Parallel& parallel) noexcept;

enum class BinaryKind {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,    // NaN if either is NaN
  kMax,    // NaN if either is NaN
  kPRelu,  // a < 0 ? a * b : a
};

using BroadcastShape = Broadcast<2>;

// As the general one, for two operands.
bool broadcast_shape(int a_rank, const int64_t* a_dims, int b_rank, const int64_t* b_dims,
                     BroadcastShape* shape) noexcept;

// y = a op b. y may be the same buffer as an operand that is dense and not repeated; other overlaps are not allowed.
void pointwise_binary(BinaryKind kind, const BroadcastShape& shape, const float* a, const float* b, float* y,
                      const Parallel& parallel, Isa isa) noexcept;

// y = a to the power of b, as std::pow defines it, quick where one exponent of 2 or 0.5 is repeated. Buffers as above.
void pointwise_pow(const BroadcastShape& shape, const float* a, const float* b, float* y, const Parallel& parallel,
                   Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_POINTWISE_H_
