// What ops that only move elements share: any dtype with whole bytes, and strided boxes in every image format.
#ifndef TENON_PLUGINS_COMMON_MOVE_H_
#define TENON_PLUGINS_COMMON_MOVE_H_

#include <cstring>

#include <tenon/sdk/questions.hpp>
#include <tenon/sdk/site.hpp>
#include <vector>

#include "kernels/cpu/copy_strided.h"
#include "plugins/common/layout.h"
#include "plugins/common/parallel.h"

namespace tenon::plugins {

// Bytes of an element; Declined if the dtype has none of 1, 2, 4 or 8.
inline int move_bytes(int32_t dtype) {
  const int bytes = dtype_size(dtype);
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) {
    throw Declined(text("elements of ", dtype_name(dtype), " have no 1, 2, 4 or 8 bytes"));
  }
  return bytes;
}

// The dtypes in which a kernel can move input 0: its own and, where the site allows that, bf16.
inline std::vector<int32_t> moved_dtypes(const Site& site) {
  move_bytes(site.dtype(0));
  if (site.dtype(0) == TN_F32 && site.allow_bf16()) return {TN_F32, TN_BF16};
  return {site.dtype(0)};
}

// The memory axis that a logical axis has in a format of image_ports(); the block of a blocked format stays inside.
inline int physical_axis(const TnFormat& format, int axis) {
  if (!is_nhwc(format)) return axis;
  const int places[] = {0, 3, 1, 2};
  return places[axis];
}

// For references: output element `linear` of output 0 is a copy of input element from(index, linear), or 0 where that
// is negative.
template <class From>
void copy_reference(const Reference& call, int input, From&& from) {
  const int bytes = move_bytes(call.output(0).dtype());
  const char* x = static_cast<const char*>(call.input(input).data());
  char* y = static_cast<char*>(call.output(0).data());
  const TnDims dims = call.output(0).dims();
  for_each_in_box(dims, call.box(0), [&](const int64_t* index, int64_t linear, int64_t packed) {
    const int64_t at = from(index, linear);
    if (at < 0) {
      std::memset(y + packed * bytes, 0, static_cast<size_t>(bytes));
    } else {
      std::memcpy(y + packed * bytes, x + at * bytes, static_cast<size_t>(bytes));
    }
  });
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_MOVE_H_
