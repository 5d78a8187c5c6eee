#include "importers/onnx/translate.h"

#include <tenon/plugin/ext/ids.h>
#include <tenon/plugin/ext/op_importers.h>

#include <algorithm>
#include <cctype>

#include "importers/onnx/tensors.h"

namespace tenon::onnx {
namespace {

constexpr int kDeepest = 50;            // graphs and functions inside one another
constexpr int64_t kMostNodes = 100000;  // after loops were unrolled

bool is_default_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }
std::string plain_domain(const std::string& domain) { return is_default_domain(domain) ? "" : domain; }

/// "Resize-19", "com.acme.Swish-1".
std::string op_text(const pb::NodeProto& proto, int64_t version) {
  const std::string domain = plain_domain(proto.domain());
  const std::string op = domain.empty() ? proto.op_type() : domain + "." + proto.op_type();
  return version > 0 ? text(op, "-", version) : op;
}

void count_operators(const google::protobuf::RepeatedPtrField<pb::NodeProto>& nodes,
                     std::map<std::string, int64_t>* counts, int depth) {
  for (const auto& node : nodes) {
    ++(*counts)[op_text(node, 0)];
    for (const auto& attr : node.attribute()) {
      if (attr.has_g() && depth < kDeepest) count_operators(attr.g().node(), counts, depth + 1);
    }
  }
}

}  // namespace

const Item* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    const auto found = scope->items_.find(name);
    if (found != scope->items_.end()) return &found->second;
  }
  return nullptr;
}

const pb::TensorProto* Scope::pending(const std::string& name, Scope** owner) {
  for (Scope* scope = this; scope != nullptr; scope = const_cast<Scope*>(scope->outer_)) {
    const auto found = scope->pending_.find(name);
    if (found == scope->pending_.end()) continue;
    *owner = scope;
    return found->second;
  }
  return nullptr;
}

std::string UniqueNames::make(const std::string& wanted) {
  if (taken_.insert(wanted).second) return wanted;
  int64_t& number = next_.emplace(wanted, 2).first->second;
  for (;; ++number) {
    std::string name = text(wanted, "_", number);
    if (taken_.insert(name).second) return name;
  }
}

Translator::Translator(const TnHost* host, TnGraph* graph, const pb::ModelProto& model, const Source& source,
                       ImportOptions options)
    : host_(host),
      raw_graph_(graph),
      graph_(host, graph),
      model_(model),
      source_(source),
      options_(std::move(options)),
      top_(nullptr, "") {}

Opsets Translator::read_opsets(const google::protobuf::RepeatedPtrField<pb::OperatorSetIdProto>& imports,
                               const std::string& owner) const {
  Opsets opsets;
  for (const auto& import : imports) opsets[plain_domain(import.domain())] = import.version();
  const auto standard = opsets.find("");
  if (standard != opsets.end() && (standard->second < kOldestOpset || standard->second > kNewestOpset)) {
    throw Failure(TN_VERSION,
                  text(owner, ": expected opset ", kOldestOpset, " to ", kNewestOpset, ", found ", standard->second,
                       standard->second > kNewestOpset ? "; export the model for an older opset"
                                                       : "; convert the model to a newer opset"));
  }
  return opsets;
}

/// "ONNX opset 13, com.acme 1, IR 7, made by pytorch 1.9", and its operators with their counts.
std::string Translator::summary() const {
  std::string line = "ONNX";
  for (const auto& [domain, version] : opsets_) {
    line += text(line == "ONNX" ? " " : ", ", domain.empty() ? "opset" : domain, " ", version);
  }
  line += text(", IR ", model_.ir_version());
  if (!model_.producer_name().empty())
    line += text(", made by ", model_.producer_name(), " ", model_.producer_version());
  std::map<std::string, int64_t> counts;
  count_operators(model_.graph().node(), &counts, 0);
  line += "\noperators:";
  for (const auto& [op, count] : counts) line += text(" ", op, " ", count);
  // Names can hold any bytes; metadata are texts.
  for (char& c : line) {
    if (c != '\n' && (c < 0x20 || c > 0x7e)) c = '?';
  }
  return line;
}

