#include "core/graph/convert.h"

#include <tenon/plugin/abi.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/graph/tensor.h"

namespace tenon {
namespace {

/// A float of one sign bit, an exponent and `mantissa` bits, 8 bits or fewer. Codes are those of magnitudes.
struct TinyFloat {
  int bits, mantissa, bias;
  std::uint32_t largest;   // finite
  std::uint32_t overflow;  // what larger numbers become
  bool infinity;           // `overflow` is infinity, codes above are NaN
  bool negative_zero;      // else the code of -0 is the only NaN
};

TinyFloat tiny_float(std::int32_t dtype) {
  switch (dtype) {
    case TN_F8E4M3FN:
      return {8, 3, 7, 0x7E, 0x7F, false, true};
    case TN_F8E4M3FNUZ:
      return {8, 3, 8, 0x7F, 0x80, false, false};
    case TN_F8E5M2:
      return {8, 2, 15, 0x7B, 0x7C, true, true};
    case TN_F8E5M2FNUZ:
      return {8, 2, 16, 0x7F, 0x80, false, false};
    default:  // TN_F4E2M1
      return {4, 1, 1, 0x7, 0x7, false, true};
  }
}

float tiny_to_f32(const TinyFloat& type, std::uint32_t bits) {
  const std::uint32_t sign_bit = 1u << (type.bits - 1);
  const bool negative = (bits & sign_bit) != 0;
  const std::uint32_t code = bits & (sign_bit - 1);
  if (!type.negative_zero && bits == sign_bit) return std::numeric_limits<float>::quiet_NaN();
  float magnitude;
  if (code <= type.largest) {
    const std::uint32_t exponent = code >> type.mantissa;
    const std::uint32_t fraction = code & ((1u << type.mantissa) - 1);
    const std::uint32_t hidden = exponent != 0 ? 1u << type.mantissa : 0u;
    magnitude = std::ldexp(static_cast<float>(fraction | hidden),
                           static_cast<int>(std::max(exponent, 1u)) - type.bias - type.mantissa);
  } else if (type.infinity && code == type.overflow) {
    magnitude = std::numeric_limits<float>::infinity();
  } else {
    const std::uint32_t payload = type.infinity ? (code - type.overflow) << (23 - type.mantissa) : 0x400000u;
    magnitude = std::bit_cast<float>(0x7F800000u | payload);
  }
  return std::copysign(magnitude, negative ? -1.0f : 1.0f);
}

std::uint32_t f32_to_tiny(const TinyFloat& type, float value) {
  const std::uint32_t sign_bit = 1u << (type.bits - 1);
  const std::uint32_t sign = std::signbit(value) ? sign_bit : 0;
  if (std::isnan(value)) {
    if (!type.negative_zero) return sign_bit;
    if (!type.infinity) return type.overflow == type.largest ? 0 : sign | type.overflow;
    const std::uint32_t payload = (std::bit_cast<std::uint32_t>(value) & 0x7FFFFFu) >> (23 - type.mantissa);
    return sign | (type.overflow + (payload != 0 ? payload : 1u << (type.mantissa - 1)));
  }
  std::uint32_t code = type.overflow;
  if (std::isfinite(value)) {
    const float magnitude = std::abs(value);
    const int lowest = 1 - type.bias;
    const int exponent = magnitude == 0 ? lowest : std::max(std::ilogb(magnitude), lowest);
    // At most 2^(mantissa + 1) units, so that a carry moves into the exponent by itself.
    const float units = std::nearbyint(std::ldexp(magnitude, type.mantissa - exponent));
    const std::int64_t rounded =
        (static_cast<std::int64_t>(exponent - lowest) << type.mantissa) + static_cast<std::int64_t>(units);
    if (rounded <= static_cast<std::int64_t>(type.largest)) code = static_cast<std::uint32_t>(rounded);
  }
  if (!type.negative_zero && (code == 0 || code == type.overflow)) return code;
  return sign | code;
}

// f8e8m0: 2^(code - 127), 255 is NaN.
float e8m0_to_f32(std::uint32_t bits) {
  return bits == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, static_cast<int>(bits) - 127);
}

std::uint32_t f32_to_e8m0(float value) {
  if (!(value > 0) || std::isinf(value)) return 255;
  const int exponent = std::ilogb(value);
  const int rounded = std::ldexp(value, -exponent) >= 1.5f ? exponent + 1 : exponent;
  return static_cast<std::uint32_t>(std::clamp(rounded + 127, 0, 255));
}

template <class T>
double first(const HostTensor& tensor) {
  T value;
  std::memcpy(&value, tensor.data(), sizeof(T));
  return static_cast<double>(value);
}

}  // namespace

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent == 0) {
    // Zero and subnormals: mantissa * 2^-24, exact in f32.
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) {
    const std::uint32_t payload = (magnitude >> 13) & 0x3FFu;
    return static_cast<std::uint16_t>(sign | 0x7C00u | (payload != 0 ? payload : 0x200u));
  }
  // 65520 is half way between the largest f16 (65504) and the next power's first value; ties go to the even one:
  // infinity.
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 moves the f16 subnormal's unit (2^-24) to the last bit of the f32 mantissa, and rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  const std::uint32_t rounded = magnitude - 0x38000000u + 0xFFFu + odd;
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

