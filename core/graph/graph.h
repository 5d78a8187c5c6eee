// Graph: nodes that apply ops to values. What importers fill, fusion rules rewrite and the builder compiles.
//
// Thread rule: a Graph is a value used by one thread at a time; const use may be shared.
#pragma once

#include <tenon/plugin/graph.h>
#include <tenon/plugin/op.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tenon/status.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/graph/attributes.h"
#include "core/graph/expression.h"
#include "core/graph/tensor.h"

namespace tenon {

using NodeId = TnNodeId;
using ValueId = TnValueId;
inline constexpr std::uint32_t kNoId = TN_NO_ID;

/// A registered op with the host table of its plugin. Holding it keeps the library mapped.
struct OpRef {
  const TnOp* op = nullptr;
  const TnHost* host = nullptr;
  std::shared_ptr<const void> library;
  explicit operator bool() const { return op != nullptr; }
};

/// TN_PORT_* of the port that input n of a node belongs to: the last one stands for all that follow.
std::uint32_t input_flags(const TnOp& op, std::size_t input);

/// Where a graph finds what ops mean; the registry is one.
class OpSource {
 public:
  virtual ~OpSource() = default;
  /// Empty if no op has this id.
  virtual OpRef find_op(std::string_view id) const = 0;
  /// All op ids, for messages.
  virtual std::vector<std::string> op_ids() const = 0;
};

struct Value {
  std::string name;
  std::int32_t dtype = TN_DTYPE_NONE;
  TnDims dims{};
  NodeId producer = kNoId;  ///< kNoId: a graph input or a constant
  std::uint32_t producer_output = 0;
  std::shared_ptr<const HostTensor> constant;  ///< contents, if known at build time; of computed values the small ones
  bool bound = false;                          ///< the data decide the dims; these are the largest that they can be
  bool alive = true;

  /// Contents that stay: what is known of a computed value may change with the dims of inputs.
  bool is_constant() const { return constant != nullptr && producer == kNoId; }
};

/// The dims that a graph input may have at run time: each from min to max; the graph itself has the optimum, for which
/// kernels are tuned.
struct Profile {
  TnDims min{};
  TnDims max{};
};

/// Operands that the epilogues of one node may have beside its results.
inline constexpr std::uint32_t kMostExtra = 4;

struct Node {
  std::string name;
  OpRef op;
  Attrs attrs;
  /// Those of the op, at least as many as it has ports (kNoId: an optional input that is absent), then operands 1, 2...
  /// of the epilogues.
  std::vector<ValueId> inputs;
  std::uint32_t num_extra = 0;  ///< how many operands of epilogues stand at the end of inputs
  std::vector<ValueId> outputs;
  std::vector<Expression> epilogues;  ///< one per output, or empty: expressions applied to the results
  std::vector<std::string>
      members;  ///< names of the nodes this one was fused from, in topological order; at least its own
  bool alive = true;
  bool auto_named = false;  ///< the graph made up the name; fusion may replace it

  std::string op_id() const { return op.op->id; }
  std::vector<ValueId> op_inputs() const { return {inputs.begin(), inputs.end() - num_extra}; }
};

class Graph {
 public:
  /// `ops` outlives the graph.
  explicit Graph(std::shared_ptr<const OpSource> ops) : ops_(std::move(ops)) {}
  Graph(const Graph&) = default;
  Graph& operator=(const Graph&) = default;

  // --- building ---
  Result<ValueId> add_input(const std::string& name, std::int32_t dtype, const TnDims& dims);
  /// `name` may be empty: named "const" and a number.
  Result<ValueId> add_constant(const std::string& name, std::shared_ptr<const HostTensor> tensor);
  /// Checks ports and attributes against the op's schema and infers the outputs. An empty `name` gives
  /// "<op>_<number>"; empty output names give "<node>" for one output and "<node>:<i>" for more. Errors name node, op
  /// id and the offending value. Where all inputs are known, small outputs are evaluated at once, for the shape rules
  /// of later nodes may need them; the node stays until constants are folded.
  Result<NodeId> add_node(std::string_view op_id, const std::string& name, Attrs attrs, std::vector<ValueId> inputs,
                          std::uint32_t num_outputs, const std::vector<std::string>& output_names = {});
  Status add_output(ValueId value);
  /// Gives inputs other dims and infers every node again. kInvalid if a value is no graph input or a node cannot have
  /// such inputs; the graph is not usable then.
  Status set_input_dims(const std::vector<std::pair<ValueId, TnDims>>& inputs);
  /// Lets the dims of an input vary at run time. kInvalid unless min <= its dims <= max, all of one rank.
  Status set_profile(ValueId input, const Profile& profile);
  /// Takes a value off the list of graph outputs.
  void clear_outputs() { outputs_.clear(); }
  /// Every use of `from`, as input or graph output, becomes `to`; a graph output keeps its name. kInvalid if dtype or
  /// dims differ, if `to` is computed from `from`, or if a graph output would become another graph output or an input.
  Status replace(ValueId from, ValueId to);
  /// The contents of a value that are known; null forgets them. REQUIRES: dtype and dims are those of the value.
  void set_constant(ValueId value, std::shared_ptr<const HostTensor> tensor);
  /// REQUIRES: no other value has the name.
  void rename(ValueId value, const std::string& name);
  /// Removes a node; its outputs must have no users.
  Status remove_node(NodeId node);
  /// Removes nodes and constants that no graph output needs. Returns how many nodes went.
  int remove_dead();
  void set_metadata(const std::string& key, const std::string& text) { metadata_[key] = text; }

