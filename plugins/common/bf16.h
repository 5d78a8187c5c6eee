// Kernels that compute f32 layers with tensors of bf16, where the site allows that.
#ifndef TENON_PLUGINS_COMMON_BF16_H_
#define TENON_PLUGINS_COMMON_BF16_H_

#include <cstdint>
#include <cstring>
#include <tenon/sdk/site.hpp>

namespace tenon::plugins {

// Elements of tensors as floats, for loops over either dtype.
inline float load_float(float value) { return value; }
inline float load_float(uint16_t bits) {
  const uint32_t pattern = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &pattern, sizeof value);
  return value;
}
inline void store_float(float value, float* to) { *to = value; }
// To the nearest number of bf16, ties to even; NaN stays NaN.
inline void store_float(float value, uint16_t* to) {
  uint32_t pattern;
  std::memcpy(&pattern, &value, sizeof pattern);
  const uint32_t rounded = (pattern + 0x7fff + (pattern >> 16 & 1)) >> 16;
  *to = static_cast<uint16_t>(value != value ? pattern >> 16 | 0x40 : rounded);
}

// Declined unless the site allows bf16.
inline void bf16_supports(const Site& site) {
  if (!site.allow_bf16()) throw Declined("bf16 is not allowed here (precision bf16)");
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_BF16_H_
