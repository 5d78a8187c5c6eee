// The C table behind TnHost.graph. Every failure is recorded with a text; no exception leaves a function. Questions
// about things that do not exist get harmless answers ("", 0, TN_NO_ID), so that a careless plugin sees its mistake as
// a failure and not as a crash.

#include <fmt/format.h>

#include "core/base/failure.h"
#include "core/graph/graph.h"
#include "core/graph/passes.h"

namespace tenon {
namespace {

TnStatus fail(TnStatus code, const std::string& message) {
  record_failure(code, nullptr, message.c_str());
  return code;
}

TnStatus fail(const Status& status) { return fail(static_cast<TnStatus>(status.code()), status.message()); }

/// Runs `body`; an exception is recorded and gives `otherwise`.
template <class T, class F>
T guarded(T otherwise, F body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    record_failure(TN_NOMEM, nullptr, "graph: out of memory");
  } catch (...) {
    record_failure(TN_INTERNAL, nullptr, "graph: unexpected exception");
  }
  return otherwise;
}

template <class F>
TnStatus guarded_status(F body) noexcept {
  return guarded(static_cast<TnStatus>(TN_INTERNAL), body);
}

const Node* find_node(const TnGraph* graph, TnNodeId id) {
  if (graph == nullptr) {
    fail(TN_INVALID, "graph: the graph is NULL");
    return nullptr;
  }
  const Graph& g = *Graph::from(graph);
  if (id < g.nodes().size() && g.node(id).alive) return &g.node(id);
  fail(TN_INVALID, fmt::format("graph: there is no node {}", id));
  return nullptr;
}

const Value* find_value(const TnGraph* graph, TnValueId id) {
  if (graph == nullptr) {
    fail(TN_INVALID, "graph: the graph is NULL");
    return nullptr;
  }
  const Graph& g = *Graph::from(graph);
  if (id < g.values().size() && g.value(id).alive) return &g.value(id);
  fail(TN_INVALID, fmt::format("graph: there is no value {}", id));
  return nullptr;
}

TnNodeId TN_CALL match_node(const TnMatch* match, std::uint32_t n) {
  return guarded(kNoId, [&] {
    if (match != nullptr && n < Match::from(match)->nodes.size()) return Match::from(match)->nodes[n];
    fail(TN_NOTFOUND, fmt::format("match: the pattern has no op number {}", n));
    return kNoId;
  });
}

TnValueId TN_CALL match_value(const TnMatch* match, const char* name) {
  return guarded(kNoId, [&] {
    if (match != nullptr && name != nullptr) {
      const auto& values = Match::from(match)->values;
      const auto found = values.find(*name == '$' ? name + 1 : name);
      if (found != values.end()) return found->second;
    }
    fail(TN_NOTFOUND, fmt::format("match: the pattern binds no ${}", name != nullptr ? name : ""));
    return kNoId;
  });
}

const char* TN_CALL node_op(const TnGraph* graph, TnNodeId id) {
  return guarded("", [&] {
    const Node* node = find_node(graph, id);
    return node != nullptr ? node->op.op->id : "";
  });
}

const char* TN_CALL node_name(const TnGraph* graph, TnNodeId id) {
  return guarded("", [&] {
    const Node* node = find_node(graph, id);
    return node != nullptr ? node->name.c_str() : "";
  });
}

const TnAttrs* TN_CALL node_attrs(const TnGraph* graph, TnNodeId id) {
  static const TnAttrs empty;
  return guarded(&empty, [&] {
    const Node* node = find_node(graph, id);
    return node != nullptr ? &node->attrs : &empty;
  });
}

std::uint32_t TN_CALL node_num_inputs(const TnGraph* graph, TnNodeId id) {
  return guarded(std::uint32_t{0}, [&] {
    const Node* node = find_node(graph, id);
    return node != nullptr ? static_cast<std::uint32_t>(node->inputs.size()) : 0;
  });
}

std::uint32_t TN_CALL node_num_outputs(const TnGraph* graph, TnNodeId id) {
  return guarded(std::uint32_t{0}, [&] {
    const Node* node = find_node(graph, id);
    return node != nullptr ? static_cast<std::uint32_t>(node->outputs.size()) : 0;
  });
}

/// Ports beyond the last one are absent, which is no mistake.
TnValueId TN_CALL node_input(const TnGraph* graph, TnNodeId id, std::uint32_t n) {
  return guarded(kNoId, [&] {
    const Node* node = find_node(graph, id);
    return node != nullptr && n < node->inputs.size() ? node->inputs[n] : kNoId;
  });
}

TnValueId TN_CALL node_output(const TnGraph* graph, TnNodeId id, std::uint32_t n) {
  return guarded(kNoId, [&] {
    const Node* node = find_node(graph, id);
    return node != nullptr && n < node->outputs.size() ? node->outputs[n] : kNoId;
  });
}

const char* TN_CALL value_name(const TnGraph* graph, TnValueId id) {
  return guarded("", [&] {
    const Value* value = find_value(graph, id);
    return value != nullptr ? value->name.c_str() : "";
  });
}

TnStatus TN_CALL value_desc(const TnGraph* graph, TnValueId id, TnTensor* out) {
  return guarded_status([&]() -> TnStatus {
    const Value* value = find_value(graph, id);
    if (value == nullptr) return TN_INVALID;
    if (out == nullptr) return fail(TN_INVALID, "value_desc: out is NULL");
    *out = tensor_view(nullptr, value->dtype, value->dims, row_format(), TN_MEMORY_HOST);
    return TN_OK;
  });
}

TnStatus TN_CALL value_const(const TnGraph* graph, TnValueId id, TnTensor* out) {
  return guarded_status([&]() -> TnStatus {
    const Value* value = find_value(graph, id);
    if (value == nullptr) return TN_INVALID;
    if (out == nullptr) return fail(TN_INVALID, "value_const: out is NULL");
    if (value->constant == nullptr) return fail(TN_NOTFOUND, fmt::format("value \"{}\" is not constant", value->name));
    *out = value->constant->view();
    return TN_OK;
  });
}

TnStatus TN_CALL new_input(TnGraph* graph, const char* name, std::int32_t dtype, const TnDims* dims, TnValueId* out) {
  return guarded_status([&]() -> TnStatus {
    if (graph == nullptr || name == nullptr || dims == nullptr) {
      return fail(TN_INVALID, "new_input: graph, name or dims is NULL");
    }
    const Result<ValueId> value = Graph::from(graph)->add_input(name, dtype, *dims);
    if (!value.ok()) return fail(value.status());
    if (out != nullptr) *out = *value;
    return TN_OK;
  });
}

TnStatus TN_CALL new_const(TnGraph* graph, const char* name, const TnTensor* tensor, TnValueId* out) {
  return guarded_status([&]() -> TnStatus {
    if (graph == nullptr || tensor == nullptr) return fail(TN_INVALID, "new_const: graph or tensor is NULL");
    const std::string text = name != nullptr ? name : "";
    Result<std::shared_ptr<const HostTensor>> contents = HostTensor::copy_of(*tensor);
    if (!contents.ok()) return fail(contents.status().with_context(fmt::format("constant \"{}\"", text)));
    const Result<ValueId> value = Graph::from(graph)->add_constant(text, std::move(*contents));
    if (!value.ok()) return fail(value.status());
    if (out != nullptr) *out = *value;
    return TN_OK;
  });
}

TnStatus TN_CALL new_node(TnGraph* graph, const char* op_id, const char* name, const TnAttrs* attrs,
                          const TnValueId* inputs, std::uint32_t num_inputs, const char* const* output_names,
                          TnValueId* outputs, std::uint32_t num_outputs, TnNodeId* node) {
  return guarded_status([&]() -> TnStatus {
    if (graph == nullptr || op_id == nullptr) return fail(TN_INVALID, "new_node: graph or op_id is NULL");
    if ((inputs == nullptr && num_inputs > 0) || (outputs == nullptr && num_outputs > 0)) {
      return fail(TN_INVALID, fmt::format("new_node of {}: inputs or outputs is NULL", op_id));
    }
    std::vector<ValueId> input_ids;
    if (num_inputs > 0) input_ids.assign(inputs, inputs + num_inputs);
    std::vector<std::string> names;
    for (std::uint32_t i = 0; output_names != nullptr && i < num_outputs; ++i) {
      names.emplace_back(output_names[i] != nullptr ? output_names[i] : "");
    }
    Graph& g = *Graph::from(graph);
    const bool named = name != nullptr && *name != 0;
    std::string node_name = named ? name : "";
    if (!named && !names.empty() && !names[0].empty()) {
      // By op and first output, as the ABI says; "conv2d" of "tenon.conv2d/1".
      const std::string_view op = std::string_view(op_id).substr(0, std::string_view(op_id).find('/'));
      node_name = fmt::format("{}_{}", op.substr(op.rfind('.') + 1), names[0]);
      if (g.find_node(node_name) != kNoId) node_name.clear();
    }
    const Result<NodeId> added =
        g.add_node(op_id, node_name, attrs != nullptr ? *attrs : Attrs(), std::move(input_ids), num_outputs, names);
    if (!added.ok()) return fail(added.status());
    if (!named && !std::as_const(g).node(*added).auto_named) g.node(*added).auto_named = true;
    for (std::uint32_t i = 0; i < num_outputs; ++i) outputs[i] = std::as_const(g).node(*added).outputs[i];
    if (node != nullptr) *node = *added;
    return TN_OK;
  });
}

TnStatus TN_CALL replace(TnGraph* graph, TnValueId old_value, TnValueId new_value) {
  return guarded_status([&]() -> TnStatus {
    if (graph == nullptr) return fail(TN_INVALID, "replace: the graph is NULL");
    const Status status = Graph::from(graph)->replace(old_value, new_value);
    return status.ok() ? TN_OK : fail(status);
  });
}

TnStatus TN_CALL add_output(TnGraph* graph, TnValueId value) {
  return guarded_status([&]() -> TnStatus {
    if (graph == nullptr) return fail(TN_INVALID, "add_output: the graph is NULL");
    const Status status = Graph::from(graph)->add_output(value);
    return status.ok() ? TN_OK : fail(status);
  });
}

TnStatus TN_CALL set_metadata(TnGraph* graph, const char* key, const char* text) {
  return guarded_status([&]() -> TnStatus {
    if (graph == nullptr || key == nullptr || text == nullptr) {
      return fail(TN_INVALID, "set_metadata: graph, key or text is NULL");
    }
    Graph::from(graph)->set_metadata(key, text);
    return TN_OK;
  });
}

TnValueId TN_CALL find_value_by_name(const TnGraph* graph, const char* name) {
  return guarded(kNoId, [&] {
    if (graph != nullptr && name != nullptr) return Graph::from(graph)->find_value(name);
    fail(TN_INVALID, "find_value: graph or name is NULL");
    return kNoId;
  });
}

TnNodeId TN_CALL value_producer(const TnGraph* graph, TnValueId id) {
  return guarded(kNoId, [&] {
    const Value* value = find_value(graph, id);
    return value != nullptr ? value->producer : kNoId;
  });
}

TnStatus TN_CALL rename_value(TnGraph* graph, TnValueId id, const char* name) {
  return guarded_status([&]() -> TnStatus {
    if (find_value(graph, id) == nullptr) return TN_INVALID;
    if (name == nullptr || *name == 0) return fail(TN_INVALID, "rename_value: the name is NULL or empty");
    Graph& g = *Graph::from(graph);
    const ValueId holder = g.find_value(name);
    if (holder != kNoId && holder != id) {
      return fail(TN_CONFLICT, fmt::format("rename_value: a value \"{}\" exists already", name));
    }
    g.rename(id, name);
    return TN_OK;
  });
}

}  // namespace

const TnGraphApi& graph_api() {
  static const TnGraphApi api = {TN_HEADER(TnGraphApi),
                                 0,
                                 match_node,
                                 match_value,
                                 node_op,
                                 node_name,
                                 node_attrs,
                                 node_num_inputs,
                                 node_num_outputs,
                                 node_input,
                                 node_output,
                                 value_name,
                                 value_desc,
                                 value_const,
                                 new_input,
                                 new_const,
                                 new_node,
                                 replace,
                                 add_output,
                                 set_metadata,
                                 find_value_by_name,
                                 value_producer,
                                 rename_value};
  return api;
}

}  // namespace tenon
