// Rules of plugins: find a match, let the plugin rewrite, check the result, take it back if it is wrong, and name the
// new node after those it replaces.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/failure.h"
#include "core/base/text.h"
#include "core/graph/passes.h"

namespace tenon {
namespace {

/// Where a node came from. Rules that undo each other make nodes that are many rewrites away from few original nodes;
/// useful chains are not deeper than a small multiple of the nodes that they consumed.
struct Provenance {
  std::set<NodeId> origins;
  int depth = 0;
  std::string rule;
  std::string other_rule;  ///< the last one before `rule` that was not `rule`
};
constexpr int kFreeDepth = 32;
constexpr int kDepthPerOrigin = 4;

/// A place that reads an output of the matched root: what it reads afterwards is what the rule put there.
struct Slot {
  std::uint32_t root_output = 0;
  NodeId reader = kNoId;  ///< kNoId: the graph output number `index`
  std::size_t index = 0;
};

std::vector<Slot> find_slots(const Graph& graph, NodeId root) {
  std::vector<Slot> slots;
  const std::vector<ValueId>& outputs = graph.node(root).outputs;
  for (std::uint32_t output = 0; output < outputs.size(); ++output) {
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      if (graph.outputs()[i] == outputs[output]) slots.push_back({output, kNoId, i});
    }
    for (NodeId id = 0; id < graph.nodes().size(); ++id) {
      const Node& node = graph.node(id);
      for (std::size_t i = 0; node.alive && i < node.inputs.size(); ++i) {
        if (node.inputs[i] == outputs[output]) slots.push_back({output, id, i});
      }
    }
  }
  return slots;
}

ValueId read_slot(const Graph& graph, const Slot& slot) {
  return slot.reader == kNoId ? graph.outputs()[slot.index] : graph.node(slot.reader).inputs[slot.index];
}

bool node_name_occurs(const Graph& graph, const std::string& name, NodeId except) {
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    if (id != except && graph.node(id).alive && graph.node(id).name == name) return true;
  }
  return false;
}

bool value_name_occurs(const Graph& graph, const std::string& name, ValueId except) {
  for (ValueId id = 0; id < graph.values().size(); ++id) {
    if (id != except && graph.value(id).alive && graph.value(id).name == name) return true;
  }
  return false;
}

class Engine {
 public:
  /// With `choose` the CANDIDATE rules, without it the ALWAYS rules.
  Engine(Graph* graph, const std::vector<FusionRef>& rules, const FusionOptions& options, Logger& logger,
         const RuleChooser* choose = nullptr)
      : graph_(graph), all_rules_(rules), options_(options), logger_(logger), choose_(choose) {
    const int mode = choose == nullptr ? TN_FUSION_ALWAYS : TN_FUSION_CANDIDATE;
    for (const FusionRef& rule : rules) {
      if (rule.fusion->mode == mode && options.disabled.count(rule.fusion->id) == 0) rules_.push_back(&rule);
    }
    std::sort(rules_.begin(), rules_.end(), [](const FusionRef* a, const FusionRef* b) {
      if (a->fusion->priority != b->fusion->priority) return a->fusion->priority > b->fusion->priority;
      return std::string_view(a->fusion->id) < std::string_view(b->fusion->id);
    });
  }

  Result<std::map<std::string, int>> run() {
    while (true) {
      TENON_ASSIGN(order_, graph_->topological_order());
      TENON_ASSIGN(const bool applied, step());
      if (!applied) return counts_;
    }
  }

 private:
  /// One application of the first rule that matches somewhere; false if none does.
  Result<bool> step() {
    for (const FusionRef* rule : rules_) {
      for (const NodeId root : order_) {
        Match match;
        if (failed_.count({rule, root}) != 0 || !rule->pattern.match(*graph_, root, &match)) continue;
        if (!allowed(*rule, root, match)) continue;
        TENON_ASSIGN(const bool applied,
                     choose_ == nullptr ? apply(*rule, root, match) : try_candidate(*rule, root, match));
        if (applied) return true;
      }
    }
    return false;
  }

  /// Applies the rule and lets the chooser compare; true if it was kept. Where it was not, it is not tried again.
  Result<bool> try_candidate(const FusionRef& rule, NodeId root, const Match& match) {
    Graph without = *graph_;
    std::map<std::string, int> counts = counts_;
    TENON_ASSIGN(const bool applied, apply(rule, root, match));
    if (!applied) return false;
    const std::string layer = std::as_const(*graph_).node(new_root_).name;
    TENON_ASSIGN(const auto followed, apply_always_rules(graph_, all_rules_, options_, logger_));
    TENON_ASSIGN(const bool taken, (*choose_)(*rule.fusion, layer, match.nodes, without, *graph_));
    if (taken) {
      for (const auto& [id, count] : followed) counts_[id] += count;
      return true;
    }
    *graph_ = std::move(without);
    counts_ = std::move(counts);
    failed_.insert({&rule, root});
    return false;
  }

  std::string where(const FusionRef& rule, NodeId root) const {
    return fmt::format("fusion rule {} at node \"{}\"", rule.fusion->id, graph_->node(root).name);
  }

