// The activation that gemm, conv2d and others apply to a result before they store it.
#ifndef TENON_KERNELS_CUDA_EPILOGUE_H_
#define TENON_KERNELS_CUDA_EPILOGUE_H_

#include <limits>

namespace tenon::cuda {

// The same numbers as cpu::UnaryKind, plus kNone before and kTan and others behind. NaN propagates through every kind
// that does not say otherwise. Epilogues take the kinds up to kNeg.
enum class UnaryKind : int {
  kNone = -1,  // x
  kLinear,     // alpha * x + beta
  kRelu,       // max(x, 0)
  kRelu6,      // min(max(x, 0), 6)
  kClip,       // min(max(x, alpha), beta)
  kLeakyRelu,  // x > 0 ? x : alpha * x; alpha 0 is relu, and relu(-inf) is 0
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
  kSign,        // 1 above 0, -1 below, else x
  kFloor,
  kCeil,
  kRoundEven,  // to the nearest integer, ties to the even one
  kSin,
  kCos,
  kErf,
  kGelu,             // x / 2 * (1 + erf(x / sqrt(2)))
  kGeluTanh,         // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
  kSoftplus,         // log(1 + exp(x))
  kSoftsign,         // x / (1 + |x|)
  kSelu,             // beta * (x > 0 ? x : alpha * (exp(x) - 1))
  kCelu,             // x > 0 ? x : alpha * (exp(x / alpha) - 1)
  kThresholdedRelu,  // x > alpha ? x : 0; NaN gives 0
  kShrink,           // x < -alpha ? x + beta : x > alpha ? x - beta : 0; NaN gives 0
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
};

struct Epilogue {
  UnaryKind kind = UnaryKind::kNone;
  float alpha = 0.0f;
  float beta = 0.0f;

  static Epilogue none() { return {}; }
  static Epilogue relu() { return {UnaryKind::kRelu, 0.0f, 0.0f}; }
  static Epilogue leaky(float slope) { return {UnaryKind::kLeakyRelu, slope, 0.0f}; }
  static Epilogue clip(float lowest, float highest) { return {UnaryKind::kClip, lowest, highest}; }
};

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_EPILOGUE_H_
