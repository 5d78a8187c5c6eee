// Image formats: TnFormat as cpu::Layout, physical dims, and the zero filling of blocked formats.
#ifndef TENON_PLUGINS_COMMON_LAYOUT_H_
#define TENON_PLUGINS_COMMON_LAYOUT_H_

#include <tenon/sdk/format.hpp>
#include <tenon/sdk/tensor.hpp>

#include "kernels/common/layout.h"

namespace tenon::plugins {

// The formats that image kernels take, as ports; in bf16 only those that some processor with bf16 favours.
inline std::initializer_list<Port (*)(int32_t)> image_ports(int32_t dtype = TN_F32) {
  static constexpr std::initializer_list<Port (*)(int32_t)> ports = {row, nhwc, nchw8c, nchw16c};
  static constexpr std::initializer_list<Port (*)(int32_t)> narrow_ports = {row, nhwc, nchw16c};
  return dtype == TN_BF16 ? narrow_ports : ports;
}

// Declined for a format that is none of row, nhwc, nchw8c and nchw16c.
inline cpu::Layout to_layout(const TnFormat& format) {
  if (is_row(format)) return cpu::Layout::kNchw;
  if (is_nhwc(format)) return cpu::Layout::kNhwc;
  if (channel_block(format) == 8) return cpu::Layout::kNchw8c;
  if (channel_block(format) == 16) return cpu::Layout::kNchw16c;
  throw Declined("expected the format row, nhwc, nchw8c or nchw16c");
}

// Dims in memory order: [N,H,W,C] for nhwc, [N,ceil(C/b),H,W,b] for blocked formats, unchanged for row.
inline Dims physical_dims(const TnFormat& format, const Dims& dims) {
  if (is_nhwc(format)) return {dims[0], dims[2], dims[3], dims[1]};
  if (const int block = channel_block(format)) return {dims[0], (dims[1] + block - 1) / block, dims[2], dims[3], block};
  return dims;
}

// Writes zeros to the channels that fill up the last block of a packed tensor in a blocked format.
template <class T>
void zero_filling(const TnFormat& format, const Dims& dims, T* data) {
  const int block = channel_block(format);
  if (block == 0 || dims[1] % block == 0) return;
  const int64_t blocks = dims[1] / block + 1;
  const int64_t pixels = dims[2] * dims[3];
  for (int64_t n = 0; n < dims[0]; ++n) {
    T* last = data + (n * blocks + blocks - 1) * pixels * block;
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      for (int64_t c = dims[1] % block; c < block; ++c) last[pixel * block + c] = T(0);
    }
  }
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_LAYOUT_H_
