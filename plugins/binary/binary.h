// What the sources of the family share.
#ifndef TENON_PLUGINS_BINARY_BINARY_H_
#define TENON_PLUGINS_BINARY_BINARY_H_

#include <tenon/sdk/definition.hpp>
#include <tenon/sdk/questions.hpp>
#include <tenon/sdk/site.hpp>
#include <tenon/sdk/tensor.hpp>

#include "kernels/cpu/pointwise.h"

namespace tenon::plugins {

// The shape of the operation in the memory order of `format`. Invalid if the operands do not broadcast.
cpu::BroadcastShape binary_shape(const TnFormat& format, const TnDims& a_dims, const TnDims& b_dims);

// One tactic; Declined for formats that cannot hold both operands.
void binary_tactics(const Site& site, const Combo& combo, Tactics& tactics);

// Generated integers that divide are not 0, where the result is an error.
void generate_divisors(const Generate& question);

Definitions pow_definitions();
Definitions mod_definitions();

}  // namespace tenon::plugins

#endif  // TENON_PLUGINS_BINARY_BINARY_H_