void Translator::run() {
  opsets_ = read_opsets(model_.opset_import(), source_.name());
  const pb::GraphProto& graph = model_.graph();
  for (const auto& node : graph.node()) {
    for (const std::string& output : node.output()) value_names_.insert(output);
  }
  for (const auto& tensor : graph.initializer()) {
    if (top_.has_own(tensor.name())) throw Invalid(text("tensor '", tensor.name(), "' is listed twice"));
    top_.add_initializer(tensor);
    value_names_.insert(tensor.name());
  }
  for (const auto& input : graph.input()) value_names_.insert(input.name());
  for (const auto& sparse : graph.sparse_initializer()) {
    decline("sparse initializers", sparse.values().name());
    top_.set(sparse.values().name(), {Item::Kind::kFailed, TN_NO_ID, {}});
  }
  for (const auto& input : graph.input()) add_input(input);
  for (const auto& [name, shape] : options_.shapes) {
    const bool known = std::any_of(graph.input().begin(), graph.input().end(),
                                   [&name = name](const auto& input) { return input.name() == name; });
    if (known) continue;
    std::string names;
    for (const auto& input : graph.input()) {
      if (!top_.has_own(input.name()) || top_.find(input.name()) != nullptr)
        names += (names.empty() ? "" : ", ") + input.name();
    }
    throw Invalid(text("a shape was given for '", name, "', which is no input of the model; its inputs are: ", names));
  }
  const Call call{&opsets_, nullptr, nullptr, 0};
  translate(graph.node(), top_, call);
  if (!declined_.empty()) throw_declined();
  add_outputs();
  if (!declined_.empty()) throw_declined();
  graph_.set_metadata("model", summary());
}

Dims Translator::input_dims(const pb::ValueInfoProto& info) const {
  const std::string owner = text("input '", info.name(), "'");
  const auto& type = info.type().tensor_type();
  std::vector<int64_t> sizes;
  std::string assumed;
  const auto given = options_.shapes.find(info.name());
  if (!type.has_shape() && given == options_.shapes.end()) {
    throw Invalid(
        text(owner, ": the model does not tell its shape; give one, as with --shape ", info.name(), "=1x3x224x224"));
  }
  for (int n = 0; n < type.shape().dim_size(); ++n) {
    const auto& dim = type.shape().dim(n);
    // Older exporters write 0 or -1 for "any".
    const bool fixed = dim.value_case() == pb::TensorShapeProto::Dimension::kDimValue && dim.dim_value() > 0;
    const bool negative = dim.value_case() == pb::TensorShapeProto::Dimension::kDimValue && dim.dim_value() < -1;
    if (negative) throw Invalid(text(owner, ": dim ", n, " is negative: ", dim.dim_value()));
    sizes.push_back(fixed ? dim.dim_value() : 1);
    if (!fixed)
      assumed += text(assumed.empty() ? "" : ", ", n, dim.dim_param().empty() ? "" : " (" + dim.dim_param() + ")");
  }
  if (given != options_.shapes.end()) {
    if (type.has_shape() && given->second.size() != sizes.size()) {
      throw Invalid(
          text(owner, ": expected a shape of rank ", sizes.size(), ", found one of rank ", given->second.size()));
    }
    sizes = given->second;
    assumed.clear();
  }
  if (options_.batch > 0 && !sizes.empty() && given == options_.shapes.end()) sizes[0] = options_.batch;
  if (!assumed.empty()) {
    host_->log(host_, TN_LOG_INFO,
               text(owner, ": the model leaves dim ", assumed, " open; took ", to_text(read_dims(sizes, owner)),
                    ", --shape sets another")
                   .c_str());
  }
  return read_dims(sizes, owner);
}

