#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/handles.h"
#include "core/base/text.h"
#include "core/graph/passes.h"

using tenon::Attrs;
using tenon::AttrValue;
using tenon::Code;
using tenon::Graph;
using tenon::HostTensor;
using tenon::Result;
using tenon::Status;
using tenon::Value;
using namespace tenon::api;
using nlohmann::json;

struct TnReferenceRun {
  std::vector<std::string> names;
  std::vector<std::shared_ptr<const HostTensor>> values;
};

namespace {

Result<json> parse_object(const char* text, const char* what) {
  if (text == nullptr) return json::object();
  json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object()) return Status(Code::kInvalid, fmt::format("{} is not a JSON object: {}", what, text));
  return parsed;
}

Result<std::map<std::string, std::string>> string_map(const char* text, const char* what) {
  TENON_ASSIGN(const json object, parse_object(text, what));
  std::map<std::string, std::string> result;
  for (const auto& [key, value] : object.items()) {
    result[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return result;
}

const TnParam* find_param(const TnOp& op, const std::string& name) {
  for (std::uint32_t i = 0; i < op.num_params; ++i) {
    if (name == op.params[i]->name) return op.params[i];
  }
  return nullptr;
}

/// One JSON value as an attribute; `type` is the schema's (0: unknown, decided by the value).
Result<AttrValue> attr_from_json(const std::string& name, const json& value, int type) {
  const auto all = [&](auto predicate) { return std::all_of(value.begin(), value.end(), predicate); };
  if (type == TN_ATTR_DTYPE && value.is_string()) {
    TENON_ASSIGN(const std::int32_t dtype, tenon::parse_dtype(value.get<std::string>()));
    return AttrValue(tenon::DTypeAttr{dtype});
  }
  if (value.is_boolean()) return AttrValue(std::int64_t{value.get<bool>()});
  if (value.is_number_integer()) {
    if (type == TN_ATTR_F64) return AttrValue(value.get<double>());
    return AttrValue(value.get<std::int64_t>());
  }
  if (value.is_number()) return AttrValue(value.get<double>());
  if (value.is_string()) return AttrValue(value.get<std::string>());
  if (value.is_array() && all([](const json& item) { return item.is_string(); }) && !value.empty()) {
    return AttrValue(value.get<std::vector<std::string>>());
  }
  if (value.is_array() && type != TN_ATTR_F64S && all([](const json& item) { return item.is_number_integer(); })) {
    return AttrValue(value.get<std::vector<std::int64_t>>());
  }
  if (value.is_array() && all([](const json& item) { return item.is_number(); })) {
    return AttrValue(value.get<std::vector<double>>());
  }
  return Status(Code::kInvalid,
                fmt::format("attribute {}: {} is neither number, text nor a list of one of them", name, value.dump()));
}

json tensor_json(const Value& value) {
  return {{"name", value.name}, {"dims", tenon::to_vector(value.dims)}, {"dtype", tenon::dtype_name(value.dtype)}};
}

Status check_id(const TnNetwork* network, TnTensorId tensor) {
  TENON_RETURN_IF_ERROR(need(network, "network"));
  if (tensor >= network->graph.values().size() || !network->graph.value(tensor).alive) {
    return {Code::kInvalid, fmt::format("tensor {} does not exist in this network", tensor)};
  }
  return {};
}

Status not_found(const Graph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (const Value& value : graph.values()) {
    if (value.alive) names.push_back(value.name);
  }
  const std::string near = tenon::nearest(name, names);
  return {Code::kNotFound, fmt::format("the network has no tensor \"{}\"{}", name,
                                       near.empty() ? "" : "; did you mean \"" + near + "\"?")};
}

Result<tenon::ValueId> find_input(const Graph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (const tenon::ValueId input : graph.inputs()) {
    if (graph.value(input).name == name) return input;
    names.push_back(graph.value(input).name);
  }
  return Status(Code::kNotFound, fmt::format("the network has no input \"{}\"; its inputs are: {}", name,
                                             names.empty() ? "none" : tenon::join(names)));
}

}  // namespace

extern "C" {

TnStatus tn_network_create(TnLibrary* library, TnNetwork** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(library, "library"));
    TENON_RETURN_IF_ERROR(need(out, "out"));
    *out = new TnNetwork{library->state, Graph(library->state->registry)};
    return {};
  });
}

