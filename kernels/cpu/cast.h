// cast: conversion between element types. The rule, for every pair:
// - float types to a narrower float type: round to nearest, ties to even; too large becomes infinity; NaN stays a
// (quiet)
//   NaN. f64 to f16 or bf16 rounds once, not through f32.
// - float to integer: truncates toward zero; values beyond the range give the nearest limit (C++ leaves that
// undefined);
//   NaN gives 0.
// - integer to integer: keeps the low bits (as C++ does), so 300 to u8 is 44 and -1 to u8 is 255.
// - integer to float: round to nearest, ties to even; i64 and u64 to f16 or bf16 round once.
// - to bool: 0 and -0.0 give 0, all else (NaN too) gives 1. From bool: any non-zero byte is 1.
#ifndef TENON_KERNELS_CPU_CAST_H_
#define TENON_KERNELS_CPU_CAST_H_

#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tenon::cpu {

enum class ElementType : int { kF32, kF64, kF16, kBf16, kI32, kI64, kI8, kU8, kBool, kI16, kU16, kU32, kU64 };

// Bytes of one element.
int element_type_size(ElementType type) noexcept;

// output[i] = input[i] converted, i < count. Buffers are aligned to their element and must not overlap, except that
// they may be equal when both types have the same size. Nothing is allocated or thrown. REQUIRES: isa <= detect_isa().
void cast(ElementType from, ElementType to, int64_t count, const void* input, void* output, const Parallel& parallel,
          Isa isa) noexcept;

}  // namespace tenon::cpu

#endif  // TENON_KERNELS_CPU_CAST_H_
