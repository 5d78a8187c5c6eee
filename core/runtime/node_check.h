// Whether a node of a plan is what its op makes of its inputs. The plan's reader knows neither ops nor kernels, and
// kernels rely on dims and attributes that fit each other.
//
// Thread rule: pure function.
#pragma once

#include <memory>

#include <tenon/status.hpp>

#include "core/plan/plan.h"
#include "registry/registry.h"

namespace tenon {

/// kInvalid: number of inputs or outputs, attributes, dims or dtypes do not fit; says which. An op that is not loaded
/// cannot be asked, and its node is taken as it is.
Status check_node(const Plan& plan, const PlanNode& node, const std::shared_ptr<const Registry>& registry);

}  // namespace tenon
