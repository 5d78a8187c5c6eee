#include "registry/validate.h"

#include <algorithm>
#include <set>
#include <utility>

#include <tenon/plugin/ext/ids.h>

#include "core/graph/attributes.h"
#include "core/graph/tensor.h"

namespace tenon {
namespace {

/// More ports than this are a mistake, not an op; a variadic port stands for any number.
constexpr std::uint32_t kMaxPorts = 64;  // TnSite.used_outputs has 64 bits
constexpr std::uint32_t kMaxParams = 1024;
constexpr std::uint32_t kMaxCombos = 65536;

bool is_word_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

/// Number of words of [a-z0-9_] joined by dots; 0 if it is anything else.
int count_words(std::string_view text) {
  int words = 0;
  std::size_t begin = 0;
  while (true) {
    std::size_t end = begin;
    while (end < text.size() && is_word_char(text[end])) ++end;
    if (end == begin) return 0;
    ++words;
    if (end == text.size()) return words;
    if (text[end] != '.') return 0;
    begin = end + 1;
  }
}

std::string quoted(const char* text) { return "\"" + std::string(text) + "\""; }

Status invalid(std::string message) { return {Code::kInvalid, std::move(message)}; }

/// Names are checked before anything else, so that later messages can use them.
Status check_name(const char* text, bool (*grammar)(std::string_view), const char* field, const char* expected) {
  if (text == nullptr) return invalid(std::string(field) + " is NULL; expected " + expected);
  if (!grammar(text)) return invalid(std::string(field) + " is " + quoted(text) + "; expected " + expected);
  return {};
}

constexpr const char* kOpIdForm = "the form vendor.name/1: words of [a-z0-9_] joined by dots, a slash, a number from 1";
constexpr const char* kKernelNameForm =
    "the form <vendor>.<op>.<algorithm>[.<dtype>][.<arch>]: three to five words of [a-z0-9_] joined by dots";
constexpr const char* kImporterIdForm = "the form vendor.name: words of [a-z0-9_] joined by dots";

template <class Function>
Status check_function(Function* function, const std::string& owner, const char* field) {
  return function != nullptr ? Status() : invalid(owner + ": " + field + " is NULL, but is required");
}

template <class T>
Status check_array(const T* array, std::uint32_t count, std::uint32_t limit, const std::string& owner,
                   const char* field) {
  if (count > limit) {
    return invalid(owner + ": " + std::to_string(count) + " entries of " + field + ", at most " +
                   std::to_string(limit) + " are allowed");
  }
  if (count > 0 && array == nullptr) {
    return invalid(owner + ": " + field + " is NULL, but has " + std::to_string(count) + " entries");
  }
  return {};
}

bool is_param_name(std::string_view name) {
  if (name.empty() || name[0] < 'a' || name[0] > 'z') return false;
  for (const char c : name) {
    if (!is_word_char(c)) return false;
  }
  return true;
}

Status check_param(const std::string& owner, const TnParam* param, std::set<std::string>* names) {
  if (param == nullptr) return invalid(owner + ": is NULL");
  TENON_RETURN_IF_ERROR(check_struct_size(param, &TnParam::doc, "TnParam").with_context(owner));
  TENON_RETURN_IF_ERROR(check_name(param->name, is_param_name, "TnParam.name", "[a-z][a-z0-9_]*").with_context(owner));
  const std::string label = owner + " (" + param->name + ")";
  if (!names->insert(param->name).second) return invalid(label + ": the name is given twice");
  if (param->type < TN_ATTR_I64 || param->type > TN_ATTR_GRAPH) {
    return invalid(label + ": type is " + std::to_string(param->type) + ", which is no TN_ATTR_*");
  }
  if (param->default_text == nullptr || param->required != 0) return {};
  Attrs attrs;
  const Status status = apply_schema("default", &param, 1, &attrs);
  return status.ok() ? status : invalid(label + ": " + status.message());
}

Status check_params(const std::string& owner, const TnParam* const* params, std::uint32_t count, const char* field) {
  TENON_RETURN_IF_ERROR(check_array(params, count, kMaxParams, owner, field));
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) {
    TENON_RETURN_IF_ERROR(check_param(owner + ": " + field + "[" + std::to_string(i) + "]", params[i], &names));
  }
  return {};
}

Status check_ports(const std::string& owner, const TnPortSpec* const* ports, std::uint32_t count, const char* field) {
  TENON_RETURN_IF_ERROR(check_array(ports, count, kMaxPorts, owner, field));
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string label = owner + ": " + field + "[" + std::to_string(i) + "]";
    const TnPortSpec* port = ports[i];
    if (port == nullptr) return invalid(label + " is NULL");
    TENON_RETURN_IF_ERROR(check_struct_size(port, &TnPortSpec::doc, "TnPortSpec").with_context(label));
    if (port->name == nullptr || *port->name == '\0') return invalid(label + ": name is missing");
    if (!names.insert(port->name).second)
      return invalid(label + ": the name " + quoted(port->name) + " is given twice");
    if ((port->flags & TN_PORT_VARIADIC) != 0 && i + 1 != count) {
      return invalid(label + " (" + port->name + "): only the last port may be TN_PORT_VARIADIC");
    }
  }
  return {};
}

