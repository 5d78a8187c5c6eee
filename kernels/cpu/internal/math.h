// Vector exp, expm1, log, log1p, tanh and relatives. Polynomials are the Taylor series, cut where the next term is
// below 1e-8 of the result on the reduced range; reductions use ln 2 in two parts (Cody and Waite).
#ifndef TENON_KERNELS_CPU_INTERNAL_MATH_H_
#define TENON_KERNELS_CPU_INTERNAL_MATH_H_

#include "kernels/cpu/internal/simd.h"

namespace tenon::cpu::TENON_CPU_ISA {

constexpr float kLog2e = 1.44269504088896341f;
constexpr float kLn2High = 0.693359375f;  // 10 bits, so that products with exponents are exact
constexpr float kLn2Low = -2.12194440054690583e-4f;

TENON_CPU_INLINE Vec absolute(Vec x) { return from_bits(and_i(bits(x), broadcast_i(0x7fffffff))); }
TENON_CPU_INLINE Vec copy_sign(Vec magnitude, Vec sign) {
  return from_bits(or_i(bits(magnitude), and_i(bits(sign), broadcast_i(static_cast<int32_t>(0x80000000u)))));
}

// x = n ln 2 + r with |r| <= ln(2) / 2; returns exp(r) - 1 and n. |x| < 200.
TENON_CPU_INLINE Vec reduced_expm1(Vec x, VecI* n) {
  *n = round_to_int(mul(x, broadcast(kLog2e)));
  const Vec nf = to_float(*n);
  const Vec r = fnma(nf, broadcast(kLn2Low), fnma(nf, broadcast(kLn2High), x));
  Vec p = broadcast(1.0f / 5040);
  p = fma(p, r, broadcast(1.0f / 720));
  p = fma(p, r, broadcast(1.0f / 120));
  p = fma(p, r, broadcast(1.0f / 24));
  p = fma(p, r, broadcast(1.0f / 6));
  p = fma(p, r, broadcast(0.5f));
  return fma(p, mul(r, r), r);
}

// 2^n for -126 <= n <= 127.
TENON_CPU_INLINE Vec power_of_two(VecI n) { return from_bits(shift_left<23>(add_i(n, broadcast_i(127)))); }

TENON_CPU_INLINE Vec exp(Vec x) {
  // Beyond these bounds the result is 0 or infinity.
  const Vec bounded = at_most(broadcast(89.0f), at_least(broadcast(-104.5f), x));
  VecI n;
  const Vec p = add(reduced_expm1(bounded, &n), broadcast(1.0f));
  // Two factors, as 2^n alone is not a normal number at both ends.
  const VecI half = shift_right<1>(n);
  return mul(mul(p, power_of_two(half)), power_of_two(sub_i(n, half)));
}

TENON_CPU_INLINE Vec expm1(Vec x) {
  const Vec bounded = at_most(broadcast(89.0f), at_least(broadcast(-30.0f), x));
  VecI n;
  const Vec p = reduced_expm1(bounded, &n);
  const VecI half = shift_right<1>(n);
  const Vec low = power_of_two(half);
  const Vec high = power_of_two(sub_i(n, half));
  // 2^n (p + 1) - 1 as 2^n p + (2^n - 1): exact for n = 0.
  const Vec scale = mul(low, high);
  const Vec sum = add(mul(p, scale), sub(scale, broadcast(1.0f)));
  // 2^128 overflows although the result may be finite.
  const Vec large = mul(mul(add(p, broadcast(1.0f)), low), high);
  return select(less(broadcast(80.0f), bounded), large, sum);
}

TENON_CPU_INLINE Vec tanh(Vec x) {
  const Vec magnitude = at_most(broadcast(20.0f), absolute(x));
  const Vec e = expm1(add(magnitude, magnitude));
  return copy_sign(div(e, add(e, broadcast(2.0f))), x);
}

TENON_CPU_INLINE Vec logistic(Vec x) {
  const Vec e = exp(sub(zero(), absolute(x)));
  const Vec numerator = select(less(x, zero()), e, broadcast(1.0f));
  return div(numerator, add(e, broadcast(1.0f)));
}

TENON_CPU_INLINE Vec swish(Vec x) {
  // exp(-150) is 0 in float; the bound keeps -inf * 0 away.
  return mul(at_least(broadcast(-150.0f), x), logistic(x));
}

TENON_CPU_INLINE Vec mish(Vec x) {
  // tanh(log(1 + e)) = (e^2 + 2e) / (e^2 + 2e + 2)
  const Vec e = exp(at_most(broadcast(20.0f), x));
  const Vec t = mul(e, add(e, broadcast(2.0f)));
  return mul(at_least(broadcast(-150.0f), x), div(t, add(t, broadcast(2.0f))));
}

// log(1 + f) + exponent ln 2, for sqrt(1/2) - 1 <= f <= sqrt(2) - 1: log(1 + f) = 2 atanh(f / (2 + f)).
TENON_CPU_INLINE Vec log_parts(Vec f, Vec exponent) {
  const Vec s = div(f, add(f, broadcast(2.0f)));
  const Vec s2 = mul(s, s);
  Vec p = broadcast(2.0f / 9);
  p = fma(p, s2, broadcast(2.0f / 7));
  p = fma(p, s2, broadcast(2.0f / 5));
  p = fma(p, s2, broadcast(2.0f / 3));
  p = mul(p, mul(s2, s));
  // 2 s + p = f - s f + p keeps the exact f in front.
  const Vec tail = add(fnma(s, f, p), mul(exponent, broadcast(kLn2Low)));
  return add(fma(exponent, broadcast(kLn2High), f), tail);
}

// Splits a positive normal x into 2^exponent * m with sqrt(1/2) <= m < sqrt(2).
TENON_CPU_INLINE Vec split_exponent(Vec x, Vec* exponent) {
  constexpr int32_t kSqrtHalfBits = 0x3f3504f3;
  const VecI shifted = sub_i(bits(x), broadcast_i(kSqrtHalfBits));
  const VecI n = shift_right<23>(shifted);
  *exponent = to_float(n);
  return from_bits(sub_i(bits(x), shift_left<23>(n)));
}

TENON_CPU_INLINE Vec log_limits(Vec x, Vec result) {
  const Vec infinity = broadcast(__builtin_inff());
  result = select(less(x, infinity), result, x);  // +inf and NaN
  result = select(less(zero(), x), result, sub(zero(), infinity));
  result = select(less(x, zero()), broadcast(__builtin_nanf("")), result);
  return select(is_nan(x), x, result);
}

TENON_CPU_INLINE Vec log(Vec x) {
  const Mask tiny = less(x, broadcast(1.17549435e-38f));
  const Vec normal = select(tiny, mul(x, broadcast(8388608.0f)), x);
  Vec exponent;
  const Vec m = split_exponent(normal, &exponent);
  exponent = select(tiny, sub(exponent, broadcast(23.0f)), exponent);
  return log_limits(x, log_parts(sub(m, broadcast(1.0f)), exponent));
}

TENON_CPU_INLINE Vec log1p(Vec x) {
  const Vec u = add(x, broadcast(1.0f));
  Vec exponent;
  const Vec m = split_exponent(u, &exponent);
  // Near 0 x itself is exact where 1 + x is not.
  const Mask near = less(absolute(exponent), broadcast(0.5f));
  return log_limits(u, log_parts(select(near, x, sub(m, broadcast(1.0f))), exponent));
}

}  // namespace tenon::cpu::TENON_CPU_ISA

#endif  // TENON_KERNELS_CPU_INTERNAL_MATH_H_
