// Epilogues of sites as the products and convolutions of kernels/cpu can apply them:
//   result (+ one residual operand) (then none, relu, leaky or clip).
#ifndef TENON_PLUGINS_COMMON_EPILOGUE_H_
#define TENON_PLUGINS_COMMON_EPILOGUE_H_

#include <tenon/sdk/expressions.hpp>
#include <tenon/sdk/site.hpp>

#include "kernels/cpu/epilogue.h"

namespace tenon::plugins {

struct CpuEpilogue {
  cpu::Epilogue activation;
  int residual = -1;  // number among the site's extra operands; -1: none
};

// Declined for activations other than none, relu, leaky and clip.
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
    default:
      throw Declined("the epilogue's activation is none of relu, leaky and clip");
  }
}

// The epilogue of output 0. Declined if it has another form.
inline CpuEpilogue cpu_epilogue(const Site& site) {
  const auto steps = match_epilogue(site.epilogue(0));
  if (!steps) throw Declined("the epilogue is no chain of activations and binary operations");
  CpuEpilogue result;
  size_t at = 0;
  if (at < steps->size() && (*steps)[at].kind == EpilogueStep::Kind::kAdd) {
    result.residual = static_cast<int>((*steps)[at].operand) - 1;
    if (site.extra_dims(result.residual) != site.output_dims(0) || site.extra_dtype(result.residual) != TN_F32) {
      throw Declined("the epilogue adds an operand that is not of the output's shape and f32");
    }
    ++at;
  }
  if (at < steps->size() && (*steps)[at].kind == EpilogueStep::Kind::kActivation) {
    result.activation = to_cpu((*steps)[at++].activation);
  }
  if (at < steps->size()) throw Declined("the epilogue has more steps than one addition and one activation");
  return result;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_EPILOGUE_H_
