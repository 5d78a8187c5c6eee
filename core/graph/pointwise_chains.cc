// Chains of pointwise nodes become one node of tenon.pointwise/1.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/graph/convert.h"
#include "core/graph/passes.h"

namespace tenon {
namespace {

constexpr char kPointwiseOp[] = "tenon.pointwise/1";
/// What kernels of the op have room for. Longer chains gain nothing from being one: they are bound by arithmetic.
constexpr std::size_t kMaxOperands = 8;
constexpr std::size_t kMaxSteps = 64;

/// What a node computes from the operands of the chain that ends in it.
struct Chain {
  Expression expression;
  std::vector<ValueId> operands;
  std::set<NodeId> members;
};

/// Instructions under construction, equal ones once.
class Steps {
 public:
  std::int32_t add(const TnExprInstr& instr) {
    const auto same = [&](const TnExprInstr& other) { return std::memcmp(&other, &instr, sizeof instr) == 0; };
    const auto found = std::find_if(instrs_.begin(), instrs_.end(), same);
    if (found != instrs_.end()) return static_cast<std::int32_t>(found - instrs_.begin());
    instrs_.push_back(instr);
    return static_cast<std::int32_t>(instrs_.size()) - 1;
  }
  /// All of an expression; leaf(operand) gives what takes an operand's place. Returns the number of its result.
  template <class Leaf>
  std::int32_t add(const Expression& expression, const Leaf& leaf) {
    std::vector<std::int32_t> places;
    for (const TnExprInstr& instr : expression.instrs()) {
      if (instr.primitive == TN_EX_INPUT) {
        places.push_back(leaf(instr));
        continue;
      }
      const int arity = primitive_arity(instr.primitive);
      const auto place = [&](int n, std::int32_t argument) {
        return n < arity ? places[static_cast<std::size_t>(argument)] : -1;
      };
      places.push_back(add({instr.primitive, instr.dtype, place(0, instr.a), place(1, instr.b), place(2, instr.c),
                            instr.operand, instr.value}));
    }
    return places.empty() ? leaf({TN_EX_INPUT, TN_F32, -1, -1, -1, 0, 0}) : places.back();
  }
  /// What leads to `result`, which becomes the last one.
  Expression finish(std::int32_t result) const {
    std::vector<TnExprInstr> instrs(instrs_.begin(), instrs_.begin() + result + 1);
    return Expression({{TN_EX_INPUT, TN_F32, -1, -1, -1, 0, 0}}).then(Expression(std::move(instrs)));
  }

 private:
  std::vector<TnExprInstr> instrs_;
};

/// The number of a value among the operands, which gain it if it is new.
std::uint32_t operand_number(std::vector<ValueId>* operands, ValueId value) {
  const auto found = std::find(operands->begin(), operands->end(), value);
  if (found != operands->end()) return static_cast<std::uint32_t>(found - operands->begin());
  operands->push_back(value);
  return static_cast<std::uint32_t>(operands->size()) - 1;
}

/// The number that a floating constant of one element holds.
std::optional<double> constant_number(const Value& value) {
  const bool floating = value.dtype == TN_F32 || value.dtype == TN_F16 || value.dtype == TN_BF16;
  return floating && value.is_constant() ? single_number(*value.constant) : std::nullopt;
}

class Fuser {
 public:
  Fuser(Graph* graph, OpRef op, const ChainFilter& eligible)
      : graph_(*graph), read_(*graph), op_(std::move(op)), eligible_(eligible), readers_(graph->values().size()) {}

  int run() {
    const Result<std::vector<NodeId>> order = graph_.topological_order();
    if (!order.ok()) return 0;
    order_ = *order;
    for (const NodeId id : order_) {
      for (const ValueId input : read_.node(id).inputs) {
        if (input != kNoId) readers_[input].insert(id);
      }
    }
    // Producers come first, so each node finds the chains that end in its operands.
    for (const NodeId id : order_) {
      std::optional<Chain> chain = single(id);
      if (!chain) continue;
      while (grow(id, &*chain)) {
      }
      chains_[id] = std::move(*chain);
    }
    // Here consumers come first, so the longest chains.
    std::set<NodeId> taken;
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
      const auto found = chains_.find(*id);
      if (found == chains_.end() || taken.count(*id) != 0 || found->second.members.size() < 2) continue;
      if (replace(*id, found->second)) taken.insert(found->second.members.begin(), found->second.members.end());
    }
    if (merged_ > 0) graph_.remove_dead();
    return merged_;
  }

 private:
  const Value& output(NodeId id) const { return read_.value(read_.node(id).outputs[0]); }

