// Translator: walks a model once, in its own order, and fills the graph.
#ifndef TENON_IMPORTERS_ONNX_TRANSLATE_H_
#define TENON_IMPORTERS_ONNX_TRANSLATE_H_

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tenon/sdk/importer.hpp>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "importers/onnx/node.h"
#include "importers/onnx/onnx.pb.h"
#include "importers/onnx/rules.h"

namespace tenon::onnx {

inline constexpr const char* kImporterId = "tenon.onnx";

/// The names of one graph; those of the graph around it are seen too.
class Scope {
 public:
  /// Of names that are put together this much is kept: in graphs that are unrolled many times, or lie deep inside one
  /// another, all of it would take gigabytes.
  static constexpr size_t kLongestName = 500;
  /// `path`: of the node that the graph lies in, "" for the model's own.
  Scope(const Scope* outer, const std::string& path)
      : outer_(outer), prefix_(path.substr(path.size() - std::min(path.size(), kLongestName))) {}
  const Item* find(const std::string& name) const;
  /// The initializer of that name which has not become a constant yet, and whose scope it is.
  const pb::TensorProto* pending(const std::string& name, Scope** owner);
  void set(const std::string& name, Item item) { items_[name] = std::move(item); }
  bool has_own(const std::string& name) const { return items_.count(name) != 0 || pending_.count(name) != 0; }
  void add_initializer(const pb::TensorProto& tensor) { pending_[tensor.name()] = &tensor; }
  /// What a node or value of this graph is called in the whole model.
  std::string full_name(const std::string& name) const {
    return prefix_.empty() ? name : prefix_ + name.substr(0, kLongestName);
  }

 private:
  const Scope* outer_;
  std::string prefix_;  ///< of the names of nodes and values in this graph
  std::unordered_map<std::string, Item> items_;
  std::unordered_map<std::string, const pb::TensorProto*> pending_;
};

/// Names that are taken.
class UniqueNames {
 public:
  void insert(const std::string& name) { taken_.insert(name); }
  /// Takes the name, with a number behind it if it is taken already: "conv_2".
  std::string make(const std::string& wanted);

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int64_t> next_;  ///< the number to try first
};

using Opsets = std::map<std::string, int64_t>;

/// A call of a local function, or the model itself: what attribute references and versions mean inside.
struct Call {
  const Opsets* opsets = nullptr;
  const pb::FunctionProto* function = nullptr;
  const OnnxNode* node = nullptr;  ///< the calling node; nullptr in the model itself
  int depth = 0;
};

struct ImportOptions {
  std::map<std::string, std::vector<int64_t>> shapes;  ///< of inputs
  int64_t batch = 0;                                   ///< the first dim of every input; 0: the model's
};

class Translator {
 public:
  Translator(const TnHost* host, TnGraph* graph, const pb::ModelProto& model, const Source& source,
             ImportOptions options);
  /// Invalid lists everything that cannot be translated.
  void run();

 private:
  friend class OnnxNode;
  using Nodes = google::protobuf::RepeatedPtrField<pb::NodeProto>;

  Opsets read_opsets(const google::protobuf::RepeatedPtrField<pb::OperatorSetIdProto>& imports,
                     const std::string& owner) const;
  void add_input(const pb::ValueInfoProto& info);
  Dims input_dims(const pb::ValueInfoProto& info) const;
  void add_outputs();
  std::string summary() const;
  void translate(const Nodes& nodes, Scope& scope, const Call& call);
  void translate(const pb::NodeProto& proto, Scope& scope, const Call& call);
  /// Whether one of the inputs could not be translated.
  bool read_inputs(const pb::NodeProto& proto, Scope& scope, OnnxNode* node);
  void apply(OnnxNode& node, const pb::NodeProto& proto, const Call& call, const Found& found);
  bool call_function(OnnxNode& node, const pb::NodeProto& proto, const Call& call);
  bool call_op_importer(OnnxNode& node, const pb::NodeProto& proto, int64_t opset);
  bool call_registered_op(OnnxNode& node, const pb::NodeProto& proto, int64_t opset);
  void copy_attributes(const OnnxNode& node, NewAttrs* attrs) const;
  void publish(OnnxNode& node, const pb::NodeProto& proto, Scope& scope);
  const Item* lookup(const std::string& name, Scope& scope);
  TnValueId initializer(const pb::TensorProto& tensor, const std::string& name);
  std::vector<Item> inline_graph(OnnxNode& node, const pb::GraphProto& graph, const std::vector<Item>& inputs,
                                 const std::string& suffix);
  void count_node();
  void decline(const std::string& what, const std::string& where);
  void throw_declined() const;

  const TnHost* host_;
  TnGraph* raw_graph_;
  GraphView graph_;
  const pb::ModelProto& model_;
  Source source_;
  ImportOptions options_;
  Opsets opsets_;
  Scope top_;
  std::map<std::string, std::vector<std::string>> declined_;  ///< what, and the nodes that want it
  UniqueNames value_names_, node_names_;
  std::set<TnValueId> named_;  ///< values that have their name for good
  int64_t num_nodes_ = 0;
  int64_t num_made_ = 0;  ///< elements of constants that are not the model's own
};

}  // namespace tenon::onnx

#endif  // TENON_IMPORTERS_ONNX_TRANSLATE_H_
