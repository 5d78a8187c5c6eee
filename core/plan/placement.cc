#include "core/plan/placement.h"

#include <algorithm>
#include <map>

#include "core/memory/planner.h"

namespace tenon {
namespace {

/// In steps of nodes.
Status find_lifetimes(Plan* plan) {
  for (PlanTensor& tensor : plan->tensors) {
    TENON_ASSIGN(tensor.bytes, tensor_bytes(tensor.dtype, tensor.dims, tensor.format));
    tensor.first_use = tensor.last_use = 0;
  }
  for (std::size_t n = 0; n < plan->nodes.size(); ++n) {
    const int step = static_cast<int>(n);
    for (const std::uint32_t input : plan->nodes[n].inputs) {
      if (input != kNoTensor) plan->tensors[input].last_use = step;
    }
    for (const std::uint32_t output : plan->nodes[n].outputs) {
      plan->tensors[output].first_use = step;
      plan->tensors[output].last_use = std::max(plan->tensors[output].last_use, step);
    }
  }
  return {};
}

void share_in_place(const Plan& plan, int step, std::vector<std::uint32_t>* buffer_of) {
  const PlanNode& node = plan.nodes[static_cast<std::size_t>(step)];
  for (const TnAlias& alias : node.combo.aliases) {
    const std::uint32_t input = node.inputs[alias.input], output = node.outputs[alias.output];
    if (input == kNoTensor) continue;
    const PlanTensor& from = plan.tensors[input];
    const PlanTensor& to = plan.tensors[output];
    const bool dies_here = from.storage == Storage::kArena && from.last_use == step &&
                           std::count(node.inputs.begin(), node.inputs.end(), input) == 1;
    if (dies_here && to.storage == Storage::kArena && from.bytes == to.bytes) {
      (*buffer_of)[output] = (*buffer_of)[input];
      return;
    }
  }
}

}  // namespace

Status place_tensors(Plan* plan) {
  TENON_RETURN_IF_ERROR(find_lifetimes(plan));
  std::vector<std::uint32_t> buffer_of(plan->tensors.size());
  for (std::uint32_t t = 0; t < plan->tensors.size(); ++t) buffer_of[t] = t;
  for (std::size_t n = 0; n < plan->nodes.size(); ++n) share_in_place(*plan, static_cast<int>(n), &buffer_of);

  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> slot(plan->tensors.size(), 0);
  std::map<std::uint32_t, std::size_t> slots;
  for (std::uint32_t t = 0; t < plan->tensors.size(); ++t) {
    const PlanTensor& tensor = plan->tensors[t];
    if (tensor.storage != Storage::kArena) continue;
    const auto [entry, added] = slots.emplace(buffer_of[t], lifetimes.size());
    if (added) lifetimes.push_back({tensor.bytes, tensor.first_use, tensor.last_use});
    Lifetime& lifetime = lifetimes[entry->second];
    lifetime.bytes = std::max(lifetime.bytes, tensor.bytes);
    lifetime.first_use = std::min(lifetime.first_use, tensor.first_use);
    lifetime.last_use = std::max(lifetime.last_use, tensor.last_use);
    slot[t] = entry->second;
  }
  TENON_ASSIGN(const MemoryPlan memory, plan_memory(lifetimes));
  for (std::uint32_t t = 0; t < plan->tensors.size(); ++t) {
    if (plan->tensors[t].storage == Storage::kArena) plan->tensors[t].offset = memory.offsets[slot[t]];
  }
  plan->arena_bytes = memory.total;
  plan->arena_lower_bound = memory.lower_bound;
  return {};
}

}  // namespace tenon
