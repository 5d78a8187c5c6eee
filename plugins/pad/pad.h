// The pads of tenon.pad/1, shared by its definition, its kernels and rules.
#ifndef TENON_PLUGINS_PAD_PAD_H_
#define TENON_PLUGINS_PAD_PAD_H_

#include <tenon/sdk/definition.hpp>
#include <vector>

#include "plugins/common/integers.h"

namespace tenon::plugins {

inline constexpr int64_t kMostPad = int64_t{1} << 48;

struct PadAxis {
  int64_t begin = 0, end = 0;
};

// The pads of every axis: `pads` holds those of all the beginnings, then those of all the ends.
inline std::vector<PadAxis> pads_of(const std::vector<int64_t>& pads, const std::vector<int64_t>* axes, int rank) {
  const size_t count = axes ? axes->size() : static_cast<size_t>(rank);
  if (pads.size() != 2 * count) {
    throw Invalid(text("input 'pads': expected ", 2 * count, " numbers, two for each axis, found ", pads.size()));
  }
  std::vector<PadAxis> all(static_cast<size_t>(rank));
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (size_t n = 0; n < count; ++n) {
    const auto axis = axes ? static_cast<size_t>(normalize_axis((*axes)[n], rank, "axes")) : n;
    if (seen[axis]) throw Invalid(text("input 'axes': axis ", axis, " is there twice"));
    seen[axis] = true;
    all[axis] = {pads[n], pads[n + count]};
    for (const int64_t pad : {pads[n], pads[n + count]}) {
      if (pad < -kMostPad || pad > kMostPad) throw Invalid(text("input 'pads': found ", pad, ", which fits no memory"));
    }
  }
  return all;
}

inline std::vector<PadAxis> pads_from(const Tensor& pads, const Tensor* axes, int rank) {
  const std::vector<int64_t> list = axes ? integers(*axes) : std::vector<int64_t>();
  return pads_of(integers(pads), axes ? &list : nullptr, rank);
}

// The rules that spare pads.
Definitions pad_rules();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_PAD_PAD_H_
