// The device side of epilogue.h. Full-accuracy functions throughout: at most 1e-6 relative error.
#ifndef TENON_KERNELS_CUDA_EPILOGUE_CUH_
#define TENON_KERNELS_CUDA_EPILOGUE_CUH_

#include "kernels/cuda/epilogue.h"

namespace tenon::cuda {

// Comparisons with NaN are false, so these keep a NaN x.
__device__ __forceinline__ float at_least(float lo, float x) { return x < lo ? lo : x; }
__device__ __forceinline__ float at_most(float hi, float x) { return x > hi ? hi : x; }

__device__ __forceinline__ float logistic(float x) {
  const float e = expf(-fabsf(x));  // never overflows; small results keep their relative accuracy
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

// x * gate, and 0 where the gate is closed: at -inf that is the limit.
__device__ __forceinline__ float times_gate(float x, float gate) { return gate == 0.0f ? 0.0f : x * gate; }

// One kind known at compile time.
template <UnaryKind kKind>
__device__ __forceinline__ float apply_unary(float alpha, float beta, float x) {
  switch (kKind) {
    case UnaryKind::kNone:
      return x;
    case UnaryKind::kLinear:
      return alpha * x + beta;
    case UnaryKind::kRelu:
      return at_least(0.0f, x);
    case UnaryKind::kRelu6:
      return at_most(6.0f, at_least(0.0f, x));
    case UnaryKind::kClip:
      return at_most(beta, at_least(alpha, x));
    case UnaryKind::kLeakyRelu:
      return x > 0.0f ? x : alpha == 0.0f ? at_least(0.0f, x) : alpha * x;
    case UnaryKind::kLogistic:
      return logistic(x);
    case UnaryKind::kTanh:
      return tanhf(x);
    case UnaryKind::kElu:
      return x > 0.0f ? x : alpha * expm1f(x);
    case UnaryKind::kMish: {
      // tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2) with e = exp(x); 1 in float from 20 on, e = 0 below -104.
      if (x > 20.0f) return x;
      const float v = at_least(-200.0f, x);  // -inf * 0 would be NaN
      const float e = expf(v);
      const float p = e * (e + 2.0f);
      return v * (p / (p + 2.0f));
    }
    case UnaryKind::kSwish: {
      const float v = at_least(-200.0f, x);
      return v * logistic(v);
    }
    case UnaryKind::kHardSwish: {
      const float v = at_least(-3.0f, x);
      return v * at_most(6.0f, at_least(0.0f, v + 3.0f)) / 6.0f;
    }
    case UnaryKind::kHardSigmoid:
      return at_most(1.0f, at_least(0.0f, alpha * x + beta));
    case UnaryKind::kExp:
      return expf(x);
    case UnaryKind::kLog:
      return logf(x);
    case UnaryKind::kLog1p:
      return log1pf(x);
    case UnaryKind::kSqrt:
      return sqrtf(x);
    case UnaryKind::kAbs:
      return fabsf(x);
    case UnaryKind::kNeg:
      return -x;
    case UnaryKind::kReciprocal:
      return 1.0f / x;
    case UnaryKind::kSign:
      return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x;
    case UnaryKind::kFloor:
      return floorf(x);
    case UnaryKind::kCeil:
      return ceilf(x);
    case UnaryKind::kRoundEven:
      return rintf(x);
    case UnaryKind::kSin:
      return sinf(x);
    case UnaryKind::kCos:
      return cosf(x);
    case UnaryKind::kErf:
      return erff(x);
    case UnaryKind::kGelu:
      return times_gate(x, 0.5f * erfcf(-0.707106781f * x));
    case UnaryKind::kGeluTanh: {
      // (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), without its cancellation below 0
      const float u = 0.797884561f * (x + 0.044715f * x * x * x);
      return times_gate(x, logistic(2.0f * u));
    }
    case UnaryKind::kSoftplus:
      return x > 0.0f ? x + log1pf(expf(-x)) : log1pf(expf(x));
    case UnaryKind::kSoftsign:
      return isinf(x) ? copysignf(1.0f, x) : x / (1.0f + fabsf(x));
    case UnaryKind::kSelu:
      return beta * (x > 0.0f ? x : alpha * expm1f(x));
    case UnaryKind::kCelu:
      return x > 0.0f ? x : alpha * expm1f(x / alpha);
    case UnaryKind::kThresholdedRelu:
      return x > alpha ? x : 0.0f;
    case UnaryKind::kShrink:
      return x < -alpha ? x + beta : x > alpha ? x - beta : 0.0f;
    case UnaryKind::kTan:
      return tanf(x);
    case UnaryKind::kAsin:
      return asinf(x);
    case UnaryKind::kAcos:
      return acosf(x);
    case UnaryKind::kAtan:
      return atanf(x);
    case UnaryKind::kSinh:
      return sinhf(x);
    case UnaryKind::kCosh:
      return coshf(x);
    case UnaryKind::kAsinh:
      return asinhf(x);
    case UnaryKind::kAcosh:
      return acoshf(x);
    case UnaryKind::kAtanh:
      return atanhf(x);
  }
  return x;
}

// An epilogue as kernels take it. The piecewise linear kinds are one branch-free form,
// min(max(x > 0 ? x : slope * x, lo), hi); the others go through a function that is not inlined, so that they cost
// unrolled code nothing.
struct DeviceEpilogue {
  Epilogue general;
  float slope = 1.0f;
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
  bool linear = true;

  DeviceEpilogue(const Epilogue& epilogue) : general(epilogue) {  // NOLINT: meant to convert
    switch (epilogue.kind) {
      case UnaryKind::kNone:
        break;
      case UnaryKind::kRelu6:
        hi = 6.0f;
        lo = 0.0f;
        break;
      case UnaryKind::kRelu:
        lo = 0.0f;
        break;
      case UnaryKind::kClip:
        lo = epilogue.alpha;
        hi = epilogue.beta;
        break;
      case UnaryKind::kLeakyRelu:
        if (epilogue.alpha == 0.0f) {
          lo = 0.0f;
        } else {
          slope = epilogue.alpha;
        }
        break;
      default:
        linear = false;
    }
  }
};

__device__ __noinline__ inline float apply_general(UnaryKind kind, float alpha, float beta, float x) {
  switch (kind) {
#define TENON_APPLY(k) \
  case UnaryKind::k:   \
    return apply_unary<UnaryKind::k>(alpha, beta, x)
    TENON_APPLY(kLinear);
    TENON_APPLY(kLogistic);
    TENON_APPLY(kTanh);
    TENON_APPLY(kElu);
    TENON_APPLY(kMish);
    TENON_APPLY(kSwish);
    TENON_APPLY(kHardSwish);
    TENON_APPLY(kHardSigmoid);
    TENON_APPLY(kGelu);
    TENON_APPLY(kGeluTanh);
    TENON_APPLY(kExp);
    TENON_APPLY(kLog);
    TENON_APPLY(kLog1p);
    TENON_APPLY(kSqrt);
    TENON_APPLY(kAbs);
    TENON_APPLY(kNeg);
#undef TENON_APPLY
    default:
      return NAN;  // a kind that is missing above must not pass for the identity
  }
}

__device__ __forceinline__ float apply(const DeviceEpilogue& epilogue, float x) {
  if (!epilogue.linear) return apply_general(epilogue.general.kind, epilogue.general.alpha, epilogue.general.beta, x);
  return at_most(epilogue.hi, at_least(epilogue.lo, x > 0.0f ? x : epilogue.slope * x));
}

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_EPILOGUE_CUH_