  bool allowed(const FusionRef& rule, NodeId root, const Match& match) {
    if (options_.keep_choices_apart) {
      std::set<NodeId> choices;
      for (const NodeId id : match.nodes) {
        if (id != kNoId && (graph_->node(id).op.op->flags & TN_OP_ELEMENTWISE) == 0) choices.insert(id);
      }
      if (choices.size() > 1) return false;
    }
    if (rule.fusion->check == nullptr) return true;
    clear_failure();
    const Status status = take_failure(rule.fusion->check(rule.host, rule.fusion, graph_->handle(), match.handle()),
                                       where(rule, root) + ": check");
    if (status.ok()) return true;
    if (status.code() != Code::kDeclined) {
      logger_.warning(status.message());
      failed_.insert({&rule, root});
    } else if (declined_.insert({&rule, root}).second) {
      logger_.verbose(status.message());
    }
    return false;
  }

  Result<bool> apply(const FusionRef& rule, NodeId root, const Match& match) {
    const std::vector<Slot> slots = find_slots(*graph_, root);
    if (slots.empty()) return false;
    const std::string place = where(rule, root);
    std::vector<NodeId> matched;
    for (const NodeId id : order_) {
      if (std::find(match.nodes.begin(), match.nodes.end(), id) != match.nodes.end()) matched.push_back(id);
    }
    first_new_node_ = static_cast<NodeId>(graph_->nodes().size());
    first_new_value_ = static_cast<ValueId>(graph_->values().size());
    const std::vector<ValueId> inputs_before = graph_->inputs();
    const std::size_t outputs_before = graph_->outputs().size();

    graph_->begin_rewrite(matched);
    clear_failure();
    Status status = take_failure(rule.fusion->rewrite(rule.host, rule.fusion, graph_->handle(), match.handle()),
                                 place + ": rewrite");
    if (status.ok() && (graph_->inputs() != inputs_before || graph_->outputs().size() != outputs_before)) {
      status = Status(Code::kInternal, place + ": it changed the inputs or outputs of the graph");
    }
    if (status.ok()) status = check_slots(root, slots).with_context(place);
    if (status.ok()) status = check_inference().with_context(place);
    if (!status.ok()) {
      graph_->rollback_rewrite();
      failed_.insert({&rule, root});
      const bool declined = status.code() == Code::kDeclined;
      logger_.log(declined ? Severity::kVerbose : Severity::kWarning,
                  status.message() + (declined ? "" : "; the graph is as before"));
      return false;
    }
    graph_->commit_rewrite();
    graph_->remove_dead();
    name_results(root, matched, slots);
    ++counts_[rule.fusion->id];
    if (logger_.threshold() >= Severity::kVerbose) logger_.verbose(place + ": applied");
    TENON_RETURN_IF_ERROR(track(rule.fusion->id, place, matched));
    return true;
  }

  Status check_slots(NodeId root, const std::vector<Slot>& slots) const {
    for (const Slot& slot : slots) {
      const ValueId old_value = graph_->node(root).outputs[slot.root_output];
      if (read_slot(*graph_, slot) != old_value) continue;
      return {Code::kInternal,
              fmt::format("the rewrite did not replace the root's output \"{}\"", graph_->value(old_value).name)};
    }
    return {};
  }

