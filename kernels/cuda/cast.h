// cast: conversion between element types, by the rules of kernels/cpu/cast.h:
// - float types to a narrower float type: round to nearest, ties to even; too large becomes infinity; NaN stays a NaN.
//   f64 to f16 or bf16 rounds once, not through f32.
// - float to integer: truncates toward zero; values beyond the range give the nearest limit; NaN gives 0.
// - integer to integer: keeps the low bits, so 300 to u8 is 44 and -1 to u8 is 255.
// - integer to float: round to nearest, ties to even; i64 to f16 or bf16 rounds once.
// - to bool: 0 and -0.0 give 0, all else (NaN too) gives 1. From bool: any non-zero byte is 1.
#ifndef TENON_KERNELS_CUDA_CAST_H_
#define TENON_KERNELS_CUDA_CAST_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/element_type.h"

namespace tenon::cuda {

// output[i] = input[i] converted, i < count. Buffers are aligned to their element and must not overlap, except that
// they may be equal when both types have the same size.
// Launches on the stream, allocates nothing, does not wait, may be captured; returns the error of the launch.
cudaError_t cast(ElementType from, ElementType to, int64_t count, const void* input, void* output,
                 cudaStream_t stream) noexcept;

}  // namespace tenon::cuda

#endif  // TENON_KERNELS_CUDA_CAST_H_
