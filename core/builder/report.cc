#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/builder/builder.h"
#include "core/memory/planner.h"

namespace tenon {
namespace {

using nlohmann::json;

json rerank_json(const CacheGraph::Rerank& entry) {
  return {{"layer", entry.layer}, {"key", to_text(entry.key)},     {"tactic_hash", to_text(entry.tactic)},
          {"ms", entry.ms},       {"rival", to_text(entry.rival)}, {"rival_ms", entry.rival_ms}};
}

json streams_json(const StreamChoice& streams) {
  const auto time = [](const std::optional<double>& ms) { return ms ? json(*ms) : json(); };
  return {{"count", streams.count},
          {"events", streams.events},
          {"ms_one", time(streams.ms_one)},
          {"ms_several", time(streams.ms_several)}};
}

json names_of(const Plan& plan, const std::vector<std::uint32_t>& tensors) {
  json names = json::array();
  for (const std::uint32_t tensor : tensors) {
    if (tensor != kNoTensor) names.push_back(plan.tensors[tensor].name);
  }
  return names;
}

/// Of what the kernel lets share memory, what the placement made use of.
json shares_json(const Plan& plan, const PlanNode& node) {
  json shares = json::array();
  for (const TnAlias& alias : node.combo.aliases) {
    if (node.inputs[alias.input] == kNoTensor) continue;
    const PlanTensor& from = plan.tensors[node.inputs[alias.input]];
    const PlanTensor& to = plan.tensors[node.outputs[alias.output]];
    if (from.storage != Storage::kArena || to.storage != Storage::kArena) continue;
    if (from.offset >= to.offset + to.bytes || to.offset >= from.offset + from.bytes) continue;
    const bool in_place = alias.kind == TN_MAY_ALIAS || alias.kind == TN_MUST_ALIAS;
    shares.push_back({{"output", to.name}, {"input", from.name}, {"in_place", in_place}});
  }
  for (const Share& share : node.shares) {
    if (!is_in_place(plan, node, share)) continue;
    const PlanTensor& from = plan.tensors[node.inputs[share.input]];
    const PlanTensor& to = plan.tensors[node.outputs[share.output]];
    shares.push_back({{"output", to.name}, {"input", from.name}, {"in_place", false}});
  }
  return shares;
}

json layer_json(const Plan& plan, std::size_t step, const LayerTrace& trace) {
  const PlanNode& node = plan.nodes[step];
  const CandidateTime& time = trace.result.times[trace.chosen];
  const PlanTensor& first = plan.tensors[node.outputs.front()];
  return {{"name", node.name},
          {"op", node.op_id},
          {"kernel", node.kernel},
          {"tactic", node.tactic.params},
          {"tactic_hash", to_text(node.tactic_hash)},
          {"combo", node.combo.text()},
          {"key", to_text(node.key)},
          {"ms", time.ms},
          {"device", plan.device_kind},
          {"dtype", dtype_name(first.dtype)},
          {"format", format_text(first.format)},
          {"fused_from", node.members},
          {"inputs", names_of(plan, node.inputs)},
          {"outputs", names_of(plan, node.outputs)},
          {"shares", shares_json(plan, node)},
          {"step", step},
          {"stream", node.stream}};
}

const char* status_text(const CandidateTime& time, bool chosen) {
  if (chosen) return "chosen";
  switch (time.state) {
    case CandidateTime::State::kMeasured:
    case CandidateTime::State::kCached:
      return "measured";
    case CandidateTime::State::kEstimated:
      return "estimated";
    case CandidateTime::State::kRejected:
    case CandidateTime::State::kQuarantined:
      return "rejected";
    case CandidateTime::State::kDeclined:
      return "declined";
    case CandidateTime::State::kUnmeasured:
      break;
  }
  return "unmeasured";
}

}  // namespace

json report_json(const BuildOutput& output) {
  const Plan& plan = output.plan;
  json layers = json::array(), views = json::array(), values = json::array(), rules = json::array(),
       alternatives = json::array(), reranked = json::array();
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    (does_nothing(plan, plan.nodes[n]) ? views : layers).push_back(layer_json(plan, n, output.layers[n]));
  }
  std::uint64_t weights = 0;
  for (const auto& constant : plan.constants) weights += constant->bytes();
  for (const PlanTensor& tensor : plan.tensors) {
    if (tensor.storage != Storage::kArena) continue;
    values.push_back({{"name", tensor.name},
                      {"bytes", tensor.bytes},
                      {"first_use", tensor.first_use},
                      {"last_use", tensor.last_use},
                      {"offset", tensor.offset}});
  }
  for (const auto& [id, count] : output.rules) rules.push_back({{"id", id}, {"count", count}});
  for (const Alternative& entry : output.alternatives) {
    alternatives.push_back({{"rule", entry.rule},
                            {"layer", entry.layer},
                            {"taken", entry.taken},
                            {"ms", entry.ms},
                            {"rival_ms", entry.rival_ms},
                            {"reason", entry.reason}});
  }
  for (const CacheGraph::Rerank& entry : output.reranked) reranked.push_back(rerank_json(entry));
  return {{"layers", layers},
          {"views", views},
          {"cache",
           {{"hits", output.counts.hits},
            {"misses", output.counts.misses},
            {"rejected", output.rejected},
            {"measured", output.counts.measured}}},
          {"memory",
           {{"weights", weights},
            {"persistent", plan.persistent_bytes},
            {"context_host", plan.context_host_bytes},
            {"context_device", plan.context_device_bytes},
            {"activation", plan.arena_bytes},
            {"activation_lower_bound", plan.arena_lower_bound},
            {"alignment", kArenaAlignment},
            {"workspace", plan.workspace_bytes}}},
          {"values", values},
          {"rules", rules},
          {"alternatives", alternatives},
          {"reranked", reranked},
          {"streams", streams_json(output.streams)},
          {"device", plan.device_signature},
          {"build_ms", output.build_ms}};
}