  /// The new nodes and those that read their values are inferred again.
  Status check_inference() const {
    for (NodeId id = 0; id < graph_->nodes().size(); ++id) {
      const Node& node = graph_->node(id);
      if (!node.alive) continue;
      const bool touched = id >= first_new_node_ || std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
                             return v != kNoId && v >= first_new_value_;
                           });
      if (touched) TENON_RETURN_IF_ERROR(graph_->infer(id, false));
    }
    return {};
  }

  void name_results(NodeId root, const std::vector<NodeId>& matched, const std::vector<Slot>& slots) {
    std::vector<std::string> members;
    bool named_like_matched = false;
    NodeId new_root = kNoId;
    new_root_ = root;
    for (const Slot& slot : slots) {
      // Slots are in the order of the root's outputs, so the first new node stands for the root.
      if (slot.reader != kNoId && !graph_->node(slot.reader).alive) continue;
      const NodeId producer = graph_->value(read_slot(*graph_, slot)).producer;
      if (producer == kNoId || producer < first_new_node_) continue;
      new_root = producer;
      break;
    }
    if (new_root != kNoId) {
      new_root_ = new_root;
      Node& node = graph_->node(new_root);
      for (const NodeId id : matched) {
        named_like_matched = named_like_matched || graph_->node(id).name == node.name;
        for (const std::string& member : graph_->node(id).members) {
          if (std::find(members.begin(), members.end(), member) == members.end()) members.push_back(member);
        }
      }
      take_value_names(root, node, slots);
      node.members = members;
      if (node.auto_named || named_like_matched) node.name = join(members, "+");
    }
    for (NodeId id = first_new_node_; id < graph_->nodes().size(); ++id) {
      Node& node = graph_->node(id);
      if (!node.alive) continue;
      const std::string wanted = node.name;
      for (int i = 2; node_name_occurs(*graph_, node.name, id); ++i) node.name = fmt::format("{}:{}", wanted, i);
      if (id != new_root) node.members = {node.name};
    }
    for (ValueId id = first_new_value_; id < graph_->values().size(); ++id) {
      Value& value = graph_->value(id);
      const std::string wanted = value.name;
      if (value.alive && is_name_of_another(id, root, matched, slots)) value.name = wanted + ":2";
      for (int i = 2; value.alive && value_name_occurs(*graph_, value.name, id); ++i) {
        value.name = fmt::format("{}:{}", wanted, i);
      }
    }
  }

  /// Whether a new value has the name of a matched one that went, without being what replaces it: the name would
  /// promise other contents.
  bool is_name_of_another(ValueId id, NodeId root, const std::vector<NodeId>& matched,
                          const std::vector<Slot>& slots) const {
    const Graph& graph = *graph_;
    const std::string& name = graph.value(id).name;
    const bool taken = std::any_of(matched.begin(), matched.end(), [&](NodeId node) {
      const std::vector<ValueId>& outputs = graph.node(node).outputs;
      return std::any_of(outputs.begin(), outputs.end(), [&](ValueId output) {
        return output < first_new_value_ && !graph.value(output).alive && graph.value(output).name == name;
      });
    });
    return taken && std::none_of(slots.begin(), slots.end(), [&](const Slot& slot) {
             if (slot.reader != kNoId && !graph.node(slot.reader).alive) return false;
             return read_slot(graph, slot) == id &&
                    graph.value(graph.node(root).outputs[slot.root_output]).name == name;
           });
  }

  /// A value whose name the graph made up is called as the one it replaces, so that graphs before and after can be
  /// compared value by value.
  void take_value_names(NodeId root, const Node& node, const std::vector<Slot>& slots) {
    for (const Slot& slot : slots) {
      if (slot.reader != kNoId && !graph_->node(slot.reader).alive) continue;
      const ValueId id = read_slot(*graph_, slot);
      const Value& old_value = graph_->value(graph_->node(root).outputs[slot.root_output]);
      Value& value = graph_->value(id);
      if (id < first_new_value_ || old_value.alive || value_name_occurs(*graph_, old_value.name, id)) continue;
      const bool made_up =
          value.name == node.name || value.name == fmt::format("{}:{}", node.name, value.producer_output);
      if (made_up && value.producer != kNoId && !graph_->is_output(id)) value.name = old_value.name;
    }
  }

  Provenance provenance_of(NodeId id) const {
    const auto found = provenance_.find(id);
    return found != provenance_.end() ? found->second : Provenance{{id}, 0, "", ""};
  }

  Status track(const std::string& rule, const std::string& place, const std::vector<NodeId>& matched) {
    Provenance result;
    Provenance deepest;
    for (const NodeId id : matched) {
      const Provenance part = provenance_of(id);
      result.origins.insert(part.origins.begin(), part.origins.end());
      if (part.depth >= deepest.depth) deepest = part;
    }
    result.depth = deepest.depth + 1;
    result.rule = rule;
    result.other_rule = deepest.rule != rule ? deepest.rule : deepest.other_rule;
    for (NodeId id = first_new_node_; id < graph_->nodes().size(); ++id) {
      if (graph_->node(id).alive) provenance_[id] = result;
    }
    const int limit = kFreeDepth + kDepthPerOrigin * static_cast<int>(result.origins.size());
    if (result.depth <= limit && ++applications_ <= options_.max_applications) return {};
    if (result.other_rule.empty()) {
      return {Code::kConflict,
              fmt::format("{}: the rule applies to its own result again and again; disable it", place)};
    }
    return {Code::kConflict, fmt::format("{}: the rules {} and {} undo each other again and again; disable one of them",
                                         place, rule, result.other_rule)};
  }

  Graph* graph_;
  const std::vector<FusionRef>& all_rules_;
  const FusionOptions& options_;
  Logger& logger_;
  const RuleChooser* choose_;
  std::vector<const FusionRef*> rules_;
  std::vector<NodeId> order_;
  std::set<std::pair<const FusionRef*, NodeId>> failed_;    ///< not tried again
  std::set<std::pair<const FusionRef*, NodeId>> declined_;  ///< logged already
  std::map<NodeId, Provenance> provenance_;
  std::map<std::string, int> counts_;
  NodeId first_new_node_ = 0;
  ValueId first_new_value_ = 0;
  NodeId new_root_ = kNoId;  ///< what took the last matched root's place
  int applications_ = 0;
};

}  // namespace

Result<std::map<std::string, int>> apply_always_rules(Graph* graph, const std::vector<FusionRef>& rules,
                                                      const FusionOptions& options, Logger& logger) {
  return Engine(graph, rules, options, logger).run();
}

Result<std::map<std::string, int>> apply_candidate_rules(Graph* graph, const std::vector<FusionRef>& rules,
                                                         const FusionOptions& options, const RuleChooser& choose,
                                                         Logger& logger) {
  return Engine(graph, rules, options, logger, &choose).run();
}

}  // namespace tenon
