// What a plan needs to know of the other dims that its inputs may have.
#include <algorithm>

#include <fmt/format.h>

#include "core/builder/lowering.h"
#include "core/plan/plan_site.h"
#include "core/plan/shape_model.h"

namespace tenon {
namespace {

/// Scratch memory of a plan: activations, then the workspace of the layer that wants most.
Result<std::uint64_t> scratch_bytes(const Plan& plan, const BuildOptions& options) {
  std::uint64_t workspace = 0;
  for (const PlanNode& node : plan.nodes) {
    TENON_ASSIGN(const auto instance, configure_node(plan, node, *options.registry, *options.device));
    workspace = std::max({workspace, instance->sizes().workspace, instance->candidate().tactic.workspace});
  }
  return (plan.arena_bytes + 255) / 256 * 256 + workspace;
}

void widen(const TnDims& dims, PlanIo* io) {
  for (int axis = 0; axis < dims.rank; ++axis) {
    io->min.d[axis] = std::min(io->min.d[axis], dims.d[axis]);
    io->max.d[axis] = std::max(io->max.d[axis], dims.d[axis]);
  }
}

/// Of outputs whose dims depend on data only the largest dims are known.
void mark_bounds(Plan* plan) {
  std::vector<bool> bounded(plan->tensors.size(), false);
  for (const PlanNode& node : plan->nodes) {
    const bool bound =
        node.data_dependent || std::any_of(node.inputs.begin(), node.inputs.end(),
                                           [&](std::uint32_t id) { return id != kNoTensor && bounded[id]; });
    for (const std::uint32_t output : node.outputs) bounded[output] = bound;
  }
  for (PlanIo& output : plan->outputs) {
    if (bounded[output.tensor]) std::fill_n(output.min.d, output.min.rank, 0);
  }
}

}  // namespace

Status finish_profile(const BuildOptions& options, Plan* plan) {
  mark_bounds(plan);
  if (!plan->has_profile()) return {};
  TENON_ASSIGN(const ShapeModel model, ShapeModel::create(*plan, options.registry));
  for (const bool largest : {false, true}) {
    std::vector<TnDims> dims;
    for (const PlanIo& input : plan->inputs) dims.push_back(largest ? input.max : input.min);
    const auto where = [&](const Status& status) {
      return status.with_context(fmt::format("with the {} dims of the profile", largest ? "largest" : "least"));
    };
    const Result<Plan> other = model.specialize(*plan, dims);
    if (!other.ok()) return where(other.status());
    const Result<std::uint64_t> scratch = scratch_bytes(*other, options);
    if (!scratch.ok()) return where(scratch.status());
    plan->scratch_bytes = std::max(plan->scratch_bytes, *scratch);
    for (PlanIo& output : plan->outputs) widen(other->tensors[output.tensor].dims, &output);
  }
  return {};
}

}  // namespace tenon
