// Tolerances that ops give for the dtype that a kernel computes in.
#ifndef TENON_PLUGINS_COMMON_TOLERANCE_H_
#define TENON_PLUGINS_COMMON_TOLERANCE_H_

#include <tenon/sdk/dtype.hpp>

namespace tenon::plugins {

// Results that pass through a few roundings: some units in the last place. Integers are exact.
inline TnTolerance pointwise_tolerance(int32_t dtype) {
  switch (dtype) {
    case TN_F32:
      return {1e-6, 1e-5};
    case TN_F64:
      return {1e-12, 1e-11};
    case TN_F16:
      return {1e-3, 4e-3};
    case TN_BF16:
      return {4e-3, 2e-2};
    default:
      return {0.0, 0.0};
  }
}

// Sums of many products: errors grow with the square root of the length, while the terms may cancel.
inline TnTolerance sum_tolerance(int32_t dtype) {
  switch (dtype) {
    case TN_F32:
      return {1e-5, 1e-4};
    case TN_F64:
      return {1e-11, 1e-10};
    case TN_F16:
      return {1e-2, 1e-2};
    case TN_BF16:
      return {5e-2, 4e-2};
    default:
      return {0.0, 0.0};
  }
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_TOLERANCE_H_