void tn_network_release(TnNetwork* network) { delete network; }

TnStatus tn_network_import(TnNetwork* network, const char* path, const char* importer, const char* options_json,
                           const char* files_json) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(network, "network"));
    TENON_RETURN_IF_ERROR(need(path, "path"));
    if (!network->graph.nodes().empty()) {
      return {Code::kInvalid, "a model can only be imported into a network without layers"};
    }
    TENON_ASSIGN(const auto options, string_map(options_json, "options_json"));
    TENON_ASSIGN(const auto files, string_map(files_json, "files_json"));
    Graph graph = network->graph;
    TENON_RETURN_IF_ERROR(network->library->report(
        import_model(*network->library, path, importer != nullptr ? importer : "", options, files, &graph)));
    network->graph = std::move(graph);
    return {};
  });
}

TnStatus tn_network_add_input(TnNetwork* network, const char* name, int32_t dtype, const TnDims* dims,
                              TnTensorId* out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(network, "network"));
    TENON_RETURN_IF_ERROR(need(name, "name"));
    TENON_RETURN_IF_ERROR(need(dims, "dims"));
    TENON_RETURN_IF_ERROR(need(out, "out"));
    TENON_ASSIGN(*out, network->graph.add_input(name, dtype, *dims));
    return {};
  });
}

TnStatus tn_network_add_constant(TnNetwork* network, const char* name, int32_t dtype, const TnDims* dims,
                                 const void* data, size_t bytes, TnTensorId* out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(network, "network"));
    TENON_RETURN_IF_ERROR(need(dims, "dims"));
    TENON_RETURN_IF_ERROR(need(out, "out"));
    TENON_ASSIGN(auto tensor, HostTensor::create(dtype, *dims, data, bytes));
    TENON_ASSIGN(*out, network->graph.add_constant(name != nullptr ? name : "", std::move(tensor)));
    return {};
  });
}

TnStatus tn_network_add_layer(TnNetwork* network, const char* op_id, const char* name, const char* attrs_json,
                              const TnTensorId* inputs, uint32_t num_inputs, TnTensorId* outputs,
                              uint32_t num_outputs) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(network, "network"));
    TENON_RETURN_IF_ERROR(need(op_id, "op_id"));
    if (num_inputs != 0) TENON_RETURN_IF_ERROR(need(inputs, "inputs"));
    if (num_outputs != 0) TENON_RETURN_IF_ERROR(need(outputs, "outputs"));
    for (uint32_t i = 0; i < num_inputs; ++i) {
      if (inputs[i] != TN_NO_TENSOR) TENON_RETURN_IF_ERROR(check_id(network, inputs[i]));
    }
    const tenon::OpRef op = network->graph.ops().find_op(op_id);
    TENON_ASSIGN(const json object, parse_object(attrs_json, "attrs_json"));
    Attrs attrs;
    for (const auto& [key, value] : object.items()) {
      const TnParam* param = op ? find_param(*op.op, key) : nullptr;
      TENON_ASSIGN(attrs.values[key], attr_from_json(key, value, param != nullptr ? param->type : 0));
    }
    TENON_ASSIGN(const tenon::NodeId node,
                 network->graph.add_node(op_id, name != nullptr ? name : "", std::move(attrs),
                                         std::vector<tenon::ValueId>(inputs, inputs + num_inputs), num_outputs));
    std::copy_n(network->graph.node(node).outputs.begin(), num_outputs, outputs);
    return {};
  });
}

TnStatus tn_network_mark_output(TnNetwork* network, TnTensorId tensor) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(check_id(network, tensor));
    if (network->graph.is_output(tensor)) return {};
    return network->graph.add_output(tensor);
  });
}

