// Elements of any dtype as double, from their bits alone: independent of what Tenon itself converts with.
#ifndef TENON_TESTS_ONNX_ELEMENTS_H_
#define TENON_TESTS_ONNX_ELEMENTS_H_

#include <tenon/plugin/abi.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace tenon::testing {

/// A float of one sign bit, `exponent` bits with `bias`, `mantissa` bits. `ieee`: the largest exponent is for infinity
/// and NaN; otherwise it is a usual one and `nan` is the only NaN (without the sign; or, for "fnuz", minus zero).
struct FloatForm {
  int exponent, mantissa, bias;
  bool ieee;
  int nan;
};

inline double decode(std::uint32_t bits, const FloatForm& form) {
  const int sign_at = form.exponent + form.mantissa;
  const auto magnitude = static_cast<int>(bits & ((1u << sign_at) - 1));
  const bool negative = (bits >> sign_at & 1) != 0;
  if (form.nan >= 0 && magnitude == form.nan) {
    if (form.nan != 0 || negative) return std::numeric_limits<double>::quiet_NaN();
  }
  const int exponent = magnitude >> form.mantissa;
  const int fraction = magnitude & ((1 << form.mantissa) - 1);
  double value;
  if (form.ieee && exponent == (1 << form.exponent) - 1) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, 1 - form.bias - form.mantissa);
  } else {
    value = std::ldexp((1 << form.mantissa) + fraction, exponent - form.bias - form.mantissa);
  }
  return negative ? -value : value;
}

inline int element_bits(std::int32_t dtype) {
  switch (dtype) {
    case TN_U2:
    case TN_I2:
      return 2;
    case TN_U4:
    case TN_I4:
    case TN_F4E2M1:
      return 4;
    case TN_U16:
    case TN_I16:
    case TN_F16:
    case TN_BF16:
      return 16;
    case TN_F32:
    case TN_I32:
    case TN_U32:
      return 32;
    case TN_F64:
    case TN_I64:
    case TN_U64:
      return 64;
    default:
      return 8;
  }
}

inline bool is_float(std::int32_t dtype) {
  return dtype == TN_F32 || dtype == TN_F64 || dtype == TN_F16 || dtype == TN_BF16 ||
         (dtype >= TN_F8E4M3FN && dtype <= TN_F8E5M2FNUZ) || dtype == TN_F4E2M1 || dtype == TN_F8E8M0;
}

template <class T>
T load(const void* data, std::int64_t n) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + n * static_cast<std::int64_t>(sizeof(T)), sizeof value);
  return value;
}

/// Element n of packed data (small ones share a byte, the first in its low bits). Integers beyond 2^53 are compared by
/// their bits, not through this.
inline double element(const void* data, std::int32_t dtype, std::int64_t n) {
  const int bits = element_bits(dtype);
  if (bits < 8) {
    const int per_byte = 8 / bits;
    const auto byte = load<std::uint8_t>(data, n / per_byte);
    const int raw = byte >> (n % per_byte * bits) & ((1 << bits) - 1);
    if (dtype == TN_F4E2M1) return decode(static_cast<std::uint32_t>(raw), {2, 1, 1, false, -1});
    const bool is_signed = dtype == TN_I4 || dtype == TN_I2;
    return is_signed && raw >= 1 << (bits - 1) ? raw - (1 << bits) : raw;
  }
  switch (dtype) {
    case TN_F32:
      return static_cast<double>(load<float>(data, n));
    case TN_F64:
      return load<double>(data, n);
    case TN_F16:
      return decode(load<std::uint16_t>(data, n), {5, 10, 15, true, -1});
    case TN_BF16:
      return decode(load<std::uint16_t>(data, n), {8, 7, 127, true, -1});
    case TN_F8E4M3FN:
      return decode(load<std::uint8_t>(data, n), {4, 3, 7, false, 0x7f});
    case TN_F8E4M3FNUZ:
      return decode(load<std::uint8_t>(data, n), {4, 3, 8, false, 0});
    case TN_F8E5M2:
      return decode(load<std::uint8_t>(data, n), {5, 2, 15, true, -1});
    case TN_F8E5M2FNUZ:
      return decode(load<std::uint8_t>(data, n), {5, 2, 16, false, 0});
    case TN_F8E8M0: {
      const int exponent = load<std::uint8_t>(data, n);
      return exponent == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, exponent - 127);
    }
    case TN_I8:
      return load<std::int8_t>(data, n);
    case TN_U16:
      return load<std::uint16_t>(data, n);
    case TN_I16:
      return load<std::int16_t>(data, n);
    case TN_U32:
      return load<std::uint32_t>(data, n);
    case TN_I32:
      return load<std::int32_t>(data, n);
    case TN_U64:
      return static_cast<double>(load<std::uint64_t>(data, n));
    case TN_I64:
      return static_cast<double>(load<std::int64_t>(data, n));
    default:  // u8, bool
      return load<std::uint8_t>(data, n);
  }
}

}  // namespace tenon::testing

#endif  // TENON_TESTS_ONNX_ELEMENTS_H_
