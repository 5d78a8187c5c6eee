// OnnxNode: one node of the model while a rule translates it into nodes of Tenon.
//
// A rule reads attributes and inputs, adds nodes with add() and says with output() which value each of the node's
// outputs is. It throws Unsupported for what Tenon cannot do (all of them are listed in one message) and Invalid for
// what the standard forbids. Names of operators and attributes are those of https://onnx.ai/onnx/operators.
#ifndef TENON_IMPORTERS_ONNX_NODE_H_
#define TENON_IMPORTERS_ONNX_NODE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tenon/sdk/importer.hpp>
#include <vector>

namespace tenon::onnx {

namespace pb {
class AttributeProto;
class GraphProto;
class NodeProto;
}  // namespace pb

/// What Tenon cannot do with a node: "attribute mode = cubic with antialias".
struct Unsupported {
  std::string what;
};

/// What a name of the model stands for. Sequences exist only while the model is read: their lengths are known then.
struct Item {
  enum class Kind {
    kTensor,    ///< `value`
    kSequence,  ///< `items`, tensors
    kNone,      ///< an optional without contents
    kFailed     ///< an output of a node that could not be translated
  };
  Kind kind = Kind::kNone;
  TnValueId value = TN_NO_ID;
  std::vector<TnValueId> items;

  static Item tensor(TnValueId value) { return {Kind::kTensor, value, {}}; }
  static Item sequence(std::vector<TnValueId> items) { return {Kind::kSequence, TN_NO_ID, std::move(items)}; }
};

class Translator;
class Scope;
struct Call;

class OnnxNode {
 public:
  /// "Resize".
  const std::string& type() const;
  /// The model's name of the node, or one made of operator and first output.
  const std::string& name() const { return name_; }
  /// The version of the operator that applies: 13 for Softmax in a model of opset 17.
  int since() const { return since_; }

  // --- attributes. Without a default the attribute is required: Invalid names it. ---
  bool has(const char* attr) const { return find(attr) != nullptr; }
  int64_t i64(const char* attr, std::optional<int64_t> absent = std::nullopt) const;
  bool flag(const char* attr, bool absent) const { return i64(attr, absent) != 0; }
  double f64(const char* attr, std::optional<double> absent = std::nullopt) const;
  std::string str(const char* attr, std::optional<std::string> absent = std::nullopt) const;
  std::vector<int64_t> i64s(const char* attr, std::optional<std::vector<int64_t>> absent = std::nullopt) const;
  std::vector<double> f64s(const char* attr, std::optional<std::vector<double>> absent = std::nullopt) const;
  std::vector<std::string> strs(const char* attr, std::optional<std::vector<std::string>> absent = std::nullopt) const;
  /// The tensor as a constant of the graph.
  TnValueId tensor(const char* attr);
  const pb::GraphProto& graph(const char* attr) const;
  /// Throws Unsupported if the attribute is there with another value than `only`.
  void only(const char* attr, int64_t only) const;

  // --- inputs ---
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  bool has_input(int n) const { return n < num_inputs() && inputs_[n].kind != Item::Kind::kNone; }
  /// Invalid if it is absent or no tensor.
  TnValueId input(int n) const;
  /// TN_NO_ID if it is absent.
  TnValueId optional_input(int n) const { return has_input(n) ? input(n) : TN_NO_ID; }
  /// All inputs from n on, which must be tensors.
  std::vector<TnValueId> inputs_from(int n) const;
  const Item& item(int n) const;
  int32_t dtype(int n) const { return dtype_of(input(n)); }
  Dims dims(int n) const { return dims_of(input(n)); }
  int rank(int n) const { return dims(n).rank; }
  /// Whether input n is computed in the graph. What is known of its contents then holds for the present dims only: a
  /// rule hands it on as it is instead of reading it.
  bool is_computed(int n) const { return has_input(n) && graph_view().producer(input(n)) != TN_NO_ID; }
  /// An attribute in older versions and an input in newer ones, whose contents must be known: Unsupported if they are
  /// computed at run time. Nothing if it is absent. For i32 and i64.
  std::optional<std::vector<int64_t>> known_i64s(int n) const;
  /// The same of an input that is required: Invalid if it is absent.
  std::vector<int64_t> required_i64s(int n) const { return input(n), *known_i64s(n); }
  /// The same of any value, and nothing if its contents are not known yet.
  std::optional<std::vector<int64_t>> contents_i64s(TnValueId value) const;
  /// The only element of a known f16, bf16, f32, f64 or integer tensor; nothing if it is absent, Unsupported if it is
  /// not known.
  std::optional<double> known_scalar(int n) const;
  double required_scalar(int n) const { return input(n), *known_scalar(n); }

