// Dtypes that C++ has no type for: their bits, and the dtypes in which references of ops see them.
#pragma once

#include <cstdint>
#include <optional>

namespace tenon {

class HostTensor;

float f16_to_f32(std::uint16_t bits);
/// Rounds to nearest even. Overflow gives infinity; NaN stays NaN, with those bits of its payload that fit.
std::uint16_t f32_to_f16(float value);
float bf16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);

/// f16, bf16, the 8-bit floats, f4e2m1.
bool is_small_float(std::int32_t dtype);
/// The exact value of a small float. f8e4m3 and f8e5m2: "FP8 Formats for Deep Learning", 2022 (fn: no infinity, fnuz:
/// no infinity and no -0); f4e2m1 and f8e8m0: "OCP Microscaling Formats", 2023.
float small_float_to_f32(std::int32_t dtype, std::uint32_t bits);
/// Rounds to nearest even. What is beyond the largest number becomes infinity (f16, bf16, f8e5m2), NaN (fn and fnuz) or
/// the largest number (f4e2m1, which has neither; its NaN is 0). f8e8m0 holds powers of two: ties go up, what is below
/// the smallest one becomes it, and 0, negative numbers and what is too large become NaN.
std::uint32_t f32_to_small_float(std::int32_t dtype, float value);

/// The dtype in which references see a dtype: f32 for small floats, u8 for u4 and u2, i8 for i4 and i2, else itself.
std::int32_t reference_dtype(std::int32_t dtype);
/// `count` elements of packed memory as elements of reference_dtype(dtype). Elements below a byte share bytes, the
/// first one in the low bits. Copies where the dtypes are the same. REQUIRES: dtype has a fixed size.
void widen(std::int32_t dtype, const void* from, void* to, std::int64_t count);
/// Back again: small floats are rounded, small integers keep their low bits, unused bits of the last byte are 0.
void narrow(std::int32_t dtype, const void* from, void* to, std::int64_t count);

/// The number that a tensor of one element holds (f32, f64, i32, i64, f16, bf16); nothing for other tensors.
std::optional<double> single_number(const HostTensor& tensor);

/// Element `index` of packed memory whose elements have 2, 4, 8 or 16 bits.
std::uint32_t load_bits(const void* data, int bits, std::int64_t index);
/// Leaves the neighbours in the same byte as they are.
void store_bits(void* data, int bits, std::int64_t index, std::uint32_t value);

}  // namespace tenon
