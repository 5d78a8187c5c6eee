// The activation that gemm and conv2d apply to a result before they store it.
#ifndef TENON_KERNELS_CPU_EPILOGUE_H_
#define TENON_KERNELS_CPU_EPILOGUE_H_

#include <limits>

namespace tenon::cpu {

// NaN propagates through every kind.
struct Epilogue {
  enum class Kind {
    kNone,      // x
    kLeaky,     // x > 0 ? x : alpha * x; alpha 0 is relu, and relu(-inf) is 0
    kClip,      // min(max(x, lo), hi)
    kLogistic,  // 1 / (1 + exp(-x))
    kSwish,     // x / (1 + exp(-x))
    kGelu,      // x / 2 * (1 + erf(x / sqrt(2)))
    kGeluTanh,  // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
  };
  Kind kind = Kind::kNone;
  float alpha = 0.0f;
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();

  static Epilogue none() { return {}; }
  static Epilogue relu() { return clip(0.0f, std::numeric_limits<float>::infinity()); }
  static Epilogue leaky(float slope) {
    Epilogue epilogue;
    epilogue.kind = Kind::kLeaky;
    epilogue.alpha = slope;
    return epilogue;
  }
  static Epilogue of(Kind kind) {
    Epilogue epilogue;
    epilogue.kind = kind;
    return epilogue;
  }
  static Epilogue clip(float lowest, float highest) {
    Epilogue epilogue;
    epilogue.kind = Kind::kClip;
    epilogue.lo = lowest;
    epilogue.hi = highest;
    return epilogue;
  }
};

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_EPILOGUE_H_