void Translator::add_input(const pb::ValueInfoProto& info) {
  const std::string owner = text("input '", info.name(), "'");
  if (top_.find(info.name()) != nullptr) throw Invalid(owner + " is listed twice");
  const TnValueId given = graph_.find_value(info.name());
  if (given != TN_NO_ID) {  // its contents or dims were given before the model was read
    top_.set(info.name(), Item::tensor(given));
    named_.insert(given);
    return;
  }
  if (top_.has_own(info.name())) return;  // an initializer, which is its default
  if (info.type().value_case() != pb::TypeProto::kTensorType) {
    const bool sequence = info.type().value_case() == pb::TypeProto::kSequenceType;
    decline(text("model inputs that are ", sequence ? "sequences" : "no tensors"), info.name());
    top_.set(info.name(), {Item::Kind::kFailed, TN_NO_ID, {}});
    return;
  }
  const int32_t dtype = info.type().tensor_type().elem_type();
  if (!is_readable(dtype)) {
    decline(dtype == TN_STRING ? std::string("tensors of strings") : text("tensors of ONNX's element type ", dtype),
            info.name());
    top_.set(info.name(), {Item::Kind::kFailed, TN_NO_ID, {}});
    return;
  }
  const TnValueId value = graph_.add_input(info.name(), dtype, input_dims(info));
  named_.insert(value);
  top_.set(info.name(), Item::tensor(value));
}

void Translator::add_outputs() {
  std::set<TnValueId> marked;
  for (const auto& info : model_.graph().output()) {
    const Item* item = lookup(info.name(), top_);
    if (item == nullptr) throw Invalid(text("output '", info.name(), "': nothing computes it"));
    if (item->kind != Item::Kind::kTensor) {
      decline(text("model outputs that are ", item->kind == Item::Kind::kSequence ? "sequences" : "no tensors"),
              info.name());
      continue;
    }
    TnValueId value = item->value;
    // An output is computed, is called as the model says, and is one output only.
    if (graph_.value_name(value) != info.name() || !marked.insert(value).second || graph_.producer(value) == TN_NO_ID) {
      const std::vector<int64_t> same(static_cast<size_t>(graph_.value_dims(value).rank), 0);
      const std::string node = node_names_.make(info.name() + ".copy");
      // The name of a constant that the model gives as it is belongs to the copy.
      if (graph_.find_value(info.name()) == value && graph_.producer(value) == TN_NO_ID && graph_.value_const(value)) {
        graph_.rename(value, value_names_.make(info.name() + ".const"));
      }
      value = graph_.add_node("tenon.reshape/1", node, graph_.attrs().i64s("shape", same), {value});
      if (graph_.find_value(info.name()) == TN_NO_ID) graph_.rename(value, info.name());
      marked.insert(value);
    }
    const int32_t declared = info.type().tensor_type().elem_type();
    const int32_t found = graph_.value_desc(value).dtype;
    if (declared != 0 && declared != found) {
      throw Invalid(text("output '", info.name(), "': the model says ", dtype_name(declared), ", its nodes compute ",
                         dtype_name(found)));
    }
    graph_.add_output(value);
  }
}

void Translator::translate(const Nodes& nodes, Scope& scope, const Call& call) {
  for (const auto& node : nodes) translate(node, scope, call);
}

