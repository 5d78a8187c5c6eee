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

/// Tensors that lie in the memory of others: each has a root and an offset in it.
class Sharing {
 public:
  explicit Sharing(const Plan& plan) : plan_(plan) {
    for (std::uint32_t t = 0; t < plan.tensors.size(); ++t) {
      places_.push_back({t, 0});
      last_use_.push_back(plan.tensors[t].last_use);
      members_.push_back({t});
    }
  }

  std::uint32_t root(std::uint32_t tensor) const { return places_[tensor].root; }
  std::uint64_t offset(std::uint32_t tensor) const { return places_[tensor].offset; }

  /// Puts what a view would copy where it would copy it to; a tensor that lies elsewhere already stays there.
  void share_views(const PlanNode& node) {
    for (const Share& share : node.shares) {
      const std::uint32_t input = node.inputs[share.input], output = node.outputs[share.output];
      const std::uint32_t inner = share.output_inside ? output : input, outer = share.output_inside ? input : output;
      if (!in_arena(inner) || !in_arena(outer) || root(inner) == root(outer) || !whole(inner)) continue;
      if (share.offset % alignments()[inner] != 0) continue;
      const std::uint64_t at = offset(outer) + share.offset;
      if (at + plan_.tensors[inner].bytes > plan_.tensors[root(outer)].bytes) continue;
      move(root(inner), root(outer), at);
    }
  }

  /// An output takes the memory of an input that nobody reads any more.
  void share_in_place(const PlanNode& node, int step) {
    for (const TnAlias& alias : node.combo.aliases) {
      const std::uint32_t input = node.inputs[alias.input], output = node.outputs[alias.output];
      if (input == kNoTensor || !in_arena(input) || !in_arena(output)) continue;
      const bool dies_here = whole(input) && last_use_[root(input)] == step &&
                             std::count(node.inputs.begin(), node.inputs.end(), input) == 1;
      const bool alone = members_[root(output)].size() == 1;
      if (!dies_here || !alone || plan_.tensors[input].bytes != plan_.tensors[output].bytes) continue;
      move(output, root(input), 0);
      return;
    }
  }

 private:
  struct Place {
    std::uint32_t root;
    std::uint64_t offset;
  };

  bool in_arena(std::uint32_t tensor) const { return plan_.tensors[tensor].storage == Storage::kArena; }
  /// Whether a tensor takes all the memory of its root, so that both can move.
  bool whole(std::uint32_t tensor) const {
    return offset(tensor) == 0 && plan_.tensors[tensor].bytes == plan_.tensors[root(tensor)].bytes;
  }

  void move(std::uint32_t from, std::uint32_t to, std::uint64_t at) {
    for (const std::uint32_t member : members_[from]) places_[member] = {to, at + places_[member].offset};
    members_[to].insert(members_[to].end(), members_[from].begin(), members_[from].end());
    members_[from].clear();
    last_use_[to] = std::max(last_use_[to], last_use_[from]);
  }

  /// What the kernels ask of the address of each tensor.
  const std::vector<std::uint64_t>& alignments() {
    if (!alignments_.empty()) return alignments_;
    alignments_.assign(plan_.tensors.size(), 1);
    const auto note = [&](std::uint32_t tensor, const TnPort& port) {
      if (tensor != kNoTensor) alignments_[tensor] = std::max<std::uint64_t>(alignments_[tensor], port.alignment);
    };
    for (const PlanNode& node : plan_.nodes) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) note(node.inputs[i], node.combo.inputs[i]);
      for (std::size_t i = 0; i < node.outputs.size(); ++i) note(node.outputs[i], node.combo.outputs[i]);
    }
    return alignments_;
  }

  const Plan& plan_;
  std::vector<Place> places_;
  std::vector<int> last_use_;                        ///< of a root: of all that lies in it
  std::vector<std::vector<std::uint32_t>> members_;  ///< of a root
  std::vector<std::uint64_t> alignments_;
};

}  // namespace

bool is_in_place(const Plan& plan, const PlanNode& node, const Share& share) {
  const PlanTensor& input = plan.tensors[node.inputs[share.input]];
  const PlanTensor& output = plan.tensors[node.outputs[share.output]];
  if (input.storage != Storage::kArena || output.storage != Storage::kArena) return false;
  return share.output_inside ? output.offset == input.offset + share.offset
                             : input.offset == output.offset + share.offset;
}

bool does_nothing(const Plan& plan, const PlanNode& node) {
  return !node.shares.empty() && std::all_of(node.shares.begin(), node.shares.end(),
                                             [&](const Share& share) { return is_in_place(plan, node, share); });
}

Status place_tensors(Plan* plan) {
  TENON_RETURN_IF_ERROR(find_lifetimes(plan));
  Sharing sharing(*plan);
  for (const PlanNode& node : plan->nodes) sharing.share_views(node);
  for (std::size_t n = 0; n < plan->nodes.size(); ++n) {
    sharing.share_in_place(plan->nodes[n], static_cast<int>(n));
  }
  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> slot(plan->tensors.size(), 0);
  std::map<std::uint32_t, std::size_t> slots;
  for (std::uint32_t t = 0; t < plan->tensors.size(); ++t) {
    const PlanTensor& tensor = plan->tensors[t];
    if (tensor.storage != Storage::kArena) continue;
    const std::uint32_t root = sharing.root(t);
    const auto [entry, added] = slots.emplace(root, lifetimes.size());
    if (added) lifetimes.push_back({plan->tensors[root].bytes, tensor.first_use, tensor.last_use});
    Lifetime& lifetime = lifetimes[entry->second];
    lifetime.first_use = std::min(lifetime.first_use, tensor.first_use);
    lifetime.last_use = std::max(lifetime.last_use, tensor.last_use);
    slot[t] = entry->second;
  }
  TENON_ASSIGN(const MemoryPlan memory, plan_memory(lifetimes));
  for (std::uint32_t t = 0; t < plan->tensors.size(); ++t) {
    PlanTensor& tensor = plan->tensors[t];
    if (tensor.storage == Storage::kArena) tensor.offset = memory.offsets[slot[t]] + sharing.offset(t);
  }
  plan->arena_bytes = memory.total;
  plan->arena_lower_bound = memory.lower_bound;
  return {};
}

}  // namespace tenon