  // --- outputs ---
  int num_outputs() const { return num_outputs_; }
  /// Whether the model names output n.
  bool wants(int n) const;
  void output(int n, TnValueId value) { output(n, Item::tensor(value)); }
  void output(int n, Item item);

  // --- building ---
  NewAttrs attrs() const { return graph_view().attrs(); }
  /// A node of Tenon; the first one is called as the node. Absent inputs are TN_NO_ID.
  std::vector<TnValueId> add(const std::string& op_id, const NewAttrs& attrs, const std::vector<TnValueId>& inputs,
                             int num_outputs);
  TnValueId add(const std::string& op_id, const NewAttrs& attrs, const std::vector<TnValueId>& inputs) {
    return add(op_id, attrs, inputs, 1)[0];
  }
  TnValueId add(const std::string& op_id, const std::vector<TnValueId>& inputs) { return add(op_id, attrs(), inputs); }
  int32_t dtype_of(TnValueId value) const { return graph_view().value_desc(value).dtype; }
  Dims dims_of(TnValueId value) const { return graph_view().value_dims(value); }
  /// A constant list (rank 1) of i64.
  TnValueId constant(const std::vector<int64_t>& values);
  /// A constant of one element, f32 or of another number type, of rank 0.
  TnValueId scalar(int32_t dtype, double value);
  TnValueId constant(const TnTensor& tensor);
  /// The number of elements of a constant, or of a list, that a rule is about to make from sizes that the model gives.
  /// Unsupported once all those of the model have become too many: a few bytes of it must not become gigabytes.
  int64_t made_elements(const Dims& dims);
  // Frequent single nodes.
  TnValueId cast(TnValueId value, int32_t dtype);  ///< the value itself if it has the dtype
  /// To these dims, where 0 copies a dim and -1 is worked out. A first dim that stays is copied, so that it may vary at
  /// run time; others are fixed.
  TnValueId reshape(TnValueId value, const std::vector<int64_t>& shape);
  /// The value's axes in order, but for new ones of size 1 where -1 stands and without those of size 1 that are left
  /// out; the value itself if they are all.
  TnValueId keep_axes(TnValueId value, const std::vector<int64_t>& axes);
  TnValueId transpose(TnValueId value, const std::vector<int64_t>& perm);  ///< the value itself if nothing moves
  GraphView& graph_view() const;

  // --- graphs inside the node (If, Loop, Scan, SequenceMap) ---
  /// Translates a graph here and now with `inputs` for its inputs and gives its outputs. `suffix` tells the names of
  /// one copy from those of another: "then", "3".
  std::vector<Item> inline_graph(const pb::GraphProto& graph, const std::vector<Item>& inputs,
                                 const std::string& suffix);

 private:
  friend class Translator;
  OnnxNode(Translator& translator, const pb::NodeProto& proto, const Scope& scope, const Call& call)
      : translator_(translator), proto_(proto), scope_(scope), call_(call) {}
  /// nullptr if it is absent; a reference to a function's attribute is followed.
  const pb::AttributeProto* find(const char* attr) const;
  const pb::AttributeProto* need(const char* attr, int type, bool required) const;

  Translator& translator_;
  const pb::NodeProto& proto_;
  const Scope& scope_;
  const Call& call_;
  std::string name_;
  int since_ = 0;
  int num_outputs_ = 0;
  int num_added_ = 0;
  std::vector<Item> inputs_;
  std::vector<std::optional<Item>> outputs_;
};

}  // namespace tenon::onnx

#endif  // TENON_IMPORTERS_ONNX_NODE_H_