void Translator::translate(const pb::NodeProto& proto, Scope& scope, const Call& call) {
  OnnxNode node(*this, proto, scope, call);
  std::string name = proto.name();
  if (name.empty()) name = text(proto.op_type(), "_", proto.output_size() > 0 ? proto.output(0) : "");
  node.name_ = node_names_.make(scope.full_name(name.substr(0, Scope::kLongestName)));
  const std::string where = text("node '", node.name_, "' (", proto.op_type(), ")");
  node.num_outputs_ = proto.output_size();
  node.outputs_.resize(static_cast<size_t>(proto.output_size()));
  try {
    count_node();
    const bool complete = read_inputs(proto, scope, &node);
    Found found;
    const auto opset = call.opsets->find(plain_domain(proto.domain()));
    if (opset != call.opsets->end()) {
      found =
          find_rule(opset->first, proto.op_type(), static_cast<int>(std::clamp<int64_t>(opset->second, 0, 1 << 20)));
    }
    node.since_ = found.since;
    if (complete) {
      apply(node, proto, call, found);
    } else {
      // What it lacks is listed already; whether it can be translated itself is told as well.
      if (is_default_domain(proto.domain()) && found.rule == nullptr && found.since > 0) {
        throw Unsupported{found.declined != nullptr ? found.declined : "no rule for it"};
      }
      for (auto& output : node.outputs_) output = Item{Item::Kind::kFailed, TN_NO_ID, {}};
    }
  } catch (const Unsupported& unsupported) {
    decline(text(op_text(proto, node.since_), ": ", unsupported.what), node.name_);
    for (auto& output : node.outputs_) output = Item{Item::Kind::kFailed, TN_NO_ID, {}};
  } catch (const Invalid& failure) {
    // Nodes inside functions and bodies have named themselves.
    const std::string message = failure.what();
    if (message.compare(0, 6, "node '") == 0) throw;
    throw Invalid(where + ": " + message);
  }
  publish(node, proto, scope);
}

bool Translator::read_inputs(const pb::NodeProto& proto, Scope& scope, OnnxNode* node) {
  bool complete = true;
  for (const std::string& input : proto.input()) {
    if (input.empty()) {
      node->inputs_.emplace_back();
      continue;
    }
    const Item* item = lookup(input, scope);
    if (item == nullptr)
      throw Invalid(text("it reads '", input, "', which is neither an input nor computed before it"));
    complete = complete && item->kind != Item::Kind::kFailed;
    node->inputs_.push_back(*item);
  }
  return complete;
}

void Translator::apply(OnnxNode& node, const pb::NodeProto& proto, const Call& call, const Found& found) {
  if (call_function(node, proto, call)) return;
  const std::string domain = plain_domain(proto.domain());
  const auto import = call.opsets->find(domain);
  if (import == call.opsets->end()) {
    throw Invalid(text("its domain '", domain, "' is not among the operator sets that the model imports"));
  }
  const int64_t opset = import->second;
  if (call_op_importer(node, proto, opset)) return;
  if (found.rule != nullptr) return found.rule->translate(node);
  if (found.declined != nullptr) throw Unsupported{found.declined};
  if (call_registered_op(node, proto, opset)) return;
  if (domain.empty() && found.since == 0) {
    throw Invalid(text("ONNX has no operator ", proto.op_type(), " at opset ", opset));
  }
  throw Unsupported{domain.empty() ? std::string("no rule for it")
                                   : text("no installed plugin brings an op or an op importer of this name")};
}

bool Translator::call_function(OnnxNode& node, const pb::NodeProto& proto, const Call& call) {
  for (const auto& function : model_.functions()) {
    if (function.name() != proto.op_type() || plain_domain(function.domain()) != plain_domain(proto.domain()) ||
        function.overload() != proto.overload()) {
      continue;
    }
    if (call.depth >= kDeepest) throw Invalid(text("functions call one another more than ", kDeepest, " deep"));
    Scope scope(nullptr, node.name() + "/");
    for (int n = 0; n < function.input_size(); ++n) {
      scope.set(function.input(n), n < node.num_inputs() ? node.inputs_[static_cast<size_t>(n)] : Item{});
    }
    const Opsets opsets = read_opsets(function.opset_import(), "function '" + function.name() + "'");
    const Call inner{&opsets, &function, &node, call.depth + 1};
    translate(function.node(), scope, inner);
    for (int n = 0; n < function.output_size() && n < node.num_outputs(); ++n) {
      const Item* item = lookup(function.output(n), scope);
      if (item == nullptr)
        throw Invalid(text("function '", function.name(), "' does not compute its output '", function.output(n), "'"));
      node.output(n, *item);
    }
    return true;
  }
  return false;
}

