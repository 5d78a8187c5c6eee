// Copies between packed and strided memory on the host: how a caller's strides meet a kernel that wants packed tensors.
//
// Thread rule: pure functions.
#pragma once

#include <tenon/plugin/abi.h>

#include <cstddef>
#include <cstdint>

namespace tenon {

/// Copies every element of `dims`; strides are in elements, one per axis, and may be 0 or negative. Allocates nothing.
/// REQUIRES: element_bytes is 1, 2, 4 or 8; source and destination do not overlap.
void strided_copy(void* destination, const std::int64_t* destination_strides, const void* source,
                  const std::int64_t* source_strides, const TnDims& dims, std::size_t element_bytes);

/// True if the strides are those of packed row-major memory. Axes of extent 1 have any stride; so have empty tensors.
bool is_packed(const TnDims& dims, const std::int64_t* strides);

}  // namespace tenon
