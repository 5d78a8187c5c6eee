#include <nlohmann/json.hpp>

#include "core/base/hash.h"
#include "core/runtime/engine.h"

namespace tenon {
namespace {

// Keys keep the order in which they are written here.
using Json = nlohmann::ordered_json;

const char* datatype_name(std::int32_t dtype) {
  switch (dtype) {
    case TN_F32:
      return "Float";
    case TN_F16:
      return "Half";
    case TN_BF16:
      return "BFloat16";
    case TN_F64:
      return "Double";
    case TN_I8:
      return "Int8";
    case TN_U8:
      return "UInt8";
    case TN_I32:
      return "Int32";
    case TN_I64:
      return "Int64";
    case TN_BOOL:
      return "Bool";
    default:
      return nullptr;
  }
}

std::string tensor_oneline(const PlanTensor& tensor) {
  const char* name = datatype_name(tensor.dtype);
  std::string text = "{ Name: " + tensor.name + ", Dimensions: " + dims_text(tensor.dims) + ", Format/Datatype: ";
  text += name != nullptr ? name : dtype_name(tensor.dtype);
  const std::string format = format_text(tensor.format);
  return text + (format == "row" ? "" : ":" + format) + " }";
}

std::string tensors_oneline(const Plan& plan, const std::vector<std::uint32_t>& ids) {
  std::string text;
  for (const std::uint32_t id : ids) {
    if (id == kNoTensor) continue;
    text += (text.empty() ? " " : ", ") + tensor_oneline(plan.tensors[id]);
  }
  return "[" + text + (text.empty() ? "]" : " ]");
}

Json tensors_json(const Plan& plan, const std::vector<std::uint32_t>& ids) {
  Json list = Json::array();
  for (const std::uint32_t id : ids) {
    if (id == kNoTensor) continue;
    const PlanTensor& tensor = plan.tensors[id];
    list.push_back({{"name", tensor.name},
                    {"dims", to_vector(tensor.dims)},
                    {"dtype", dtype_name(tensor.dtype)},
                    {"format", format_text(tensor.format)}});
  }
  return list;
}

// Why something is not shown, in the words of the builder's option.
constexpr const char* kNeedsDetailed = "(not recorded: build with profiling verbosity \"detailed\")";
constexpr const char* kNeedsNames = "(not recorded: build with profiling verbosity \"layer_names\" or \"detailed\")";

Json layer_json(const Plan& plan, std::size_t layer) {
  const PlanNode& node = plan.nodes[layer];
  Json json;
  if (plan.verbosity == Verbosity::kNone) {
    json["name"] = nullptr;
    json["note"] = kNeedsNames;
    return json;
  }
  json["name"] = node.name;
  json["layer_type"] = node.layer_type;
  json["op"] = node.op_id;
  json["inputs"] = tensors_json(plan, node.inputs);
  json["outputs"] = tensors_json(plan, node.outputs);
  const bool detailed = plan.verbosity == Verbosity::kDetailed;
  json["kernel"] = detailed ? Json(node.kernel) : Json();
  json["tactic"] = detailed ? Json(node.tactic.params) : Json();
  json["tactic_hash"] = detailed ? Json(to_text(node.tactic_hash)) : Json();
  json["key"] = detailed ? Json(to_text(node.key)) : Json();
  json["ms"] = node.ms;
  json["device"] = plan.device_kind;
  const PlanTensor* main = node.outputs.empty() ? nullptr : &plan.tensors[node.outputs[0]];
  json["dtype"] = main != nullptr ? Json(dtype_name(main->dtype)) : Json();
  json["format"] = main != nullptr ? Json(format_text(main->format)) : Json();
  json["fused_from"] = node.members.size() > 1 ? Json(node.members) : Json::array();
  json["stream"] = node.stream;
  if (!detailed) json["note"] = std::string("kernel, tactic, tactic_hash, key: ") + kNeedsDetailed;
  return json;
}

// Names come from models and may hold anything, so bytes that are no UTF-8 are replaced.
std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

std::string no_such_layer(const Plan& plan, std::size_t layer) {
  return "there is no layer " + std::to_string(layer) + ", the engine has " + std::to_string(plan.nodes.size());
}

}  // namespace

std::string inspect_layer_oneline(const Plan& plan, std::size_t layer) {
  if (layer >= plan.nodes.size()) return no_such_layer(plan, layer);
  const PlanNode& node = plan.nodes[layer];
  if (plan.verbosity == Verbosity::kNone) return std::string("Name: ") + kNeedsNames;
  std::string tactic = kNeedsDetailed;
  if (plan.verbosity == Verbosity::kDetailed) {
    tactic = node.kernel + (node.tactic.params.empty() ? "" : " " + node.tactic.params);
  }
  return "Name: " + node.name + ", LayerType: " + node.layer_type + ", Inputs: " + tensors_oneline(plan, node.inputs) +
         ", Outputs: " + tensors_oneline(plan, node.outputs) + ", TacticName: " + tactic +
         ", StreamId: " + std::to_string(node.stream) + ", Metadata: ";
}

std::string inspect_oneline(const Plan& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) text += inspect_layer_oneline(plan, i) + "\n";
  return text;
}

std::string inspect_layer_json(const Plan& plan, std::size_t layer) {
  if (layer >= plan.nodes.size()) return dump({{"error", no_such_layer(plan, layer)}});
  return dump(layer_json(plan, layer));
}

std::string inspect_ends(const Plan& plan) {
  const auto list = [&](const std::vector<PlanIo>& ends) {
    Json result = Json::array();
    for (const PlanIo& end : ends) {
      const PlanTensor& tensor = plan.tensors[end.tensor];
      result.push_back({{"name", end.name},
                        {"dtype", dtype_name(tensor.dtype)},
                        {"dims", to_vector(tensor.dims)},
                        {"min", to_vector(end.min)},
                        {"max", to_vector(end.max)}});
    }
    return result;
  };
  return dump({{"inputs", list(plan.inputs)}, {"outputs", list(plan.outputs)}});
}

std::string inspect_json(const Plan& plan) {
  Json layers = Json::array();
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) layers.push_back(layer_json(plan, i));
  return dump(layers);
}

}  // namespace tenon