bool Translator::call_op_importer(OnnxNode& node, const pb::NodeProto& proto, int64_t opset) {
  const auto* source = static_cast<const TnOpImporterSource*>(host_->get_interface(host_, TN_IFACE_OP_IMPORTERS));
  if (source == nullptr) return false;
  const std::string type = op_text(proto, 0);
  const TnHost* owner = nullptr;
  const TnOpImporter* importer = source->find(host_, kImporterId, type.c_str(), static_cast<uint32_t>(opset), &owner);
  if (importer == nullptr) return false;
  const std::shared_ptr<const void> hold(importer, [&](const void*) { source->release(host_, importer); });
  NewAttrs attrs = graph_.attrs();
  copy_attributes(node, &attrs);
  std::vector<TnValueId> inputs;
  for (int n = 0; n < node.num_inputs(); ++n) inputs.push_back(node.optional_input(n));
  TnForeignOp op{};
  op.struct_size = TN_HEADER(TnForeignOp);
  op.num_inputs = static_cast<uint32_t>(inputs.size());
  op.type = type.c_str();
  op.name = node.name().c_str();
  op.attrs = attrs.raw();
  op.inputs = inputs.data();
  op.opset = static_cast<uint32_t>(opset);
  std::vector<TnValueId> outputs(static_cast<size_t>(std::max(node.num_outputs(), 1)), TN_NO_ID);
  auto count = static_cast<uint32_t>(outputs.size());
  check_host(importer->import_op(owner, importer, &op, raw_graph_, outputs.data(), &count));
  for (uint32_t n = 0; n < count && n < static_cast<uint32_t>(node.num_outputs()); ++n) {
    if (outputs[n] != TN_NO_ID) node.output(static_cast<int>(n), outputs[n]);
  }
  return true;
}

/// An op that calls itself as the node does: "acme.swish/2" for Swish of domain acme at version 2.
bool Translator::call_registered_op(OnnxNode& node, const pb::NodeProto& proto, int64_t opset) {
  if (is_default_domain(proto.domain())) return false;
  std::string id = plain_domain(proto.domain()) + ".";
  for (const char c : proto.op_type()) id += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  id += text("/", opset);
  NewAttrs attrs = graph_.attrs();
  copy_attributes(node, &attrs);
  std::vector<TnValueId> inputs;
  for (int n = 0; n < node.num_inputs(); ++n) inputs.push_back(node.optional_input(n));
  try {
    const std::vector<TnValueId> outputs = node.add(id, attrs, inputs, node.num_outputs());
    for (int n = 0; n < node.num_outputs(); ++n) node.output(n, outputs[static_cast<size_t>(n)]);
    return true;
  } catch (const Unsupported&) {  // no such op
    return false;
  }
}

void Translator::copy_attributes(const OnnxNode& node, NewAttrs* attrs) const {
  for (const auto& attr : node.proto_.attribute()) {
    const char* name = attr.name().c_str();
    switch (attr.type()) {
      case pb::AttributeProto::INT:
        attrs->i64(name, node.i64(name));
        break;
      case pb::AttributeProto::FLOAT:
        attrs->f64(name, node.f64(name));
        break;
      case pb::AttributeProto::STRING:
        attrs->str(name, node.str(name));
        break;
      case pb::AttributeProto::INTS:
        attrs->i64s(name, node.i64s(name));
        break;
      case pb::AttributeProto::FLOATS:
        attrs->f64s(name, node.f64s(name));
        break;
      case pb::AttributeProto::TENSOR:
        attrs->tensor(name, read_tensor(attr.t(), &source_).tensor);
        break;
      default:
        throw Unsupported{text("attribute ", attr.name(), " of a kind that custom ops do not get")};
    }
  }
}