TnStatus tn_network_mark_output_by_name(TnNetwork* network, const char* name) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(network, "network"));
    TENON_RETURN_IF_ERROR(need(name, "name"));
    const tenon::ValueId value = network->graph.find_value(name);
    if (value == tenon::kNoId) return not_found(network->graph, name);
    if (network->graph.is_output(value)) return {};
    return network->graph.add_output(value);
  });
}

TnStatus tn_network_set_input_dims(TnNetwork* network, const char* name, const TnDims* dims) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(network, "network"));
    TENON_RETURN_IF_ERROR(need(name, "name"));
    TENON_RETURN_IF_ERROR(need(dims, "dims"));
    Graph graph = network->graph;
    TENON_ASSIGN(const tenon::ValueId value, find_input(graph, name));
    TENON_RETURN_IF_ERROR(graph.set_input_dims({{value, *dims}}));
    network->graph = std::move(graph);
    return {};
  });
}

TnStatus tn_network_set_profile(TnNetwork* network, const char* name, const TnDims* min, const TnDims* opt,
                                const TnDims* max) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(network, "network"));
    TENON_RETURN_IF_ERROR(need(name, "name"));
    TENON_RETURN_IF_ERROR(need(min, "min"));
    TENON_RETURN_IF_ERROR(need(opt, "opt"));
    TENON_RETURN_IF_ERROR(need(max, "max"));
    Graph graph = network->graph;
    TENON_ASSIGN(const tenon::ValueId value, find_input(graph, name));
    if (!tenon::same_dims(graph.value(value).dims, *opt)) {
      TENON_RETURN_IF_ERROR(graph.set_input_dims({{value, *opt}}));
    }
    TENON_RETURN_IF_ERROR(graph.set_profile(value, {*min, *max}));
    network->graph = std::move(graph);
    return {};
  });
}

TnStatus tn_network_rename(TnNetwork* network, TnTensorId tensor, const char* name) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(check_id(network, tensor));
    TENON_RETURN_IF_ERROR(need(name, "name"));
    const tenon::ValueId other = network->graph.find_value(name);
    if (other != tenon::kNoId && other != tensor) {
      return {Code::kConflict, fmt::format("another tensor is called \"{}\" already", name)};
    }
    network->graph.rename(tensor, name);
    return {};
  });
}

TnStatus tn_network_describe_tensor(const TnNetwork* network, TnTensorId tensor, const char** name, int32_t* dtype,
                                    TnDims* dims) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(check_id(network, tensor));
    const Value& value = network->graph.value(tensor);
    if (name != nullptr) *name = value.name.c_str();
    if (dtype != nullptr) *dtype = value.dtype;
    if (dims != nullptr) *dims = value.dims;
    return {};
  });
}

TnStatus tn_network_set_metadata(TnNetwork* network, const char* key, const char* text) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(network, "network"));
    TENON_RETURN_IF_ERROR(need(key, "key"));
    TENON_RETURN_IF_ERROR(need(text, "text"));
    network->graph.set_metadata(key, text);
    return {};
  });
}

TnStatus tn_network_get_metadata(const TnNetwork* network, const char* key, const char** text) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(network, "network"));
    TENON_RETURN_IF_ERROR(need(key, "key"));
    TENON_RETURN_IF_ERROR(need(text, "text"));
    const auto found = network->graph.metadata().find(key);
    if (found == network->graph.metadata().end()) {
      return {Code::kNotFound, fmt::format("the network has no metadata \"{}\"", key)};
    }
    *text = found->second.c_str();
    return {};
  });
}

TnStatus tn_network_dump(const TnNetwork* network, TnText** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(network, "network"));
    TENON_RETURN_IF_ERROR(need(out, "out"));
    *out = new TnText{network->graph.dump()};
    return {};
  });
}