Result<json> explain_json(const BuildOutput& output, const std::string& name) {
  const LayerTrace* found = nullptr;
  std::vector<std::string> names;
  for (const LayerTrace& layer : output.layers) {
    const bool member = std::find(layer.members.begin(), layer.members.end(), name) != layer.members.end();
    if (layer.name == name || (found == nullptr && member)) found = &layer;
    names.push_back(layer.name);
    names.insert(names.end(), layer.members.begin(), layer.members.end());
  }
  if (found == nullptr) {
    const std::string near = nearest(name, names);
    return Status(Code::kNotFound, fmt::format("no layer and no node is called \"{}\"{}", name,
                                               near.empty() ? "; tenon inspect lists the names of an engine, "
                                                              "--report those of a build"
                                                            : "; did you mean \"" + near + "\"?"));
  }
  json candidates = json::array();
  for (std::size_t i = 0; i < found->result.times.size(); ++i) {
    const CandidateTime& time = found->result.times[i];
    const Candidate& candidate = found->site->enumeration.candidates[i];
    candidates.push_back({{"kernel", candidate.kernel.kernel->name},
                          {"combo", candidate.combo_text},
                          {"tactic", candidate.tactic.params},
                          {"tactic_hash", to_text(candidate.hash)},
                          {"ms", time.has_time() ? json(time.ms) : json()},
                          {"status", status_text(time, i == found->chosen)},
                          {"reason", time.reason}});
  }
  for (const Decline& decline : found->site->enumeration.declines) {
    candidates.push_back({{"kernel", decline.kernel},
                          {"combo", decline.combo},
                          {"tactic", decline.tactic},
                          {"tactic_hash", ""},
                          {"ms", json()},
                          {"status", "declined"},
                          {"reason", decline.reason}});
  }
  return json{{"node", found->name},
              {"op", found->site->site->desc().op_id},
              {"key", to_text(found->site->key)},
              {"candidates", candidates}};
}

}  // namespace tenon
