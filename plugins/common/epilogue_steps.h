// The form of epilogue that products and convolutions apply on every device: (+ one operand) (then one activation).
#ifndef TENON_PLUGINS_COMMON_EPILOGUE_STEPS_H_
#define TENON_PLUGINS_COMMON_EPILOGUE_STEPS_H_

#include <tenon/sdk/expressions.hpp>
#include <tenon/sdk/site.hpp>

namespace tenon::plugins {

struct EpilogueSteps {
  Activation activation{ActivationKind::kIdentity, 0, 0};
  int residual = -1;  // number among the site's extra operands, of the output's shape and dtype; -1: none
};

// The epilogue of output 0. Declined if it has another form.
inline EpilogueSteps epilogue_steps(const Site& site) {
  const auto steps = match_epilogue(site.epilogue(0));
  if (!steps) throw Declined("the epilogue is no chain of activations and binary operations");
  EpilogueSteps result;
  size_t at = 0;
  if (at < steps->size() && (*steps)[at].kind == EpilogueStep::Kind::kAdd) {
    result.residual = static_cast<int>((*steps)[at].operand) - 1;
    if (site.extra_dims(result.residual) != site.output_dims(0) ||
        site.extra_dtype(result.residual) != site.output_dtype(0)) {
      throw Declined("the epilogue adds an operand that is not of the output's shape and dtype");
    }
    ++at;
  }
  if (at < steps->size() && (*steps)[at].kind == EpilogueStep::Kind::kActivation) {
    result.activation = (*steps)[at++].activation;
  }
  if (at < steps->size()) throw Declined("the epilogue has more steps than one addition and one activation");
  return result;
}

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_COMMON_EPILOGUE_STEPS_H_
