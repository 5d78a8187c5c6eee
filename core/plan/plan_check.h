// Consistency of a plan: what an engine relies on without looking again.
//
// Thread rule: pure function.
#pragma once

#include <tenon/status.hpp>

#include "core/plan/plan.h"

namespace tenon {

/// Every index, enumeration, shape, size and offset fits the rest of the plan. kInvalid names the first thing that does
/// not. Neither plugins nor a device are asked.
Status check_plan(const Plan& plan);

}  // namespace tenon