  // --- rewriting by rules ---
  /// From here on every change by add_*, replace and set_metadata can be taken back, and new nodes and values may take
  /// the names of `matched` nodes and their outputs, which are about to go.
  void begin_rewrite(const std::vector<NodeId>& matched);
  /// Keeps the changes. The caller removes or renames nodes whose names occur twice.
  void commit_rewrite() { journal_.reset(); }
  /// Takes everything back that happened since begin_rewrite.
  void rollback_rewrite();

  // --- reading ---
  const std::vector<Node>& nodes() const { return nodes_; }     ///< by id, dead ones included
  const std::vector<Value>& values() const { return values_; }  ///< by id, dead ones included
  const Node& node(NodeId id) const { return nodes_[id]; }
  Node& node(NodeId id) { return names_.reset(), nodes_[id]; }
  const Value& value(ValueId id) const { return values_[id]; }
  Value& value(ValueId id) { return names_.reset(), values_[id]; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::map<ValueId, Profile>& profiles() const { return profiles_; }
  /// By value id: whether dims or contents may depend on dims that vary at run time or on sizes that data decide. What
  /// is known of the contents of such a value holds for the present dims only.
  Result<std::vector<bool>> varying() const;
  const OpSource& ops() const { return *ops_; }
  std::shared_ptr<const OpSource> shared_ops() const { return ops_; }
  /// Nodes that read a value (a node appears once per use).
  std::vector<NodeId> users(ValueId value) const;
  bool is_output(ValueId value) const;
  ValueId find_value(std::string_view name) const;  ///< kNoId if there is none
  NodeId find_node(std::string_view name) const;    ///< kNoId if there is none
  /// Live nodes, producers first; ties by id, so the order is the same for the same graph.
  Result<std::vector<NodeId>> topological_order() const;
  /// Checks every invariant: ids in range, single producer, no cycle, unique names, dims and dtypes as inferred.
  Status verify() const;
  /// Infers one node again from its present inputs and compares with, or (update) writes, the output values and what is
  /// known of their contents.
  Status infer(NodeId node, bool update);
  /// Sets what is known of a node's outputs by evaluating it, however large they are. kInvalid if the contents of an
  /// input are not known.
  Status evaluate(NodeId node);
  /// Readable text: a line per input, constant, node and output; equal graphs give equal text.
  std::string dump() const;

  /// The opaque handle of the ABI.
  TnGraph* handle() { return reinterpret_cast<TnGraph*>(this); }
  const TnGraph* handle() const { return reinterpret_cast<const TnGraph*>(this); }
  static Graph* from(TnGraph* handle) { return reinterpret_cast<Graph*>(handle); }
  static const Graph* from(const TnGraph* handle) { return reinterpret_cast<const Graph*>(handle); }

 private:
  /// What rollback_rewrite needs: sizes and lists as they were, and each input and name that was overwritten.
  struct Journal {
    std::vector<NodeId> matched;
    std::size_t num_nodes = 0;
    std::size_t num_values = 0;
    std::vector<ValueId> inputs;
    std::vector<ValueId> outputs;
    std::map<std::string, std::string> metadata;
    std::vector<std::pair<NodeId, std::vector<ValueId>>> node_inputs;
    std::vector<std::pair<ValueId, std::string>> value_names;
  };

  /// Ids by name while a graph is filled, when names are looked up for every node. From the first change on that could
  /// bypass it (a rewrite, a removal, a Node& or Value& in somebody's hands) names are searched for one by one.
  struct Names {
    std::unordered_map<std::string, ValueId> values;
    std::unordered_map<std::string, NodeId> nodes;
  };

  bool leaving(NodeId node) const;
  bool value_name_taken(std::string_view name) const;
  bool node_name_taken(std::string_view name) const;
  std::string unique_value_name(const std::string& wanted) const;
  std::string unique_node_name(std::string_view op_id) const;
  Status check_value_id(ValueId value, const char* what) const;
  Status check_ports(const std::string& owner, const TnOp& op, std::vector<ValueId>* inputs,
                     std::uint32_t num_outputs) const;
  /// Asks the op for dims and dtypes of the outputs; writes one tensor without data per output.
  /// *bound: they are the largest that the dims can be, for the contents that decide them are not known.
  Status infer_outputs(const std::string& owner, const OpRef& op, const Attrs& attrs,
                       const std::vector<ValueId>& inputs, std::vector<TnTensor>* outputs, bool* bound) const;
  /// Evaluates small outputs of a node whose inputs are known; forgets those of others.
  void learn_contents(NodeId node);
  bool depends_on(ValueId value, ValueId ancestor) const;
  Status verify_values() const;
  /// Operands of epilogues are tensors of the dtype and dims of the node's only output.
  Status verify_extra(const Node& node) const;
  Status verify_nodes() const;

  std::shared_ptr<const OpSource> ops_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::map<std::string, std::string> metadata_;
  std::map<ValueId, Profile> profiles_;
  std::optional<Journal> journal_;
  std::optional<Names> names_ = Names();
};

/// The table behind TnHost.graph. Failures are recorded with record_failure.
const TnGraphApi& graph_api();

}  // namespace tenon
