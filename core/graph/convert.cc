#include "core/graph/convert.h"

#include <tenon/plugin/abi.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace tenon {

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
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);
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
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

void widen_to_f32(std::int32_t dtype, const void* from, float* to, std::int64_t count) {
  const auto* bytes = static_cast<const unsigned char*>(from);
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, bytes + 2 * i, 2);
    to[i] = dtype == TN_F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
}

void narrow_from_f32(std::int32_t dtype, const float* from, void* to, std::int64_t count) {
  auto* bytes = static_cast<unsigned char*>(to);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint16_t bits = dtype == TN_F16 ? f32_to_f16(from[i]) : f32_to_bf16(from[i]);
    std::memcpy(bytes + 2 * i, &bits, 2);
  }
}

}  // namespace tenon
