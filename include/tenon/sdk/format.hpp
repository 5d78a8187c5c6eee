/// Formats and ports: how a kernel says which tensors it takes.
///   kernel.combo({nhwc(TN_F32), row(TN_F32)}, {nhwc(TN_F32)})
#ifndef TENON_SDK_FORMAT_HPP
#define TENON_SDK_FORMAT_HPP

#include <cstdint>
#include <cstring>
#include <string>

#include "../plugin/site.h"
#include "dtype.hpp"

namespace tenon {
inline namespace sdk {

inline TnFormat row_format() { return TN_ROW_INIT; }
inline TnFormat nhwc_format() { return TN_NHWC_INIT; }
inline TnFormat nchw_blocked_format(uint16_t block) { return TN_NCHW_BLOCKED_INIT(block); }

/// Equal in every field that counts for the kind.
inline bool same_format(const TnFormat& a, const TnFormat& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == TN_FORMAT_ROW || a.kind == TN_FORMAT_NONE) return true;
  if (a.kind == TN_FORMAT_OPAQUE) return std::strncmp(a.opaque, b.opaque, sizeof a.opaque) == 0;
  if (a.padding != b.padding || a.rank != b.rank || a.num_blocks != b.num_blocks) return false;
  if (std::memcmp(a.order, b.order, a.rank) != 0) return false;
  for (int n = 0; n < a.num_blocks; ++n) {
    if (a.block_axis[n] != b.block_axis[n] || a.block_size[n] != b.block_size[n]) return false;
  }
  return true;
}

inline bool is_row(const TnFormat& format) { return format.kind == TN_FORMAT_ROW; }
inline bool is_nhwc(const TnFormat& format) { return same_format(format, nhwc_format()); }
/// 8 or 16 for nchw8c and nchw16c, any block size of that family; 0 for every other format.
inline int channel_block(const TnFormat& format) {
  if (format.kind != TN_FORMAT_AXES || format.num_blocks != 1) return 0;
  return same_format(format, nchw_blocked_format(format.block_size[0])) ? format.block_size[0] : 0;
}

/// Elements in memory of a packed tensor, filling of blocks included.
inline int64_t physical_elements(const TnFormat& format, const TnDims& dims) {
  int64_t count = 1;
  for (int axis = 0; axis < dims.rank; ++axis) {
    int64_t size = dims.d[axis];
    if (format.kind == TN_FORMAT_AXES) {
      int64_t block = 1;
      for (int n = 0; n < format.num_blocks; ++n) {
        if (format.block_axis[n] == axis) block *= format.block_size[n];
      }
      size = (size + block - 1) / block * block;
    }
    count *= size;
  }
  return count;
}

/// Some block of the tensor has filling cells.
inline bool has_filling(const TnFormat& format, const TnDims& dims) {
  int64_t elements = 1;
  for (int axis = 0; axis < dims.rank; ++axis) elements *= dims.d[axis];
  return physical_elements(format, dims) != elements;
}

/// A TnPort with manners.
struct Port : TnPort {
  Port(int32_t element, const TnFormat& layout) : TnPort{element, 0, layout, 0, 0} {}
  explicit Port(const TnPort& port) : TnPort(port) {}
  /// Reads or writes through TnTensor.strides.
  Port any_strides() const {
    Port copy = *this;
    copy.flags |= TN_PORT_ANY_STRIDES;
    return copy;
  }
  /// Lives in host memory.
  Port host() const {
    Port copy = *this;
    copy.memory = TN_MEMORY_HOST;
    return copy;
  }
  Port aligned(uint32_t bytes) const {
    Port copy = *this;
    copy.alignment = bytes;
    return copy;
  }
};

inline Port row(int32_t dtype) { return {dtype, row_format()}; }
inline Port nhwc(int32_t dtype) { return {dtype, nhwc_format()}; }
inline Port nchw8c(int32_t dtype) { return {dtype, nchw_blocked_format(8)}; }
inline Port nchw16c(int32_t dtype) { return {dtype, nchw_blocked_format(16)}; }
inline Port f32_row() { return row(TN_F32); }
inline Port f32_nhwc() { return nhwc(TN_F32); }
inline Port f32_nchw8c() { return nchw8c(TN_F32); }
inline Port f32_nchw16c() { return nchw16c(TN_F32); }
/// An absent optional input, or a constant of whatever dtype that is read at initialize only.
inline Port any_constant() { return {TN_DTYPE_NONE, row_format()}; }

}  // namespace sdk
}  // namespace tenon

#endif  // TENON_SDK_FORMAT_HPP