TnStatus tn_network_describe(const TnNetwork* network, TnText** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(network, "network"));
    TENON_RETURN_IF_ERROR(need(out, "json"));
    const Graph& graph = network->graph;
    json inputs = json::array(), outputs = json::array(), nodes = json::array();
    for (const tenon::ValueId input : graph.inputs()) inputs.push_back(tensor_json(graph.value(input)));
    for (const tenon::ValueId output : graph.outputs()) outputs.push_back(tensor_json(graph.value(output)));
    std::int64_t parameters = 0;
    for (const Value& value : graph.values()) {
      if (value.alive && value.constant != nullptr) parameters += *tenon::element_count(value.dims);
    }
    TENON_ASSIGN(const auto order, graph.topological_order());
    for (const tenon::NodeId id : order) {
      const tenon::Node& node = graph.node(id);
      json in = json::array(), out_values = json::array();
      for (const tenon::ValueId input : node.inputs) in.push_back(input == tenon::kNoId ? "" : graph.value(input).name);
      for (const tenon::ValueId output : node.outputs) out_values.push_back(tensor_json(graph.value(output)));
      nodes.push_back({{"name", node.name},
                       {"op", node.op_id()},
                       {"inputs", in},
                       {"outputs", out_values},
                       {"attrs", node.attrs.text()}});
    }
    *out = new TnText{json{{"inputs", inputs},
                           {"outputs", outputs},
                           {"nodes", nodes},
                           {"parameters", parameters},
                           {"metadata", graph.metadata()}}
                          .dump(2, ' ', false, json::error_handler_t::replace)};
    return {};
  });
}

TnStatus tn_reference_run(const TnNetwork* network, const void* const* inputs, uint32_t num_inputs,
                          TnReferenceRun** out) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(network, "network"));
    TENON_RETURN_IF_ERROR(need(out, "out"));
    const Graph& graph = network->graph;
    if (num_inputs != graph.inputs().size()) {
      return {Code::kInvalid,
              fmt::format("the network has {} inputs, {} were given", graph.inputs().size(), num_inputs)};
    }
    if (num_inputs != 0) TENON_RETURN_IF_ERROR(need(inputs, "inputs"));
    std::vector<std::shared_ptr<const HostTensor>> values(graph.values().size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = graph.value(static_cast<tenon::ValueId>(i)).constant;
    for (uint32_t i = 0; i < num_inputs; ++i) {
      const Value& value = graph.value(graph.inputs()[i]);
      TENON_RETURN_IF_ERROR(need(inputs[i], value.name.c_str()));
      TENON_ASSIGN(const std::uint64_t bytes, tenon::tensor_bytes(value.dtype, value.dims, tenon::row_format()));
      TENON_ASSIGN(values[graph.inputs()[i]], HostTensor::create(value.dtype, value.dims, inputs[i], bytes));
    }
    auto run = std::make_unique<TnReferenceRun>();
    TENON_ASSIGN(const auto order, graph.topological_order());
    for (const tenon::NodeId id : order) {
      const tenon::Node& node = graph.node(id);
      std::vector<std::shared_ptr<const HostTensor>> arguments;
      for (const tenon::ValueId input : node.inputs) {
        arguments.push_back(input == tenon::kNoId ? nullptr : values[input]);
      }
      TENON_ASSIGN(const auto results, tenon::evaluate_reference(graph, id, arguments));
      for (std::size_t i = 0; i < results.size(); ++i) {
        values[node.outputs[i]] = results[i];
        run->names.push_back(graph.value(node.outputs[i]).name);
        run->values.push_back(results[i]);
      }
    }
    *out = run.release();
    return {};
  });
}

void tn_reference_release(TnReferenceRun* run) { delete run; }

uint32_t tn_reference_num_values(const TnReferenceRun* run) {
  return run != nullptr ? static_cast<uint32_t>(run->values.size()) : 0;
}

TnStatus tn_reference_value(const TnReferenceRun* run, uint32_t index, const char** name, TnTensor* tensor) {
  return guarded([&]() -> Status {
    TENON_RETURN_IF_ERROR(need(run, "run"));
    if (index >= run->values.size()) {
      return {Code::kInvalid, fmt::format("value {} is out of range: there are {}", index, run->values.size())};
    }
    if (name != nullptr) *name = run->names[index].c_str();
    if (tensor != nullptr) *tensor = run->values[index]->view();
    return {};
  });
}

}  // extern "C"