  /// The node alone, if it is pointwise and of one floating dtype.
  std::optional<Chain> single(NodeId id) const {
    const Node& node = read_.node(id);
    const std::uint32_t flags = node.op.op->flags;
    if ((flags & TN_OP_ELEMENTWISE) == 0 || (flags & (TN_OP_RANDOM | TN_OP_STATEFUL)) != 0) return std::nullopt;
    if (node.outputs.size() != 1 || !node.epilogues.empty()) return std::nullopt;
    const Value& result = output(id);
    const bool floating = result.dtype == TN_F32 || result.dtype == TN_F16 || result.dtype == TN_BF16;
    // What is known for the present dims is computed on the host.
    if (!floating || result.constant != nullptr) return std::nullopt;
    const Result<Expression> described = describe_expression(graph_, id);
    if (!described.ok()) return std::nullopt;

    Chain chain;
    chain.members = {id};
    std::int32_t rank = 0;
    for (const ValueId input : node.inputs) {
      if (input == kNoId || constant_number(read_.value(input))) continue;
      operand_number(&chain.operands, input);
      rank = std::max(rank, read_.value(input).dims.rank);
    }
    // Constants of one element become part of the expression, unless the output has its rank from them alone.
    if (rank != result.dims.rank) {
      chain.operands.clear();
      for (const ValueId input : node.inputs) {
        if (input != kNoId) operand_number(&chain.operands, input);
      }
    }
    Steps steps;
    const auto leaf = [&](TnExprInstr instr) {
      const ValueId input = node.inputs[instr.operand];
      const auto found = std::find(chain.operands.begin(), chain.operands.end(), input);
      if (found == chain.operands.end()) {
        const double number = *constant_number(read_.value(input));
        return steps.add({TN_EX_CONSTANT, instr.dtype, -1, -1, -1, 0, number});
      }
      return steps.add({TN_EX_INPUT, instr.dtype, -1, -1, -1, operand_number(&chain.operands, input), 0});
    };
    for (const TnExprInstr& instr : described->instrs()) {
      if (instr.primitive == TN_EX_INPUT && node.inputs[instr.operand] == kNoId) return std::nullopt;
    }
    chain.expression = steps.finish(steps.add(*described, leaf));
    for (const ValueId operand : chain.operands) {
      if (read_.value(operand).dtype != result.dtype) return std::nullopt;
    }
    if (chain.operands.empty() || !fits(chain)) return std::nullopt;
    return chain;
  }

  static bool fits(const Chain& chain) {
    return chain.operands.size() <= kMaxOperands && chain.expression.instrs().size() <= kMaxSteps;
  }

  /// Takes in one chain that ends in an operand. False: there is none to take in.
  bool grow(NodeId id, Chain* chain) const {
    for (std::size_t n = 0; n < chain->operands.size(); ++n) {
      const ValueId between = chain->operands[n];
      const Value& value = read_.value(between);
      const auto before = chains_.find(value.producer);
      if (value.producer == kNoId || before == chains_.end() || graph_.is_output(between)) continue;
      // What is smaller would be computed again for each place that it is repeated to.
      if (!same_dims(value.dims, output(id).dims)) continue;
      const std::set<NodeId>& readers = readers_[between];
      if (!std::includes(chain->members.begin(), chain->members.end(), readers.begin(), readers.end())) continue;
      Chain joined = join_chains(before->second, *chain, between);
      if (!fits(joined)) continue;
      *chain = std::move(joined);
      return true;
    }
    return false;
  }

  static Chain join_chains(const Chain& before, const Chain& after, ValueId between) {
    Chain result;
    result.members = before.members;
    result.members.insert(after.members.begin(), after.members.end());
    result.operands = before.operands;
    for (const ValueId operand : after.operands) {
      if (operand != between) operand_number(&result.operands, operand);
    }
    Steps steps;
    const auto leaf_of = [&](const Chain& chain) {
      return [&](TnExprInstr instr) {
        instr.operand = operand_number(&result.operands, chain.operands[instr.operand]);
        return steps.add(instr);
      };
    };
    const std::int32_t inner = steps.add(before.expression, leaf_of(before));
    const auto outer_leaf = leaf_of(after);
    const std::int32_t outer = steps.add(after.expression, [&](const TnExprInstr& instr) {
      return after.operands[instr.operand] == between ? inner : outer_leaf(instr);
    });
    result.expression = steps.finish(outer);
    return result;
  }

  /// The last node of the chain becomes the whole of it; the graph stays as it is where that does not work.
  bool replace(NodeId root, const Chain& chain) {
    std::vector<std::string> names, members;
    for (const NodeId id : order_) {
      if (chain.members.count(id) == 0) continue;
      const Node& member = read_.node(id);
      names.push_back(member.name);
      members.insert(members.end(), member.members.begin(), member.members.end());
    }
    const std::string wanted = join(names, "+");
    std::string name = wanted;
    for (int i = 2; graph_.find_node(name) != kNoId; ++i) name = fmt::format("{}:{}", wanted, i);

    Node& node = graph_.node(root);
    const Node before = node;
    node.name = std::move(name);
    node.op = op_;
    node.attrs = Attrs();
    node.attrs.values["expression"] = chain.expression.text();
    node.inputs = chain.operands;
    node.members = std::move(members);
    const bool works = apply_schema(node.name, op_.op->params, op_.op->num_params, &node.attrs).ok() &&
                       graph_.infer(root, false).ok() && (!eligible_ || eligible_(graph_, root));
    if (!works) {
      graph_.node(root) = before;
      return false;
    }
    for (const NodeId id : chain.members) {
      if (id == root) continue;
      graph_.node(id).alive = false;
      graph_.value(graph_.node(id).outputs[0]).alive = false;
      ++merged_;
    }
    return true;
  }

  Graph& graph_;
  const Graph& read_;  ///< the same; access to change it costs the graph its index of names
  OpRef op_;
  const ChainFilter& eligible_;
  std::vector<NodeId> order_;
  std::vector<std::set<NodeId>> readers_;  ///< by value
  std::map<NodeId, Chain> chains_;         ///< by the node that they end in
  int merged_ = 0;
};

}  // namespace

int fuse_pointwise_chains(Graph* graph, const ChainFilter& eligible) {
  const OpRef op = graph->ops().find_op(kPointwiseOp);
  return op ? Fuser(graph, op, eligible).run() : 0;
}

}  // namespace tenon
