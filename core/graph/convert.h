// f16 and bf16 as bit patterns: conversions to and from f32, rounding to nearest even.
#pragma once

#include <cstdint>

namespace tenon {

float f16_to_f32(std::uint16_t bits);
/// Overflow gives infinity; NaN stays NaN.
std::uint16_t f32_to_f16(float value);
float bf16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);

/// Converts `count` elements between f32 and `dtype` (TN_F16 or TN_BF16).
void widen_to_f32(std::int32_t dtype, const void* from, float* to, std::int64_t count);
void narrow_from_f32(std::int32_t dtype, const float* from, void* to, std::int64_t count);

}  // namespace tenon