bool is_known_dtype(std::int32_t dtype) {
  return dtype == TN_DTYPE_NONE || dtype == TN_STRING || dtype_bits(dtype) > 0;
}

Status check_format(const TnFormat& format) {
  switch (format.kind) {
    case TN_FORMAT_ROW:
      return {};
    case TN_FORMAT_OPAQUE:
      for (const char c : format.opaque) {
        if (c == '\0') return format.opaque[0] != '\0' ? Status() : invalid("an opaque format needs its name");
      }
      return invalid("the name of an opaque format is not zero-terminated");
    case TN_FORMAT_AXES:
      break;
    default:
      return invalid("format kind " + std::to_string(format.kind) + " is no TN_FORMAT_*");
  }
  if (format.rank > TN_MAX_RANK || format.num_blocks > TN_MAX_BLOCKS) {
    return invalid("a format of rank " + std::to_string(format.rank) + " with " + std::to_string(format.num_blocks) +
                   " blocks exceeds TN_MAX_RANK or TN_MAX_BLOCKS");
  }
  std::set<int> axes;
  for (int i = 0; i < format.rank; ++i) {
    if (format.order[i] >= format.rank || !axes.insert(format.order[i]).second) {
      return invalid("the format's order is no permutation of its " + std::to_string(format.rank) + " axes");
    }
  }
  for (int i = 0; i < format.num_blocks; ++i) {
    if (format.block_axis[i] >= format.rank || format.block_size[i] == 0) {
      return invalid("block " + std::to_string(i) + " of the format has no such axis or no size");
    }
  }
  return {};
}

Status check_port(const TnPort& port) {
  if (!is_known_dtype(port.dtype)) return invalid("dtype " + std::to_string(port.dtype) + " is no TN_* element type");
  if (port.memory < 0 || port.memory > TN_MEMORY_DEVICE) {
    return invalid("memory is " + std::to_string(port.memory) + ", which is no TN_MEMORY_*");
  }
  if ((port.alignment & (port.alignment - 1)) != 0) {
    return invalid("alignment " + std::to_string(port.alignment) + " is no power of two");
  }
  return port.dtype == TN_DTYPE_NONE && port.format.kind == TN_FORMAT_NONE ? Status() : check_format(port.format);
}

