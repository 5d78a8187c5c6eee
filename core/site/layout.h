// Where the elements of a tensor lie: index to offset, padding, and plain conversion between formats on the host.
#pragma once

#include <cstdint>
#include <optional>

#include <tenon/plugin/abi.h>

namespace tenon {

/// Elements that a packed tensor occupies, the fill of padded blocks included.
std::int64_t physical_elements(const TnDims& dims, const TnFormat& format);

/// Offset in elements of a logical index. REQUIRES: tensor.strides are set; the format is ROW or AXES.
std::int64_t element_offset(const TnTensor& tensor, const std::int64_t* index);

/// Offset in elements of the box `inner` that begins at `start` of a packed tensor, if it lies there in one piece
/// exactly as a packed tensor of its own would, fill of padded blocks included.
std::optional<std::int64_t> contiguous_offset(const TnDims& outer, const TnDims& inner, const std::int64_t* start,
                                              const TnFormat& format);

/// Zeroes the fill of padded blocks of a packed tensor whose elements have 1, 2, 4 or 8 bytes.
void zero_padding(const TnTensor& tensor);

/// Converts between any two formats (not opaque) on the host by plain loops; padding of `to` is zeroed. Same dtype and
/// dims.
void reformat_host(const TnTensor& from, const TnTensor& to);

/// Advances a row-major index within `extents`; false after the last one.
bool next_index(std::int64_t* index, const std::int64_t* extents, int rank);

}  // namespace tenon
