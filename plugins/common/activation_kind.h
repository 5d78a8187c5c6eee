// Activations as functions of kernels/cpu/pointwise.h.
#ifndef TENON_PLUGINS_COMMON_ACTIVATION_KIND_H_
#define TENON_PLUGINS_COMMON_ACTIVATION_KIND_H_

#include <tenon/sdk/expressions.hpp>

#include "kernels/cpu/pointwise.h"

namespace tenon::plugins {

// Of kIdentity: kLinear, which computes alpha * x + beta.
inline cpu::UnaryKind unary_kind(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kIdentity:
      return cpu::UnaryKind::kLinear;
    case ActivationKind::kRelu:
      return cpu::UnaryKind::kRelu;
    case ActivationKind::kClip:
      return cpu::UnaryKind::kClip;
    case ActivationKind::kLeaky:
      return cpu::UnaryKind::kLeakyRelu;
    case ActivationKind::kLogistic:
      return cpu::UnaryKind::kLogistic;
    case ActivationKind::kTanh:
      return cpu::UnaryKind::kTanh;
    case ActivationKind::kSwish:
      return cpu::UnaryKind::kSwish;
    case ActivationKind::kElu:
      return cpu::UnaryKind::kElu;
    case ActivationKind::kMish:
      return cpu::UnaryKind::kMish;
    case ActivationKind::kHardSwish:
      return cpu::UnaryKind::kHardSwish;
    case ActivationKind::kGelu:
      return cpu::UnaryKind::kGelu;
    case ActivationKind::kGeluTanh:
      return cpu::UnaryKind::kGeluTanh;
  }
  return cpu::UnaryKind::kLinear;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_ACTIVATION_KIND_H_