float bf16_to_f32(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
    return static_cast<std::uint16_t>((bits >> 16) | ((bits & 0x7F0000u) != 0 ? 0u : 0x40u));
  }
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

bool is_small_float(std::int32_t dtype) {
  return dtype == TN_F16 || dtype == TN_BF16 || (dtype >= TN_F8E4M3FN && dtype <= TN_F8E5M2FNUZ) ||
         dtype == TN_F4E2M1 || dtype == TN_F8E8M0;
}

float small_float_to_f32(std::int32_t dtype, std::uint32_t bits) {
  if (dtype == TN_F16) return f16_to_f32(static_cast<std::uint16_t>(bits));
  if (dtype == TN_BF16) return bf16_to_f32(static_cast<std::uint16_t>(bits));
  return dtype == TN_F8E8M0 ? e8m0_to_f32(bits) : tiny_to_f32(tiny_float(dtype), bits);
}

std::uint32_t f32_to_small_float(std::int32_t dtype, float value) {
  if (dtype == TN_F16) return f32_to_f16(value);
  if (dtype == TN_BF16) return f32_to_bf16(value);
  return dtype == TN_F8E8M0 ? f32_to_e8m0(value) : f32_to_tiny(tiny_float(dtype), value);
}

std::int32_t reference_dtype(std::int32_t dtype) {
  if (is_small_float(dtype)) return TN_F32;
  if (dtype == TN_U4 || dtype == TN_U2) return TN_U8;
  if (dtype == TN_I4 || dtype == TN_I2) return TN_I8;
  return dtype;
}

std::uint32_t load_bits(const void* data, int bits, std::int64_t index) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  if (bits == 16) {
    std::uint16_t word;
    std::memcpy(&word, bytes + 2 * index, 2);
    return word;
  }
  const std::int64_t per_byte = 8 / bits;
  const unsigned byte = bytes[index / per_byte];
  return (byte >> (index % per_byte * bits)) & ((1u << bits) - 1);
}

void store_bits(void* data, int bits, std::int64_t index, std::uint32_t value) {
  auto* bytes = static_cast<unsigned char*>(data);
  if (bits == 16) {
    const auto word = static_cast<std::uint16_t>(value);
    std::memcpy(bytes + 2 * index, &word, 2);
    return;
  }
  const std::int64_t per_byte = 8 / bits;
  const auto shift = static_cast<unsigned>(index % per_byte * bits);
  const unsigned mask = ((1u << bits) - 1) << shift;
  unsigned char& byte = bytes[index / per_byte];
  byte = static_cast<unsigned char>((byte & ~mask) | ((value << shift) & mask));
}

void widen(std::int32_t dtype, const void* from, void* to, std::int64_t count) {
  const int bits = dtype_bits(dtype);
  const std::int32_t wide = reference_dtype(dtype);
  if (wide == dtype) {
    if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * static_cast<std::size_t>(bits / 8));
  } else if (wide == TN_F32) {
    float table[256];  // of the 4- and 8-bit types
    for (std::uint32_t code = 0; bits <= 8 && code < 1u << bits; ++code) table[code] = small_float_to_f32(dtype, code);
    auto* values = static_cast<float*>(to);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t code = load_bits(from, bits, i);
      values[i] = bits <= 8 ? table[code] : small_float_to_f32(dtype, code);
    }
  } else {
    auto* bytes = static_cast<std::uint8_t*>(to);
    const std::uint32_t sign = wide == TN_I8 ? 1u << (bits - 1) : 0;
    for (std::int64_t i = 0; i < count; ++i) {
      bytes[i] = static_cast<std::uint8_t>((load_bits(from, bits, i) ^ sign) - sign);
    }
  }
}

void narrow(std::int32_t dtype, const void* from, void* to, std::int64_t count) {
  const int bits = dtype_bits(dtype);
  if (reference_dtype(dtype) == dtype) {
    if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * static_cast<std::size_t>(bits / 8));
    return;
  }
  if (bits < 8 && count > 0) static_cast<unsigned char*>(to)[(count * bits - 1) / 8] = 0;
  if (is_small_float(dtype)) {
    const auto* values = static_cast<const float*>(from);
    for (std::int64_t i = 0; i < count; ++i) store_bits(to, bits, i, f32_to_small_float(dtype, values[i]));
  } else {
    const auto* bytes = static_cast<const std::uint8_t*>(from);
    for (std::int64_t i = 0; i < count; ++i) store_bits(to, bits, i, bytes[i]);
  }
}

std::optional<double> single_number(const HostTensor& tensor) {
  const Result<std::int64_t> count = element_count(tensor.dims());
  if (!count.ok() || *count != 1) return std::nullopt;
  float value = 0;
  switch (tensor.dtype()) {
    case TN_F32:
      return first<float>(tensor);
    case TN_F64:
      return first<double>(tensor);
    case TN_I32:
      return first<std::int32_t>(tensor);
    case TN_I64:
      return first<std::int64_t>(tensor);
    case TN_F16:
    case TN_BF16:
      widen(tensor.dtype(), tensor.data(), &value, 1);
      return value;
    default:
      return std::nullopt;
  }
}

}  // namespace tenon
