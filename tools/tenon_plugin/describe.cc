#include "tools/tenon_plugin/describe.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/graph/attributes.h"
#include "core/graph/tensor.h"
#include "registry/plugin_library.h"
#include "registry/registry.h"

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

/// NULL of the ABI is null of JSON.
Json text_or_null(const char* text) { return text != nullptr ? Json(text) : Json(); }

struct Flag {
  std::uint32_t bit;
  const char* name;
};
constexpr Flag kOpFlags[] = {{TN_OP_PURE, "pure"},
                             {TN_OP_COMMUTATIVE, "commutative"},
                             {TN_OP_ELEMENTWISE, "elementwise"},
                             {TN_OP_RANDOM, "random"},
                             {TN_OP_STATEFUL, "stateful"}};
constexpr Flag kPortFlags[] = {{TN_PORT_OPTIONAL, "optional"},
                               {TN_PORT_VARIADIC, "variadic"},
                               {TN_PORT_HOST_VALUE, "host_value"},
                               {TN_PORT_CONST, "const"}};
constexpr Flag kKernelFlags[] = {{TN_KERNEL_DETERMINISTIC, "deterministic"},
                                 {TN_KERNEL_GRAPH_CAPTURABLE, "graph_capturable"},
                                 {TN_KERNEL_RELOCATABLE, "relocatable"},
                                 {TN_KERNEL_VALUE_DEPENDENT, "value_dependent"}};

template <std::size_t count>
Json flag_names(std::uint32_t flags, const Flag (&table)[count]) {
  Json names = Json::array();
  for (const Flag& flag : table) {
    if ((flags & flag.bit) != 0) names.push_back(flag.name);
  }
  return names;
}

Json describe_params(const TnParam* const* params, std::uint32_t count) {
  Json list = Json::array();
  for (std::uint32_t i = 0; i < count; ++i) {
    const TnParam& param = *params[i];
    list.push_back({{"name", param.name},
                    {"type", attr_type_name(param.type)},
                    {"required", param.required != 0},
                    {"default", text_or_null(param.default_text)},
                    {"range", text_or_null(param.range)},
                    {"doc", text_or_null(param.doc)}});
  }
  return list;
}

Json describe_ports(const TnPortSpec* const* ports, std::uint32_t count) {
  Json list = Json::array();
  for (std::uint32_t i = 0; i < count; ++i) {
    list.push_back({{"name", ports[i]->name},
                    {"flags", flag_names(ports[i]->flags, kPortFlags)},
                    {"doc", text_or_null(ports[i]->doc)}});
  }
  return list;
}

Json describe_op(const TnOp& op) {
  return {{"id", op.id},
          {"doc", text_or_null(op.doc)},
          {"flags", flag_names(op.flags, kOpFlags)},
          {"attributes", describe_params(op.params, op.num_params)},
          {"inputs", describe_ports(op.inputs, op.num_inputs)},
          {"outputs", describe_ports(op.outputs, op.num_outputs)}};
}

std::string port_text(const TnPort& port) {
  if (port.dtype == TN_DTYPE_NONE) return "none";
  return dtype_name(port.dtype) + ":" + format_text(port.format);
}

/// "f32:row,f32:row>f32:row", the form of timing caches.
std::string combo_text(const TnCombo& combo) {
  std::vector<std::string> inputs, outputs;
  for (std::uint32_t i = 0; i < combo.num_inputs; ++i) inputs.push_back(port_text(combo.ports[i]));
  for (std::uint32_t i = 0; i < combo.num_outputs; ++i) {
    outputs.push_back(port_text(combo.ports[combo.num_inputs + i]));
  }
  return join(inputs, ",") + ">" + join(outputs, ",");
}

Json describe_kernel(const TnKernel& kernel) {
  Json combos = Json::array();
  for (std::uint32_t i = 0; i < kernel.num_combos; ++i) combos.push_back(combo_text(kernel.combos[i]));
  return {{"name", kernel.name},
          {"op", kernel.op_id},
          {"device", kernel.device == TN_CUDA ? "cuda" : "cpu"},
          {"revision", kernel.revision},
          {"flags", flag_names(kernel.flags, kKernelFlags)},
          {"combos", std::move(combos)},
          {"more_combos", kernel.more_combos != nullptr}};
}

Json describe_fusion(const TnFusion& fusion) {
  return {{"id", fusion.id},
          {"mode", fusion.mode == TN_FUSION_ALWAYS ? "always" : "candidate"},
          {"priority", fusion.priority},
          {"pattern", fusion.pattern},
          {"doc", text_or_null(fusion.doc)}};
}

Json describe_importer(const TnImporter& importer) {
  return {{"id", importer.id},
          {"suffixes", importer.suffixes},
          {"doc", text_or_null(importer.doc)},
          {"options", describe_params(importer.options, importer.num_options)}};
}

Json describe_op_importer(const TnOpImporter& importer) {
  return {{"importer", importer.importer_id},
          {"type", importer.type},
          {"opset_min", importer.opset_min},
          {"opset_max", importer.opset_max == 0 ? Json() : Json(importer.opset_max)}};
}

}  // namespace

Result<Json> describe_identity(const std::filesystem::path& path) {
  TENON_ASSIGN(const LibraryFile file, examine_library(path));
  TENON_ASSIGN(const PluginLibrary library, PluginLibrary::open(file));
  const TnPlugin& plugin = library.plugin();
  return Json{{"file", file.path.string()},
              {"build_id", file.build_id},
              {"plugin",
               {{"id", plugin.id},
                {"version", plugin.version},
                {"license", plugin.license},
                {"url", plugin.url},
                {"build", plugin.build}}},
              {"abi",
               {{"major", plugin.abi_major},
                {"minor_needed", plugin.abi_minor_needed},
                {"minor_built", plugin.abi_minor_built},
                {"host_major", TN_ABI_MAJOR},
                {"host_minor", TN_ABI_MINOR_LATEST}}}};
}

Result<Json> describe_contents(const std::filesystem::path& path, Logger& logger) {
  TENON_ASSIGN(Json result, describe_identity(path));
  const std::shared_ptr<Registry> registry = Registry::create(logger);
  TENON_RETURN_IF_ERROR(registry->load(path));
  const PluginInfo info = registry->plugins().front();
  for (const char* list : {"ops", "kernels", "fusions", "importers", "op_importers"}) result[list] = Json::array();
  for (const std::string& id : info.ops) result["ops"].push_back(describe_op(*registry->find_op(id).op));
  for (const std::string& name : info.kernels) {
    result["kernels"].push_back(describe_kernel(*registry->find_kernel(name).kernel));
  }
  for (const FusionRef& rule : registry->fusions()) result["fusions"].push_back(describe_fusion(*rule.fusion));
  for (const ImporterRef& ref : registry->importers()) result["importers"].push_back(describe_importer(*ref.importer));
  for (const OpImporterRef& ref : registry->op_importers()) {
    result["op_importers"].push_back(describe_op_importer(*ref.importer));
  }
  return result;
}

}  // namespace tenon
