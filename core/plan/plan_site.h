// From a node of a plan back to what a kernel is asked about and to the kernel that was chosen.
#pragma once

#include <functional>
#include <memory>
#include <tenon/status.hpp>

#include "core/plan/plan.h"
#include "core/site/candidate.h"
#include "core/site/instance.h"
#include "core/site/site.h"
#include "registry/registry.h"

namespace tenon {

/// The description of the node's site with the dims and constants of the plan.
SiteDesc describe_site(const Plan& plan, const PlanNode& node);

/// The chosen candidate. kNotFound if no loaded plugin has the kernel.
Result<Candidate> candidate_of(const PlanNode& node, const Registry& registry, Device& device);

/// An instance for the dims of the plan, which need not be those that it was tuned for: a tactic that its kernel does
/// not offer for them, or that `prepare` fails with, gives way to the first one of the same formats that works.
Result<std::unique_ptr<Instance>> configure_node(const Plan& plan, const PlanNode& node, const Registry& registry,
                                                 Device& device,
                                                 const std::function<Status(Instance*)>& prepare = nullptr);

}  // namespace tenon
