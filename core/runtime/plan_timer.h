// Times a whole plan as the runtime will run it.
//
// Thread rule: one thread at a time per plan.
#pragma once

#include <functional>

#include <tenon/status.hpp>

#include "core/plan/plan.h"
#include "core/runtime/engine.h"

namespace tenon {

/// Loads the plan as an engine with a context, random inputs and outputs in the device's memory (on a GPU the layers
/// are recorded and launched as a whole). Each call of what comes back runs it for about 2 ms, at least once, and gives
/// milliseconds per run. Errors are those of loading and running.
Result<std::function<Result<double>()>> make_plan_timer(const Plan& plan, const EngineOptions& options);

}  // namespace tenon
