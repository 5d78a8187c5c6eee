// Which tensors of the network a plan does not hold, because fusion left them out: a note in the plan's metadata, so
// that whoever asks for one learns where it went.
//
// Thread rule: pure functions.
#pragma once

#include <map>
#include <string>

#include "core/graph/graph.h"
#include "core/plan/plan.h"

namespace tenon {

/// By name, the number of the layer that its node became part of; -1: of none.
using RemovedTensors = std::map<std::string, int>;

/// Compares the plan with the network that it was built from. Notes nothing in plans that keep no names.
void note_removed_tensors(const Graph& network, Plan* plan);
RemovedTensors removed_tensors(const Plan& plan);

}  // namespace tenon
