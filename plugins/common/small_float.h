// Floats below 32 bits in the plugins: the limits that saturating ops need, and their bits. References of ops see such
// floats as f32 (op.h), so most ops need none of this.
#ifndef TENON_PLUGINS_COMMON_SMALL_FLOAT_H_
#define TENON_PLUGINS_COMMON_SMALL_FLOAT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tenon/sdk/dtype.hpp>

namespace tenon::plugins {

// A float of one sign bit, an exponent and `mantissa` bits. Codes are those of magnitudes; what is above `largest` is
// infinity, then NaN, where the type has infinity, and NaN where it has none. f8e8m0 is no such type.
struct SmallFloat {
  int bits = 0;  // 0: the dtype is none
  int mantissa = 0;
  int bias = 0;
  uint32_t largest = 0;
  bool infinity = false;
  bool negative_zero = true;  // else the pattern of -0 is the only NaN
};

inline SmallFloat small_float(int32_t dtype) {
  switch (dtype) {
    case TN_F16:
      return {16, 10, 15, 0x7BFF, true, true};
    case TN_BF16:
      return {16, 7, 127, 0x7F7F, true, true};
    case TN_F8E4M3FN:
      return {8, 3, 7, 0x7E, false, true};
    case TN_F8E4M3FNUZ:
      return {8, 3, 8, 0x7F, false, false};
    case TN_F8E5M2:
      return {8, 2, 15, 0x7B, true, true};
    case TN_F8E5M2FNUZ:
      return {8, 2, 16, 0x7F, false, false};
    case TN_F4E2M1:
      return {4, 1, 1, 0x7, false, true};
    default:
      return {};
  }
}

inline bool is_float8(int32_t dtype) { return dtype >= TN_F8E4M3FN && dtype <= TN_F8E5M2FNUZ; }

inline float small_float_value(int32_t dtype, uint32_t bits) {
  if (dtype == TN_F8E8M0) {
    return bits == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, static_cast<int>(bits) - 127);
  }
  const SmallFloat type = small_float(dtype);
  const uint32_t sign = 1u << (type.bits - 1);
  const uint32_t code = bits & (sign - 1);
  if (!type.negative_zero && bits == sign) return std::numeric_limits<float>::quiet_NaN();
  if (code > type.largest) {
    // The payload of a NaN stays where it is: in the first bits of the fraction.
    const uint32_t fraction = type.infinity ? (code - type.largest - 1) << (23 - type.mantissa) : 0x400000;
    const uint32_t pattern = ((bits & sign) != 0 ? 0x80000000u : 0u) | 0x7f800000 | fraction;
    float value;
    std::memcpy(&value, &pattern, sizeof value);
    return value;
  }
  const uint32_t exponent = code >> type.mantissa;
  const uint32_t fraction = code & ((1u << type.mantissa) - 1);
  const uint32_t hidden = exponent != 0 ? 1u << type.mantissa : 0;
  const float magnitude = std::ldexp(static_cast<float>(fraction | hidden),
                                     static_cast<int>(std::max(exponent, 1u)) - type.bias - type.mantissa);
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

// The largest finite number of a small float that is not f8e8m0.
inline float largest_of(int32_t dtype) { return small_float_value(dtype, small_float(dtype).largest); }

// The bits of the nearest number, ties to even; what is beyond the largest number becomes infinity where the type has
// it, else NaN, else (f4e2m1) the largest number. Of f8e8m0: value is a power of two or NaN.
inline uint32_t small_float_bits(int32_t dtype, float value) {
  uint32_t pattern;
  std::memcpy(&pattern, &value, sizeof pattern);
  const SmallFloat type = small_float(dtype);
  if (dtype == TN_F8E8M0) return std::isnan(value) ? 255 : static_cast<uint32_t>(std::ilogb(value) + 127);
  const uint32_t sign = pattern >> 31 << (type.bits - 1);
  if (std::isnan(value) && type.negative_zero && dtype != TN_F4E2M1) {
    const uint32_t payload = (pattern & 0x7fffff) >> (23 - type.mantissa);
    return sign | (type.largest + 1 + (type.infinity ? std::max(payload, 1u) : 0));
  }
  const float magnitude = std::abs(value);
  if (magnitude == 0) return type.negative_zero ? sign : 0;
  uint32_t code = type.largest + 1;
  if (std::isfinite(value)) {
    const int lowest = 1 - type.bias;
    const int exponent = std::max(std::ilogb(magnitude), lowest);
    const float units = std::nearbyint(std::ldexp(magnitude, type.mantissa - exponent));
    // A carry moves into the exponent by itself.
    const uint64_t rounded = (static_cast<uint64_t>(exponent - lowest) << type.mantissa) + static_cast<uint64_t>(units);
    code = static_cast<uint32_t>(std::min<uint64_t>(rounded, type.largest + 1));
  }
  if (code > type.largest && dtype == TN_F4E2M1) return std::isnan(value) ? 0 : sign | type.largest;
  if (!type.negative_zero && (code > type.largest || code == 0)) return code == 0 ? 0 : 1u << (type.bits - 1);
  return sign | code;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_SMALL_FLOAT_H_
