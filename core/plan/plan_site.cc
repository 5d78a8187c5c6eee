#include "core/plan/plan_site.h"

#include <fmt/format.h>

namespace tenon {

SiteDesc describe_site(const Plan& plan, const PlanNode& node) {
  SiteDesc desc;
  desc.op_id = node.op_id;
  desc.attrs = node.attrs;
  desc.num_inputs = static_cast<std::uint32_t>(node.inputs.size() - node.num_extra);
  desc.num_extra = node.num_extra;
  desc.num_outputs = static_cast<std::uint32_t>(node.outputs.size());
  desc.epilogues = node.epilogues;
  desc.flags = node.site_flags;
  const auto dtype = [&](std::uint32_t id) {
    const std::int32_t stored = plan.tensors[id].dtype;
    return (desc.flags & TN_SITE_ALLOW_BF16) != 0 && stored == TN_BF16 ? std::int32_t{TN_F32} : stored;
  };
  for (const std::uint32_t id : node.inputs) {
    const bool constant = id != kNoTensor && plan.tensors[id].storage == Storage::kConstant;
    desc.dims.push_back(id == kNoTensor ? TnDims{} : plan.tensors[id].dims);
    desc.dtypes.push_back(id == kNoTensor ? static_cast<std::int32_t>(TN_DTYPE_NONE) : dtype(id));
    desc.constants.push_back(constant ? plan.constants[plan.tensors[id].index] : nullptr);
  }
  for (const std::uint32_t id : node.outputs) {
    desc.dims.push_back(plan.tensors[id].dims);
    desc.dtypes.push_back(dtype(id));
  }
  return desc;
}

Result<Candidate> candidate_of(const PlanNode& node, const Registry& registry, Device& device) {
  Candidate candidate;
  candidate.kernel = find_kernel(registry, node.op_id, node.kernel, device);
  if (!candidate.kernel) {
    return Status(Code::kNotFound,
                  fmt::format("kernel {} of {} is not among the loaded plugins{}; load the version of the plugin that "
                              "the engine was built with, or build it again",
                              node.kernel, node.op_id,
                              node.plugin_id.empty() ? "" : ", though plugin " + node.plugin_id + " is"));
  }
  candidate.combo = node.combo;
  candidate.tactic = node.tactic;
  candidate.hash = node.tactic_hash;
  candidate.fused_epilogue = node.fused_epilogue;
  candidate.combo_text = node.combo.text();
  return candidate;
}

Result<std::unique_ptr<Instance>> configure_node(const Plan& plan, const PlanNode& node, const Registry& registry,
                                                 Device& device, const std::function<Status(Instance*)>& prepare) {
  TENON_ASSIGN(const Candidate chosen, candidate_of(node, registry, device));
  const std::shared_ptr<const Site> site = Site::create(describe_site(plan, node), device);
  const auto attempt = [&](const Candidate& candidate) -> Result<std::unique_ptr<Instance>> {
    TENON_ASSIGN(std::unique_ptr<Instance> instance, Instance::configure(site, candidate));
    if (prepare != nullptr) TENON_RETURN_IF_ERROR(prepare(instance.get()));
    return instance;
  };
  Status status = check_offered(*site, chosen);
  if (status.ok()) {
    auto instance = attempt(chosen);
    if (instance.ok()) return instance;
    status = instance.status();
  }
  EnumerateOptions options;
  options.allow_nondeterministic = (node.site_flags & TN_SITE_ALLOW_NONDETERMINISTIC) != 0;
  for (const Candidate& candidate : enumerate(*site, registry, options).candidates) {
    if (node.kernel != candidate.kernel.kernel->name || candidate.combo_text != chosen.combo_text) continue;
    auto instance = attempt(candidate);
    if (instance.ok()) return instance;
  }
  return status.with_context("layer '" + node.name + "'");
}

}  // namespace tenon