/// Gives the node's outputs their names.
void Translator::publish(OnnxNode& node, const pb::NodeProto& proto, Scope& scope) {
  for (int n = 0; n < proto.output_size(); ++n) {
    const std::string& name = proto.output(n);
    if (name.empty()) continue;
    if (scope.has_own(name)) {
      throw Invalid(text("node '", node.name(), "' (", proto.op_type(), "): '", name, "' is computed twice"));
    }
    std::optional<Item>& item = node.outputs_[static_cast<size_t>(n)];
    if (!item) item = Item{};  // an output that this operator leaves out
    if (item->kind == Item::Kind::kTensor && named_.insert(item->value).second) {
      const std::string wanted = scope.full_name(name);
      if (graph_.find_value(wanted) == TN_NO_ID) graph_.rename(item->value, wanted);
      value_names_.insert(wanted);
    }
    scope.set(name, std::move(*item));
  }
}

const Item* Translator::lookup(const std::string& name, Scope& scope) {
  if (const Item* item = scope.find(name)) return item;
  Scope* owner = nullptr;
  const pb::TensorProto* tensor = scope.pending(name, &owner);
  if (tensor == nullptr) return nullptr;
  try {
    owner->set(name, Item::tensor(initializer(*tensor, owner->full_name(name))));
  } catch (const Unsupported& unsupported) {
    decline(unsupported.what, name);
    owner->set(name, {Item::Kind::kFailed, TN_NO_ID, {}});
  }
  return owner->find(name);
}

TnValueId Translator::initializer(const pb::TensorProto& tensor, const std::string& name) {
  const ReadTensor read = read_tensor(tensor, &source_);
  const TnValueId value = graph_.add_const(graph_.find_value(name) == TN_NO_ID ? name : "", read.tensor);
  named_.insert(value);
  return value;
}

void Translator::count_node() {
  if (++num_nodes_ > kMostNodes) {
    throw Invalid(text("the model has more than ", kMostNodes, " nodes, with those of its loops in every round"));
  }
}

std::vector<Item> Translator::inline_graph(OnnxNode& node, const pb::GraphProto& graph, const std::vector<Item>& inputs,
                                           const std::string& suffix) {
  count_node();  // else empty graphs in loops would never come to an end
  if (node.call_.depth >= kDeepest) throw Invalid(text("graphs lie inside one another more than ", kDeepest, " deep"));
  if (static_cast<int>(inputs.size()) != graph.input_size()) {
    throw Invalid(text("graph '", graph.name(), "': expected ", inputs.size(), " inputs, found ", graph.input_size()));
  }
  Scope scope(&node.scope_, text(node.name(), "/", suffix, "/"));
  for (int n = 0; n < graph.input_size(); ++n) scope.set(graph.input(n).name(), inputs[static_cast<size_t>(n)]);
  for (const auto& tensor : graph.initializer()) scope.add_initializer(tensor);
  Call call = node.call_;
  ++call.depth;
  translate(graph.node(), scope, call);
  std::vector<Item> outputs;
  for (const auto& output : graph.output()) {
    const Item* item = lookup(output.name(), scope);
    if (item == nullptr)
      throw Invalid(text("graph '", graph.name(), "' does not compute its output '", output.name(), "'"));
    outputs.push_back(*item);
  }
  return outputs;
}

void Translator::decline(const std::string& what, const std::string& where) { declined_[what].push_back(where); }

void Translator::throw_declined() const {
  constexpr size_t kMostNames = 4;
  std::string message = text(source_.name(), ": the model needs what cannot be imported:");
  for (const auto& [what, nodes] : declined_) {
    message += text("\n  ", what, " (", nodes.size(), nodes.size() == 1 ? " time: " : " times: ");
    for (size_t n = 0; n < nodes.size() && n < kMostNames; ++n) message += text(n ? ", " : "", "'", nodes[n], "'");
    message += nodes.size() > kMostNames ? ", ...)" : ")";
  }
  throw Failure(TN_NOTFOUND, message);
}

}  // namespace tenon::onnx