Status check_combo(const TnCombo& combo, const std::string& label) {
  if (combo.num_outputs == 0) return invalid(label + ": num_outputs is 0");
  // A combo of a variadic op may list more ports than the op declares, so the bound is generous.
  if (combo.num_inputs > kMaxPorts * kMaxPorts || combo.num_outputs > kMaxPorts) {
    return invalid(label + ": " + std::to_string(combo.num_inputs) + " inputs and " +
                   std::to_string(combo.num_outputs) + " outputs are too many");
  }
  if (combo.ports == nullptr) return invalid(label + ": ports is NULL");
  for (std::uint32_t i = 0; i < combo.num_inputs + combo.num_outputs; ++i) {
    TENON_RETURN_IF_ERROR(check_port(combo.ports[i]).with_context(label + ": port " + std::to_string(i)));
  }
  TENON_RETURN_IF_ERROR(check_array(combo.aliases, combo.num_aliases, kMaxPorts, label, "aliases"));
  for (std::uint32_t i = 0; i < combo.num_aliases; ++i) {
    const TnAlias& alias = combo.aliases[i];
    if (alias.output >= combo.num_outputs || alias.input >= combo.num_inputs ||
        (alias.kind != TN_MAY_ALIAS && alias.kind != TN_MUST_ALIAS)) {
      return invalid(label + ": alias " + std::to_string(i) + " (output " + std::to_string(alias.output) + ", input " +
                     std::to_string(alias.input) + ", kind " + std::to_string(alias.kind) + ") is out of range");
    }
  }
  return {};
}

bool is_suffix_list(std::string_view text) {
  // ".cfg" or ".onnx,.pb"
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view suffix = text.substr(begin, end - begin);
    if (suffix.size() < 2 || suffix[0] != '.' || suffix.find_first_of(" /\t") != std::string_view::npos) return false;
    if (end == text.size()) return true;
    begin = end + 1;
  }
}

}  // namespace

bool is_op_id(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || count_words(text.substr(0, slash)) < 2) return false;
  const std::string_view number = text.substr(slash + 1);
  if (number.empty() || number.size() > 9 || number[0] == '0') return false;
  return number.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_kernel_name(std::string_view text) {
  const int words = count_words(text);
  return words >= 3 && words <= 5;
}

bool is_importer_id(std::string_view text) { return count_words(text) >= 2; }

bool is_printable_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x20 || lead == 0x7F) return false;
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                               : (lead & 0xF0) == 0xE0       ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
    if (length == 0 || i + length > text.size()) return false;
    std::uint32_t point = length == 1 ? lead : lead & (0xFFu >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      point = point << 6 | (next & 0x3Fu);
    }
    // RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. U+0080 to U+009F are control characters.
    if (length == 2 && point < 0xA0) return false;
    if ((length == 3 && point < 0x800) || (length == 4 && (point < 0x10000 || point > 0x10FFFF))) return false;
    if (point >= 0xD800 && point <= 0xDFFF) return false;
    i += length;
  }
  return true;
}

Status check_op(const TnOp* op) {
  if (op == nullptr) return invalid("the TnOp is NULL");
  TENON_RETURN_IF_ERROR(check_struct_size(op, &TnOp::get_interface, "TnOp"));
  TENON_RETURN_IF_ERROR(check_name(op->id, is_op_id, "TnOp.id", kOpIdForm));
  const std::string owner = "op " + std::string(op->id);
  TENON_RETURN_IF_ERROR(check_params(owner, op->params, op->num_params, "params"));
  TENON_RETURN_IF_ERROR(check_ports(owner, op->inputs, op->num_inputs, "inputs"));
  if (op->num_outputs == 0) return invalid(owner + ": num_outputs is 0; an op has at least one output");
  TENON_RETURN_IF_ERROR(check_ports(owner, op->outputs, op->num_outputs, "outputs"));
  TENON_RETURN_IF_ERROR(check_function(op->infer, owner, "infer"));
  // Nodes that own graphs are run by the core and have nothing of their own to compute.
  const bool is_control = op->get_interface != nullptr && op->get_interface(op, TN_IFACE_OP_CONTROL) != nullptr;
  return is_control ? Status() : check_function(op->reference, owner, "reference");
}

