#include "tools/tenon_plugin/render.h"

#include <vector>

#include "core/base/text.h"

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string joined(const Json& list, const char* separator = ", ") {
  return join(list.get<std::vector<std::string>>(), separator);
}

/// ": " and the doc, or nothing where the author wrote none.
std::string doc_suffix(const Json& item) {
  const Json& doc = item.at("doc");
  return doc.is_null() || doc == "" ? "" : ": " + doc.get<std::string>();
}

std::string params_text(const Json& params, const char* title) {
  std::string text;
  for (const Json& param : params) {
    text += std::string("    ") + title + " " + param.at("name").get<std::string>() + " (" +
            param.at("type").get<std::string>();
    if (param.at("required") == true) text += ", required";
    if (!param.at("default").is_null()) text += ", default " + text_of(param.at("default"));
    if (!param.at("range").is_null()) text += ", range " + text_of(param.at("range"));
    text += ")" + doc_suffix(param) + "\n";
  }
  return text;
}

std::string ports_text(const Json& ports, const char* title) {
  std::string text;
  for (const Json& port : ports) {
    text += std::string("    ") + title + " " + port.at("name").get<std::string>();
    if (!port.at("flags").empty()) text += " (" + joined(port.at("flags")) + ")";
    text += doc_suffix(port) + "\n";
  }
  return text;
}

std::string with_flags(const Json& item) {
  return item.at("flags").empty() ? "" : " (" + joined(item.at("flags")) + ")";
}

std::string op_text(const Json& op) {
  return "  op " + text_of(op.at("id")) + with_flags(op) + doc_suffix(op) + "\n" +
         ports_text(op.at("inputs"), "input") + ports_text(op.at("outputs"), "output") +
         params_text(op.at("attributes"), "attribute");
}

std::string kernel_text(const Json& kernel) {
  std::string text = "  kernel " + text_of(kernel.at("name")) + " for " + text_of(kernel.at("op")) + " on " +
                     text_of(kernel.at("device")) + ", revision " + text_of(kernel.at("revision")) +
                     with_flags(kernel) + "\n";
  for (const Json& combo : kernel.at("combos")) text += "    combo " + text_of(combo) + "\n";
  if (kernel.at("more_combos") == true) text += "    further combos depend on the site\n";
  return text;
}

std::string fusion_text(const Json& fusion) {
  return "  fusion rule " + text_of(fusion.at("id")) + " (" + text_of(fusion.at("mode")) + ", priority " +
         text_of(fusion.at("priority")) + ")" + doc_suffix(fusion) + "\n    pattern " + text_of(fusion.at("pattern")) +
         "\n";
}

std::string importer_text(const Json& importer) {
  return "  importer " + text_of(importer.at("id")) + " of " + text_of(importer.at("suffixes")) + doc_suffix(importer) +
         "\n" + params_text(importer.at("options"), "option");
}

std::string op_importer_text(const Json& importer) {
  std::string text = "  op importer: teaches " + text_of(importer.at("importer")) + " " + text_of(importer.at("type")) +
                     ", opset " + text_of(importer.at("opset_min"));
  text += importer.at("opset_max").is_null() ? " and later" : " to " + text_of(importer.at("opset_max"));
  return text + "\n";
}

}  // namespace

std::string render(const Json& description) {
  const Json& plugin = description.at("plugin");
  const Json& abi = description.at("abi");
  std::string text = "plugin " + text_of(plugin.at("id")) + " " + text_of(plugin.at("version")) + "\n";
  text += "  file     " + text_of(description.at("file")) + "\n";
  text += "  build id " + text_of(description.at("build_id")) + "\n";
  text += "  license  " + text_of(plugin.at("license")) + "\n";
  if (plugin.at("url") != "") text += "  url      " + text_of(plugin.at("url")) + "\n";
  if (plugin.at("build") != "") text += "  build    " + text_of(plugin.at("build")) + "\n";
  text += "  abi      needs " + text_of(abi.at("major")) + "." + text_of(abi.at("minor_needed")) + ", built with " +
          text_of(abi.at("major")) + "." + text_of(abi.at("minor_built")) + "; this host has " +
          text_of(abi.at("host_major")) + "." + text_of(abi.at("host_minor")) + "\n";
  if (!description.contains("ops")) return text;
  const std::size_t head = text.size();
  for (const Json& op : description.at("ops")) text += op_text(op);
  for (const Json& kernel : description.at("kernels")) text += kernel_text(kernel);
  for (const Json& fusion : description.at("fusions")) text += fusion_text(fusion);
  for (const Json& importer : description.at("importers")) text += importer_text(importer);
  for (const Json& importer : description.at("op_importers")) text += op_importer_text(importer);
  if (text.size() == head) text += "  registers nothing\n";
  return text;
}

}  // namespace tenon
