// Kernels that compute f32 layers with tensors of bf16, where the site allows that.
#ifndef TENON_PLUGINS_COMMON_BF16_H_
#define TENON_PLUGINS_COMMON_BF16_H_

#include <tenon/sdk/site.hpp>

namespace tenon::plugins {

// Declined unless the site allows bf16.
inline void bf16_supports(const Site& site) {
  if (!site.allow_bf16()) throw Declined("bf16 is not allowed here (precision bf16)");
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_BF16_H_