Status check_kernel(const TnKernel* kernel) {
  if (kernel == nullptr) return invalid("the TnKernel is NULL");
  TENON_RETURN_IF_ERROR(check_struct_size(kernel, &TnKernel::get_interface, "TnKernel"));
  TENON_RETURN_IF_ERROR(check_name(kernel->name, is_kernel_name, "TnKernel.name", kKernelNameForm));
  const std::string owner = "kernel " + std::string(kernel->name);
  TENON_RETURN_IF_ERROR(check_name(kernel->op_id, is_op_id, "op_id", kOpIdForm).with_context(owner));
  if (kernel->device != TN_CPU && kernel->device != TN_CUDA) {
    return invalid(owner + ": device is " + std::to_string(kernel->device) + "; expected TN_CPU or TN_CUDA");
  }
  TENON_RETURN_IF_ERROR(check_array(kernel->combos, kernel->num_combos, kMaxCombos, owner, "combos"));
  if (kernel->num_combos == 0 && kernel->more_combos == nullptr) {
    return invalid(owner + ": has neither combos nor more_combos, so it could never run");
  }
  for (std::uint32_t i = 0; i < kernel->num_combos; ++i) {
    TENON_RETURN_IF_ERROR(check_combo(kernel->combos[i], owner + ": combos[" + std::to_string(i) + "]"));
  }
  TENON_RETURN_IF_ERROR(check_function(kernel->configure, owner, "configure"));
  return check_function(kernel->enqueue, owner, "enqueue");
}

Status check_fusion(const TnFusion* fusion, Pattern* pattern) {
  if (fusion == nullptr) return invalid("the TnFusion is NULL");
  TENON_RETURN_IF_ERROR(check_struct_size(fusion, &TnFusion::rewrite, "TnFusion"));
  TENON_RETURN_IF_ERROR(check_name(fusion->id, is_op_id, "TnFusion.id", kOpIdForm));
  const std::string owner = "fusion rule " + std::string(fusion->id);
  if (fusion->mode != TN_FUSION_ALWAYS && fusion->mode != TN_FUSION_CANDIDATE) {
    return invalid(owner + ": mode is " + std::to_string(fusion->mode) +
                   "; expected TN_FUSION_ALWAYS or TN_FUSION_CANDIDATE");
  }
  if (fusion->pattern == nullptr) return invalid(owner + ": pattern is NULL");
  Result<Pattern> parsed = Pattern::parse(fusion->pattern);
  if (!parsed.ok()) return parsed.status().with_context(owner + ": pattern " + quoted(fusion->pattern));
  *pattern = std::move(parsed).value();
  return check_function(fusion->rewrite, owner, "rewrite");
}

Status check_importer(const TnImporter* importer) {
  if (importer == nullptr) return invalid("the TnImporter is NULL");
  TENON_RETURN_IF_ERROR(check_struct_size(importer, &TnImporter::import_model, "TnImporter"));
  TENON_RETURN_IF_ERROR(check_name(importer->id, is_importer_id, "TnImporter.id", kImporterIdForm));
  const std::string owner = "importer " + std::string(importer->id);
  TENON_RETURN_IF_ERROR(
      check_name(importer->suffixes, is_suffix_list, "suffixes", "the form .onnx,.pb").with_context(owner));
  TENON_RETURN_IF_ERROR(check_params(owner, importer->options, importer->num_options, "options"));
  TENON_RETURN_IF_ERROR(check_function(importer->probe, owner, "probe"));
  return check_function(importer->import_model, owner, "import_model");
}

Status check_op_importer(const TnOpImporter* importer) {
  if (importer == nullptr) return invalid("the TnOpImporter is NULL");
  TENON_RETURN_IF_ERROR(check_struct_size(importer, &TnOpImporter::import_op, "TnOpImporter"));
  TENON_RETURN_IF_ERROR(check_name(importer->importer_id, is_importer_id, "TnOpImporter.importer_id", kImporterIdForm));
  const std::string owner = "op importer for " + std::string(importer->importer_id);
  if (importer->type == nullptr || *importer->type == '\0' || !is_printable_utf8(importer->type)) {
    return invalid(owner + ": type is missing or not printable; expected the foreign op's name");
  }
  const std::string label = owner + " " + quoted(importer->type);
  if (importer->opset_max != 0 && importer->opset_max < importer->opset_min) {
    return invalid(label + ": opset_max " + std::to_string(importer->opset_max) + " is below opset_min " +
                   std::to_string(importer->opset_min));
  }
  return check_function(importer->import_op, label, "import_op");
}

}  // namespace tenon
