#include "core/plan/placement.h"

#include <algorithm>
#include <map>

#include "core/memory/planner.h"
#include "core/plan/streams.h"

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

/// Of each tensor the nodes that write or read it.
std::vector<std::vector<std::size_t>> users_of(const Plan& plan) {
  std::vector<std::vector<std::size_t>> users(plan.tensors.size());
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    for (const auto* ids : {&plan.nodes[n].inputs, &plan.nodes[n].outputs}) {
      for (const std::uint32_t id : *ids) {
        if (id != kNoTensor) users[id].push_back(n);
      }
    }
  }
  return users;
}

/// Whether all of them are done before a node begins, but for the node itself.
bool all_before(const std::vector<std::size_t>& users, std::size_t node, const StreamOrder& order) {
  return std::all_of(users.begin(), users.end(),
                     [&](std::size_t user) { return user == node || order.before(user, node); });
}

/// Tensors that lie in the memory of others: groups, each of which gets one piece of memory. Places are offsets from
/// the group's first tensor, its root; others may lie before it.
class Sharing {
 public:
  Sharing(const Plan& plan, const StreamOrder& order)
      : plan_(plan), order_(order), users_(users_of(plan)), taken_over_(plan.tensors.size(), false) {
    for (std::uint32_t t = 0; t < plan.tensors.size(); ++t) {
      places_.push_back({t, 0});
      groups_.push_back({{t}, {0, size(t)}, plan.tensors[t].last_use});
    }
  }

  std::uint32_t root(std::uint32_t tensor) const { return places_[tensor].root; }
  /// In the memory of the group.
  std::uint64_t offset(std::uint32_t tensor) const {
    return static_cast<std::uint64_t>(places_[tensor].at - groups_[root(tensor)].range.begin);
  }
  std::uint64_t group_bytes(std::uint32_t root) const {
    return static_cast<std::uint64_t>(groups_[root].range.end - groups_[root].range.begin);
  }

  /// Puts what a view would copy where it would copy it to; a tensor that lies elsewhere already stays there.
  void share_views(const PlanNode& node) {
    for (const Share& share : node.shares) {
      const std::uint32_t input = node.inputs[share.input], output = node.outputs[share.output];
      const std::uint32_t inner = share.output_inside ? output : input, outer = share.output_inside ? input : output;
      if (!in_arena(inner) || !in_arena(outer) || root(inner) == root(outer)) continue;
      if (share.offset + plan_.tensors[inner].bytes > plan_.tensors[outer].bytes) continue;
      const std::int64_t at = places_[outer].at + static_cast<std::int64_t>(share.offset);
      if (fits(inner, root(outer), at)) move(root(inner), root(outer), at - places_[inner].at);
    }
  }

  /// An output takes the memory of an input that nobody reads any more.
  void share_in_place(const PlanNode& node, int step) {
    for (const TnAlias& alias : node.combo.aliases) {
      const std::uint32_t input = node.inputs[alias.input], output = node.outputs[alias.output];
      if (input == kNoTensor || !in_arena(input) || !in_arena(output)) continue;
      const bool dies_here = plan_.tensors[input].bytes == group_bytes(root(input)) &&
                             groups_[root(input)].last_use == step &&
                             std::count(node.inputs.begin(), node.inputs.end(), input) == 1;
      const bool alone = groups_[root(output)].members.size() == 1;
      if (!dies_here || !alone || plan_.tensors[input].bytes != plan_.tensors[output].bytes) continue;
      const std::vector<std::uint32_t>& members = groups_[root(input)].members;
      const auto done = [&](std::uint32_t member) {
        return all_before(users_[member], static_cast<std::size_t>(step), order_);
      };
      if (!std::all_of(members.begin(), members.end(), done)) continue;
      move(output, root(input), places_[input].at);
      taken_over_[input] = true;
      return;
    }
  }

  /// The last node, in the plan's order, that may run while a tensor is still needed.
  int last_use(std::uint32_t tensor) const {
    if (order_.count() == 1 || taken_over_[tensor]) return plan_.tensors[tensor].last_use;
    std::size_t last = plan_.nodes.size();
    while (--last > static_cast<std::size_t>(plan_.tensors[tensor].last_use)) {
      if (!all_before(users_[tensor], last, order_)) break;
    }
    return static_cast<int>(last);
  }

 private:
  struct Place {
    std::uint32_t root;
    std::int64_t at;
  };
  struct Range {
    std::int64_t begin, end;
  };
  struct Group {
    std::vector<std::uint32_t> members;
    Range range;
    int last_use;
  };

  std::int64_t size(std::uint32_t tensor) const { return static_cast<std::int64_t>(plan_.tensors[tensor].bytes); }
  bool in_arena(std::uint32_t tensor) const { return plan_.tensors[tensor].storage == Storage::kArena; }

  /// Whether the group of `inner` can move into the group of `to` so that `inner` begins at `at`: the two may only have
  /// in common what `inner` is, and every tensor must be aligned as its kernels want it.
  bool fits(std::uint32_t inner, std::uint32_t to, std::int64_t at) {
    const Group& from = groups_[root(inner)];
    const Group& into = groups_[to];
    const std::int64_t shift = at - places_[inner].at;
    const Range moved = {from.range.begin + shift, from.range.end + shift};
    const std::int64_t end = at + size(inner);
    if (std::max(moved.begin, into.range.begin) < at || std::min(moved.end, into.range.end) > end) return false;
    const std::int64_t begin = std::min(moved.begin, into.range.begin);
    const auto aligned = [&](const Group& group, std::int64_t by) {
      return std::all_of(group.members.begin(), group.members.end(), [&](std::uint32_t member) {
        return (places_[member].at + by - begin) % static_cast<std::int64_t>(alignments()[member]) == 0;
      });
    };
    return aligned(from, shift) && aligned(into, 0);
  }

  void move(std::uint32_t from, std::uint32_t to, std::int64_t shift) {
    Group& source = groups_[from];
    Group& target = groups_[to];
    for (const std::uint32_t member : source.members) places_[member] = {to, places_[member].at + shift};
    target.members.insert(target.members.end(), source.members.begin(), source.members.end());
    target.range.begin = std::min(target.range.begin, source.range.begin + shift);
    target.range.end = std::max(target.range.end, source.range.end + shift);
    target.last_use = std::max(target.last_use, source.last_use);
    source.members.clear();
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
  const StreamOrder& order_;
  const std::vector<std::vector<std::size_t>> users_;
  std::vector<bool> taken_over_;  ///< by an output of its last node
  std::vector<Place> places_;
  std::vector<Group> groups_;  ///< by root
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
  const StreamOrder order = data_order(*plan);
  Sharing sharing(*plan, order);
  for (const PlanNode& node : plan->nodes) sharing.share_views(node);
  for (std::size_t n = 0; n < plan->nodes.size(); ++n) {
    sharing.share_in_place(plan->nodes[n], static_cast<int>(n));
  }
  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> slot(plan->tensors.size(), 0);
  std::map<std::uint32_t, std::size_t> slots;
  for (std::uint32_t t = 0; t < plan->tensors.size(); ++t) {
    PlanTensor& tensor = plan->tensors[t];
    if (tensor.storage != Storage::kArena) continue;
    tensor.last_use = sharing.last_use(t);
    const std::uint32_t root = sharing.root(t);
    const auto [entry, added] = slots.emplace(root, lifetimes.size());
    if (added) lifetimes.push_back({sharing.group_bytes(root), tensor.first_use, tensor.last_use});
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
