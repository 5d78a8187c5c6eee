// Epilogues of sites as the products and convolutions of kernels/cpu can apply them:
//   result (+ one residual operand) (then none, relu, leaky, clip, logistic, swish, gelu or gelu_tanh).
#ifndef TENON_PLUGINS_COMMON_EPILOGUE_H_
#define TENON_PLUGINS_COMMON_EPILOGUE_H_

#include <tenon/sdk/expressions.hpp>
#include <tenon/sdk/site.hpp>

#include "kernels/cpu/epilogue.h"
#include "plugins/common/epilogue_steps.h"

namespace tenon::plugins {

struct CpuEpilogue {
  cpu::Epilogue activation;
  int residual = -1;  // number among the site's extra operands; -1: none
};

// Declined for activations other than these.
inline cpu::Epilogue to_cpu(const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::kIdentity:
      return cpu::Epilogue::none();
    case ActivationKind::kRelu:
      return cpu::Epilogue::relu();
    case ActivationKind::kLeaky:
      return cpu::Epilogue::leaky(static_cast<float>(activation.alpha));
    case ActivationKind::kClip:
      return cpu::Epilogue::clip(static_cast<float>(activation.alpha), static_cast<float>(activation.beta));
    case ActivationKind::kLogistic:
      return cpu::Epilogue::of(cpu::Epilogue::Kind::kLogistic);
    case ActivationKind::kSwish:
      return cpu::Epilogue::of(cpu::Epilogue::Kind::kSwish);
    case ActivationKind::kGelu:
      return cpu::Epilogue::of(cpu::Epilogue::Kind::kGelu);
    case ActivationKind::kGeluTanh:
      return cpu::Epilogue::of(cpu::Epilogue::Kind::kGeluTanh);
    default:
      throw Declined("the epilogue's activation is none of relu, leaky, clip, logistic, swish, gelu and gelu_tanh");
  }
}

// The epilogue of output 0. Declined if it has another form.
inline CpuEpilogue cpu_epilogue(const Site& site) {
  const EpilogueSteps steps = epilogue_steps(site);
  return {to_cpu(steps.activation), steps.residual};
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_EPILOGUE_H_
