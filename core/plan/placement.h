// Placement: sizes, lifetimes and places of a plan's tensors.
#pragma once

#include <tenon/status.hpp>

#include "core/plan/plan.h"

namespace tenon {

/// Sets bytes, first and last use of all tensors from their dims, and offsets in the activation memory; an output that
/// may take the memory of an input does. With several streams tensors share memory only if one is done with before the
/// other is written whatever the streams do. Sets the plan's arena_bytes and arena_lower_bound.
Status place_tensors(Plan* plan);

}  // namespace tenon
