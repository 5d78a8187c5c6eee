// Vector exp, expm1, log, log1p, tanh, erf and relatives. Polynomials are the Taylor series, cut where the next term is
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

// log(1 + exp(x)), which is x for large x.
TENON_CPU_INLINE Vec softplus(Vec x) { return add(at_least(zero(), x), log1p(exp(sub(zero(), absolute(x))))); }

// Rounded to an integer; `fix` corrects the nearest one. From 2^23 on every float is an integer.
template <class Fix>
TENON_CPU_INLINE Vec rounded(Vec x, const Fix& fix) {
  const Vec result = copy_sign(absolute(fix(to_float(round_to_int(x)))), x);
  return select(less(absolute(x), broadcast(8388608.0f)), result, x);
}
TENON_CPU_INLINE Vec round_even(Vec x) {
  return rounded(x, [](Vec nearest) { return nearest; });
}
TENON_CPU_INLINE Vec floor(Vec x) {
  return rounded(x, [x](Vec nearest) { return select(less(x, nearest), sub(nearest, broadcast(1.0f)), nearest); });
}
TENON_CPU_INLINE Vec ceil(Vec x) {
  return rounded(x, [x](Vec nearest) { return select(less(nearest, x), add(nearest, broadcast(1.0f)), nearest); });
}

// sin(x), or cos(x) with `quarter` 1, for |x| <= kSinCosRange: x = n pi / 2 + r, n and r of the nearest n. The first
// two parts of pi / 2 have 13 bits, so that their products with n, which has 10, are exact.
TENON_CPU_INLINE Vec sin_quarter(Vec x, int32_t quarter) {
  const VecI n = round_to_int(mul(x, broadcast(0.63661977236758134f)));
  const Vec nf = to_float(n);
  Vec r = sub(x, mul(nf, broadcast(1.57080078125f)));
  r = sub(r, mul(nf, broadcast(-4.454515874385834e-06f)));
  r = sub(r, mul(nf, broadcast(6.077100506506192e-11f)));
  const Vec square = mul(r, r);
  Vec sine = broadcast(1.0f / 362880);
  sine = fma(sine, square, broadcast(-1.0f / 5040));
  sine = fma(sine, square, broadcast(1.0f / 120));
  sine = fma(sine, square, broadcast(-1.0f / 6));
  sine = fma(mul(sine, square), r, r);
  Vec cosine = broadcast(-1.0f / 3628800);
  cosine = fma(cosine, square, broadcast(1.0f / 40320));
  cosine = fma(cosine, square, broadcast(-1.0f / 720));
  cosine = fma(cosine, square, broadcast(1.0f / 24));
  cosine = fma(cosine, square, broadcast(-0.5f));
  cosine = fma(cosine, square, broadcast(1.0f));
  const VecI which = add_i(n, broadcast_i(quarter));
  const Mask even = less(to_float(and_i(which, broadcast_i(1))), broadcast(0.5f));
  const VecI sign = shift_left<30>(and_i(which, broadcast_i(2)));
  return from_bits(xor_i(bits(select(even, sine, cosine)), sign));
}

// 1 - erf(x) for x >= 0 by formula 7.1.26 of Abramowitz and Stegun, Handbook of Mathematical Functions, whose absolute
// error is 1.5e-7.
TENON_CPU_INLINE Vec erfc_positive(Vec x) {
  const Vec t = div(broadcast(1.0f), fma(x, broadcast(0.3275911f), broadcast(1.0f)));
  Vec p = broadcast(1.061405429f);
  p = fma(p, t, broadcast(-1.453152027f));
  p = fma(p, t, broadcast(1.421413741f));
  p = fma(p, t, broadcast(-0.284496736f));
  p = fma(p, t, broadcast(0.254829592f));
  return mul(mul(p, t), exp(sub(zero(), mul(x, x))));
}

// For |x| < 1 the Taylor series, 2 / sqrt(pi) * sum (-1)^n x^(2n+1) / (n! (2n+1)).
TENON_CPU_INLINE Vec erf_series(Vec x) {
  const Vec square = mul(x, x);
  Vec p = broadcast(1.0f / (3628800.0f * 21));
  p = fma(p, square, broadcast(-1.0f / (362880.0f * 19)));
  p = fma(p, square, broadcast(1.0f / (40320.0f * 17)));
  p = fma(p, square, broadcast(-1.0f / (5040.0f * 15)));
  p = fma(p, square, broadcast(1.0f / (720.0f * 13)));
  p = fma(p, square, broadcast(-1.0f / (120.0f * 11)));
  p = fma(p, square, broadcast(1.0f / (24.0f * 9)));
  p = fma(p, square, broadcast(-1.0f / (6.0f * 7)));
  p = fma(p, square, broadcast(1.0f / (2.0f * 5)));
  p = fma(p, square, broadcast(-1.0f / 3));
  p = fma(p, square, broadcast(1.0f));
  return mul(mul(p, x), broadcast(1.12837916709551257f));
}

TENON_CPU_INLINE Vec erf(Vec x) {
  const Vec magnitude = absolute(x);
  const Vec far = copy_sign(sub(broadcast(1.0f), erfc_positive(magnitude)), x);
  return select(less(magnitude, broadcast(1.0f)), erf_series(x), far);
}

TENON_CPU_INLINE Vec gelu(Vec x) {
  const Vec z = mul(x, broadcast(0.70710678118654752f));
  const Vec one = broadcast(1.0f);
  const Vec tail = erfc_positive(absolute(z));  // without the cancellation that 1 + erf(z) has below -1
  const Vec far = select(less(z, zero()), tail, sub(broadcast(2.0f), tail));
  const Vec gate = select(less(absolute(z), one), add(erf_series(z), one), far);
  // The bound keeps -inf * 0 away.
  return mul(mul(at_least(broadcast(-150.0f), x), broadcast(0.5f)), gate);
}

TENON_CPU_INLINE Vec gelu_tanh(Vec x) {
  // x / 2 * (1 + tanh(u)) = x * logistic(2 u)
  const Vec bounded = at_least(broadcast(-150.0f), x);
  const Vec cube = mul(mul(bounded, bounded), mul(bounded, broadcast(0.044715f)));
  return mul(bounded, logistic(mul(add(bounded, cube), broadcast(1.59576912160573071f))));
}

}  // namespace tenon::cpu::TENON_CPU_ISA

#endif  // TENON_KERNELS_CPU_INTERNAL_MATH_H_
